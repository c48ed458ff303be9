"""What is refused, what passes with a warning, and of what nothing is said."""

import copy
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from turnout_api.resolve import declare, resolve
from turnout_operator.admission.desk import FORGOTTEN_AFTER, LANDS_WITHIN
from turnout_operator.admission.review import MAX_WARNINGS, NoReview
from turnout_operator.admission.validator import FRESH, Validator
from turnout_operator.injection import Nodes
from turnout_operator.known import Known
from turnout_operator.placement import InCluster

Json = dict[str, Any]
START = datetime(2026, 1, 1, tzinfo=UTC)


class Apiserver:
    """Asks about writes, and carries out those that are admitted."""

    def __init__(self, specs: Any) -> None:
        self.specs = specs
        self.now = START
        self.objects: dict[tuple[str, str], Json] = {}
        self.judged: dict[str, Known] = {}
        self.looked: Counter[str] = Counter()
        self.kept = Known().resolution
        self.validator = Validator(["gpus"], self.judged, self._look, now=lambda: self.now)
        for name in ("gpu-a", "gpu-b"):
            self.put("RouterNode", name, specs.slave(name, contextWindow=4096))
        self.put("RouterNode", "master", specs.master())
        self.round()

    def put(self, kind: str, name: str, spec: Json) -> Json:
        """Without asking."""
        self.objects[kind, name] = _object(kind, name, spec)
        return self.objects[kind, name]

    def round(self) -> None:
        self.kept = self._resolved()
        self.judged["gpus"] = self._known()

    async def write(self, kind: str, name: str, spec: Json, **request: Any) -> Json:
        before = self.objects.get((kind, name))
        operation = "UPDATE" if before else "CREATE"
        asked = {"operation": operation, "object": _object(kind, name, spec), "oldObject": before} | request
        response = await self.response(asked)
        if response["allowed"] and not request:
            self.put(kind, name, spec)
        return response

    async def delete(self, kind: str, name: str, **request: Any) -> Json:
        asked = {"operation": "DELETE", "object": None, "oldObject": self.objects[kind, name]} | request
        response = await self.response(asked)
        del self.objects[kind, name]
        return response

    async def response(self, request: Json) -> Json:
        answer = await self.validator.answer({"request": {"uid": "u-1", "namespace": "gpus"} | request})
        assert (answer["kind"], answer["response"]["uid"]) == ("AdmissionReview", "u-1")
        response: Json = answer["response"]
        return response

    async def _look(self, namespace: str) -> Known:
        self.looked[namespace] += 1
        return self._known()

    def _known(self) -> Known:
        resolution = self._resolved()
        return Known(Nodes.of(resolution), [declare(m) for m in self.objects.values()], resolution, self.now)

    def _resolved(self) -> Any:
        declared = [declare(manifest) for manifest in self.objects.values()]
        kept = {"last_accepted": self.kept.last_accepted, "ledger": self.kept.ledger}
        return resolve(declared, placement=InCluster(), generation=0, **kept)


def _object(kind: str, name: str, spec: Json) -> Json:
    metadata = {"name": name, "namespace": "gpus", "generation": 1, "managedFields": [{"manager": "kubectl"}]}
    return {"apiVersion": "turnout.dev/v1alpha1", "kind": kind, "metadata": metadata, "spec": copy.deepcopy(spec)}


def link(owner: str = "gpu-a", helper: str = "gpu-b") -> Json:
    ends = {"owner": {"node": owner, "model": f"{owner}-ff"}, "helper": {"node": helper, "model": f"{helper}-ff"}}
    return {"lane": "Text", **ends}


def to(model: str) -> Json:
    return {"defaults": {"targets": [{"model": model}]}}


def jump(destination: str) -> Json:
    return {"rules": [{"name": "on", "when": {"stream": True}, "action": "Jump", "jumpTo": destination}]} | to("cc11")


@pytest.fixture
def api(specs: Any) -> Apiserver:
    return Apiserver(specs)


async def test_what_is_good_passes_in_silence(api: Apiserver) -> None:
    assert await api.write("FrontendModel", "front", to("cc11")) == {"uid": "u-1", "allowed": True}
    assert await api.delete("FrontendModel", "front") == {"uid": "u-1", "allowed": True}


async def test_a_second_master_is_refused_with_the_field_and_what_to_do(api: Apiserver) -> None:
    refused = await api.write("RouterNode", "other", api.specs.master())

    assert refused["allowed"] is False
    assert refused["status"]["code"] == 422
    assert refused["status"]["message"].startswith("spec.role: RouterNode master is the one Master or Standalone")
    assert "make this one a Slave" in refused["status"]["message"]
    assert refused["status"]["message"].endswith("(MasterExists)")


