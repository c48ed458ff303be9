"""An object may stand in a manifest and be changed by people: the newer of the two holds, as if both were applied."""

from typing import Any


def frontend(model: str) -> dict[str, Any]:
    spec = {"defaults": {"targets": [{"model": model}]}}
    return {"kind": "FrontendModel", "metadata": {"name": "assistant"}, "spec": spec}


def to(model: str) -> dict[str, Any]:
    return {"targets": [{"provider_model_id": model}]}


def served(local: Any) -> list[str]:
    return [target.model for each in local.router.config.frontends for target in each.default_targets]


async def test_a_change_holds_over_the_manifest_also_after_a_restart(admin: Any, local: Any) -> None:
    await local.edit(frontend("cc11"))
    assert (await admin("GET", "/frontend-models/assistant"))[1]["changed_by"].endswith("cluster.yaml:11")
    assert (await admin("PUT", "/rules/assistant:defaults/targets", to("qwen-vl")))[0] == 200
    assert served(local) == ["qwen-vl"]
    await local.restart()
    assert served(local) == ["qwen-vl"]


async def test_an_edit_of_the_manifest_after_that_holds(admin: Any, local: Any) -> None:
    await local.edit(frontend("cc11"))
    await admin("PUT", "/rules/assistant:defaults/targets", to("qwen-vl"))
    newer = frontend("cc11")
    newer["spec"]["modelName"] = "helper"
    await local.edit(newer)
    assert served(local) == ["cc11"]
    await local.edit(frontend("cc11"))
    assert served(local) == ["cc11"], "a change that was forgotten does not come back"


async def test_an_edit_of_another_object_leaves_the_change_alone(admin: Any, local: Any) -> None:
    await local.edit(frontend("cc11"))
    await admin("PUT", "/rules/assistant:defaults/targets", to("qwen-vl"))
    pool = {"kind": "ModelPool", "metadata": {"name": "p"}, "spec": {"members": [{"model": "cc11"}]}}
    await local.edit(frontend("cc11"), pool)
    assert served(local) == ["qwen-vl"]
    assert [each.name for each in local.router.config.pools] == ["p"]


async def test_a_removal_holds_until_the_manifest_is_edited(admin: Any, local: Any) -> None:
    await local.edit(frontend("cc11"))
    assert (await admin("DELETE", "/frontend-models/assistant"))[0] == 204
    assert served(local) == []
    await local.restart()
    assert served(local) == []
    await local.edit(frontend("qwen-vl"))
    assert served(local) == ["qwen-vl"]


async def test_an_object_that_leaves_the_manifest_is_gone_whatever_people_made_of_it(admin: Any, local: Any) -> None:
    await local.edit(frontend("cc11"))
    await admin("PUT", "/rules/assistant:defaults/targets", to("qwen-vl"))
    await local.edit()
    assert served(local) == []


async def test_a_broken_edit_does_not_keep_people_from_changing(admin: Any, local: Any) -> None:
    await local.edit(frontend("cc11"))
    local.manifest.write_text("kind: [")
    await local.cluster._take_edit()
    assert (await admin("PUT", "/rules/assistant:defaults/targets", to("qwen-vl")))[0] == 200
    assert served(local) == ["qwen-vl"]