async def test_a_link_that_is_not_eligible_is_refused(api: Apiserver) -> None:
    await api.write("RouterNode", "gpu-c", api.specs.slave("gpu-c"))

    refused = await api.write("RoutingLink", "a-to-c", link("gpu-a", "gpu-c"))

    assert refused["status"]["message"].startswith("spec.helper.model: helper gpu-c-ff states no context window")


async def test_of_two_jumps_at_once_that_make_a_loop_the_second_is_refused(api: Apiserver) -> None:
    await api.write("FrontendModel", "a", to("cc11"))
    await api.write("FrontendModel", "b", to("cc11"))
    api.round()

    first, second = await api.write("FrontendModel", "b", jump("a")), await api.write("FrontendModel", "a", jump("b"))

    assert first["allowed"] is True
    assert second["status"]["message"].startswith("spec.rules[0].jumpTo: jumps lead back to where they began: a>b>a")


async def test_unknown_names_pass_with_a_warning_each(api: Apiserver) -> None:
    jumping = await api.write("FrontendModel", "front", jump("nobody") | to("cc12"))
    linking = await api.write("RoutingLink", "a-to-x", link("gpu-a", "gpu-x"))

    assert jumping["allowed"] is True
    assert [w.partition(": ")[0] for w in jumping["warnings"]] == [
        "spec.rules[0].jumpTo",
        "spec.defaults.targets[0].model",
    ]
    assert linking["allowed"] is True
    assert "(UnknownNode): nothing serves this object until that is there" in linking["warnings"][0]


async def test_what_renames_an_object_may_make_the_new_one_first(api: Apiserver) -> None:
    await api.write("FrontendModel", "front", {"modelName": "chat"} | to("cc11"))

    renamed = await api.write("FrontendModel", "front-2", {"modelName": "chat"} | to("cc11"))

    assert renamed["allowed"] is True
    assert "(NameConflict): not accepted until that is gone" in renamed["warnings"][0]


async def test_a_change_that_breaks_a_required_test_is_refused(api: Apiserver) -> None:
    await api.write("FrontendModel", "front", to("cc11"))
    request = {"path": "/v1/chat/completions", "body": {"model": "front", "messages": []}}
    expected = {"request": request, "expect": {"rule": "front/defaults"}, "required": True}
    assert (await api.write("RouteTest", "stays", expected))["allowed"]
    api.round()

    deny = {"name": "no", "action": "Deny", "denyStatus": 403, "when": {"endpoints": ["/v1/chat/completions"]}}
    refused = await api.write("FrontendModel", "front", {"rules": [{"name": "no"} | deny]} | to("cc11"))
    assert "RouteTest stays is required and would fail" in refused["status"]["message"]

    gone = await api.delete("FrontendModel", "front")
    assert gone["allowed"] is True
    assert any(w.startswith("RouteTest stays: spec.expect: ") for w in gone["warnings"])


async def test_lint_passes_with_a_warning(api: Apiserver) -> None:
    rules = [{"name": "all", "targets": [{"model": "cc11"}]}, {"name": "never", "targets": [{"model": "cc11"}]}]

    linted = await api.write("FrontendModel", "front", {"rules": rules})

    assert linted["allowed"] is True
    assert linted["warnings"][0].endswith("these are never reached: never (ShadowedRules)")


async def test_what_was_said_before_is_not_said_again(api: Apiserver) -> None:
    first = await api.write("FrontendModel", "front", to("cc12"))
    again = await api.write("FrontendModel", "front", {"modelName": "front"} | to("cc12"))

    assert len(first["warnings"]) == 1
    assert "warnings" not in again


async def test_an_object_that_is_not_accepted_anyway_may_be_mended_bit_by_bit(api: Apiserver) -> None:
    rule = jump("front")["rules"][0]
    api.put("FrontendModel", "front", jump("other"))
    api.put("FrontendModel", "other", jump("front"))
    api.round()

    edited = await api.write("FrontendModel", "other", {"rules": [rule]} | to("cc12"))

    assert edited["allowed"] is True
    assert any("it was not accepted for this before" in warning for warning in edited["warnings"])


async def test_others_that_it_takes_something_from_are_named(api: Apiserver) -> None:
    await api.write("RoutingLink", "a-to-b", link())
    api.round()

    gone = await api.delete("RouterNode", "gpu-a", dryRun=True)
    api.put("RouterNode", "gpu-a", api.specs.slave("gpu-a", contextWindow=4096))
    changed = await api.write("RouterNode", "gpu-b", api.specs.slave("gpu-b", contextWindow=4096, parallel=4))

    assert changed["allowed"] is True
    told = "RoutingLink a-to-b: spec.helper.model: helper gpu-b-ff serves 4 requests"
    assert any(warning.startswith(told) for warning in changed["warnings"])
    assert gone["allowed"] is True
    assert gone["warnings"][0].startswith("RoutingLink a-to-b: spec.owner.node: no RouterNode is called gpu-a")


async def test_many_warnings_are_cut_short(api: Apiserver) -> None:
    targets = [{"model": f"unknown-{i}"} for i in range(2 * MAX_WARNINGS)]

    told = (await api.write("FrontendModel", "front", {"defaults": {"targets": targets}}))["warnings"]

    assert len(told) == MAX_WARNINGS + 1
    assert told[-1].startswith(f"and {MAX_WARNINGS} more")
    assert max(map(len, told)) <= 256


async def test_a_write_that_failed_after_all_is_forgotten(api: Apiserver) -> None:
    await api.write("RouterNode", "gpu-c", api.specs.slave("gpu-c", contextWindow=4096))
    api.objects.pop(("RouterNode", "gpu-c"))
    known = await api.write("RoutingLink", "a-to-c", link("gpu-a", "gpu-c"), dryRun=True)
    assert not any("UnknownNode" in warning for warning in known.get("warnings", []))

    api.now += FORGOTTEN_AFTER + timedelta(seconds=1)

    later = await api.write("RoutingLink", "a-to-c", link("gpu-a", "gpu-c"), dryRun=True)
    assert "UnknownNode" in later["warnings"][0]


async def test_a_reading_that_began_later_is_right(api: Apiserver) -> None:
    await api.write("RouterNode", "gpu-c", api.specs.slave("gpu-c", contextWindow=4096))
    api.objects.pop(("RouterNode", "gpu-c"))
    api.now += LANDS_WITHIN + timedelta(seconds=1)
    api.round()

    said = await api.write("RoutingLink", "a-to-c", link("gpu-a", "gpu-c"), dryRun=True)

    assert "UnknownNode" in said["warnings"][0]


async def test_a_reading_that_began_before_does_not_take_it_away(api: Apiserver) -> None:
    api.round()
    before = api.judged["gpus"]
    await api.write("RouterNode", "gpu-c", api.specs.slave("gpu-c", contextWindow=4096))
    api.judged["gpus"] = Known(before.nodes, before.declared, before.resolution, api.now)

    said = await api.write("RoutingLink", "a-to-c", link("gpu-a", "gpu-c"), dryRun=True)

    assert not any("UnknownNode" in warning for warning in said.get("warnings", []))


async def test_a_dry_run_changes_nothing(api: Apiserver) -> None:
    await api.write("RouterNode", "gpu-c", api.specs.slave("gpu-c", contextWindow=4096), dryRun=True)

    said = await api.write("RoutingLink", "a-to-c", link("gpu-a", "gpu-c"))

    assert "UnknownNode" in said["warnings"][0]


async def test_an_operator_without_rounds_looks_anew(api: Apiserver) -> None:
    api.judged.clear()
    for _ in range(3):
        await api.write("FrontendModel", "front", to("cc11"), dryRun=True)
    assert api.looked == {"gpus": 1}

    api.now += FRESH + timedelta(seconds=1)
    api.put("FrontendModel", "other", jump("front"))
    refused = await api.write("FrontendModel", "front", jump("other"))

    assert api.looked == {"gpus": 2}
    assert refused["allowed"] is False


@pytest.mark.parametrize(
    "change",
    [
        {"oldObject": _object("RouterNode", "x", {"role": "Master"})},
        {"object": _object("RouterNode", "x", {}) | {"apiVersion": "v1"}},
        {
            "object": {
                "apiVersion": "turnout.dev/v1alpha1",
                "kind": "RouterNode",
                "metadata": {"deletionTimestamp": "now"},
            }
        },
    ],
    ids=["the same spec", "another group", "on its way out"],
)
async def test_nothing_is_said_of_it(api: Apiserver, change: Json) -> None:
    request = {"operation": "UPDATE", "object": _object("RouterNode", "x", {"role": "Master"}), "oldObject": None}

    assert await api.response(request | change) == {"uid": "u-1", "allowed": True}


async def test_what_ends_a_namespace_is_not_told_of_each_object(api: Apiserver) -> None:
    user = {"userInfo": {"username": "system:serviceaccount:kube-system:namespace-controller"}}

    assert "warnings" not in await api.delete("RouterNode", "master", **user)


async def test_a_namespace_that_nobody_watches_is_not_judged(api: Apiserver) -> None:
    passed = await api.write("RouterNode", "other", api.specs.master(), namespace="elsewhere")

    assert passed["allowed"] is True
    assert "does not watch" in passed["warnings"][0]


@pytest.mark.parametrize("document", [None, {}, {"request": {"uid": "u"}}, {"request": {"object": {}}}])
async def test_what_is_no_review_of_an_object_is_said_to_be_none(api: Apiserver, document: object) -> None:
    with pytest.raises(NoReview):
        await api.validator.answer(document)
