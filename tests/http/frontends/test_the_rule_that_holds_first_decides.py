"""A request to a frontend model goes where the first rule that holds sends it, and every answer says which rule that was."""

from typing import Any

import openai
import pytest

from turnout_router.access import Caller


@pytest.fixture
async def served(farm: Any, rules: Any) -> Any:
    assistant = rules.frontend(
        "assistant",
        rules.deny("long", 403, "too long for us", minOutputTokens=9000),
        rules.deny("busy", 429, "not today", headers={"x-rush": {"exact": "yes"}}),
        rules.deny("gone", 404, "there is no such thing", users=["nobody"]),
        rules.deny("odd", 422, "", metadata={"odd": "yes"}),
        rules.deny("twice", 409, "once is enough", users=["eager"]),
        rules.route("tools", "b", tag="tooling", hasTools=True),
        rules.jump("policy", "shared", stream=False),
        defaults=("a",),
    )
    shared = rules.frontend("shared", rules.route("vip", "b", roles=["vip"]), defaults=("a", "b"))
    empty = rules.frontend("empty", defaults=("nowhere",))
    return await farm.grow("a", "b", frontends=[assistant, shared, empty])


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {}}}]


async def test_the_answer_names_the_rule_the_model_and_what_the_client_asked_for(served: Any) -> None:
    by_rule = await served.ask("assistant", tools=TOOLS)
    by_defaults = await served.ask("assistant", stream=True)
    by_jump = await served.ask("assistant")

    assert (by_rule.rule, by_rule.model, by_rule.json()["model"]) == ("assistant/tools", "b", "assistant")
    assert (by_defaults.rule, by_defaults.model) == ("assistant/defaults", "a")
    assert b'"model": "assistant"' in by_defaults.body
    assert by_jump.rule == "shared/defaults"


async def test_a_request_that_names_a_model_has_no_rule(served: Any) -> None:
    reply = await served.ask("a")
    assert (reply.status, reply.model, reply.rule) == (200, "a", "")


async def test_each_row_says_which_rule_and_what_it_cost_in_tokens(served: Any) -> None:
    await served.ask("assistant", tools=TOOLS)
    await served.ask("assistant", max_tokens=9000)
    await served.ask("a")

    asked, denied, direct = served.records()
    assert [asked[k] for k in ("frontend", "rule", "tag", "model", "input_tokens", "output_tokens")] == [
        "assistant", "assistant/tools", "tooling", "b", 7, 3,
    ]  # fmt: skip
    assert [denied[k] for k in ("frontend", "rule", "model", "status", "code", "attempts")] == [
        "assistant", "assistant/long", "", 403, "denied_by_rule", 0,
    ]  # fmt: skip
    assert (direct["frontend"], direct["rule"], direct["input_tokens"]) == ("", "", None)
    assert served.metric("turnout_rule_decisions_total", rule="assistant/tools", action="route") == 1
    assert served.metric("turnout_rule_decisions_total", rule="assistant/long", action="deny") == 1


async def test_a_deny_is_an_exception_of_its_status_with_its_message(served: Any, openai_api: Any) -> None:
    async def ask(**given: Any) -> Any:
        message = [{"role": "user", "content": "hi"}]
        return await openai_api.chat.completions.create(model="assistant", messages=message, **given)

    with pytest.raises(openai.PermissionDeniedError, match="too long for us"):
        await ask(max_tokens=9000)
    with pytest.raises(openai.RateLimitError, match="not today") as limited:
        await ask(extra_headers={"x-rush": "yes"})
    with pytest.raises(openai.NotFoundError, match="there is no such thing"):
        await ask(user="nobody")
    with pytest.raises(openai.UnprocessableEntityError, match="refused by the rule assistant/odd") as odd:
        await ask(metadata={"odd": "yes"})

    assert limited.value.response.headers["Retry-After"]
    assert odd.value.response.headers["x-turnout-rule"] == "assistant/odd"
    assert served.asked == {"a": 0, "b": 0}


async def test_a_client_that_retries_is_refused_once(served: Any, openai_api: Any) -> None:
    eager = openai_api.with_options(max_retries=2)
    with pytest.raises(openai.ConflictError, match="once is enough"):
        await eager.chat.completions.create(model="assistant", messages=[], user="eager")

    assert [row["rule"] for row in served.records()] == ["assistant/twice"]


@pytest.mark.usefixtures("served")
async def test_nothing_serving_is_no_deny(openai_api: Any) -> None:
    with pytest.raises(
        openai.InternalServerError, match="nothing that 'empty' leads to by empty/defaults serves now"
    ) as e:
        await openai_api.chat.completions.create(model="empty", messages=[])
    assert e.value.status_code == 503
    assert e.value.response.headers["Retry-After"]
    assert e.value.response.headers["x-turnout-rule"] == "empty/defaults"
    assert e.value.code == "nothing_serving"


@pytest.mark.usefixtures("served")
async def test_what_no_target_can_ever_do_is_a_bad_request(openai_api: Any) -> None:
    with pytest.raises(openai.BadRequestError, match="Embedding"):
        await openai_api.embeddings.create(model="assistant", input="x")


@pytest.mark.usefixtures("served")
async def test_a_name_that_is_nobodys_is_told_the_nearest_frontend_model(openai_api: Any) -> None:
    with pytest.raises(openai.NotFoundError, match="did you mean 'assistant'"):
        await openai_api.chat.completions.create(model="asistant", messages=[])


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/v1/messages", {"type": "error", "error": {"type": "permission_error", "message": "too long for us"}}),
        ("/api/chat", {"error": "too long for us"}),
    ],
)
async def test_a_deny_has_the_shape_of_the_callers_api(served: Any, path: str, said: dict[str, Any]) -> None:
    reply = await served.ask("assistant", path, max_tokens=9000, options={"num_predict": 9000})
    assert reply.status == 403
    assert said.items() <= reply.json().items()


async def test_a_key_is_for_the_name_that_was_asked(served: Any) -> None:
    served.add_key("the key of ann", Caller("ann", frozenset({"vip"}), frozenset({"assistant"})))
    ann = {"Authorization": "Bearer the key of ann"}

    through = await served.ask("assistant", headers=ann)
    assert (through.status, through.rule, through.model) == (200, "shared/vip", "b")
    assert (await served.ask("b", headers=ann)).status == 403
    assert (await served.ask("shared", headers=ann)).status == 403


async def test_lists_show_the_names_that_a_key_may_use_and_that_serve(served: Any) -> None:
    served.add_key("the key of ann", Caller("ann", models=frozenset({"assistant", "empty"})))
    ann = {"Authorization": "Bearer the key of ann"}

    async def names(path: str, key: str, at: str, **options: Any) -> list[str]:
        async with served.client.get(path, **options) as response:
            return [model[at] for model in (await response.json())[key]]

    assert await names("/v1/models", "data", "id") == ["assistant", "shared", "a", "b"]
    assert await names("/v1/models", "data", "id", headers=ann) == ["assistant"]
    assert await names("/api/tags", "models", "name") == ["assistant", "shared", "a", "b"]
    async with served.client.post("/api/show", json={"model": "assistant:latest"}) as response:
        assert (await response.json())["capabilities"] == ["completion", "tools"]
    async with served.client.get("/v1/models/empty") as response:
        assert response.status == 503


async def test_ollamas_default_tag_is_no_part_of_a_frontend_models_name(served: Any) -> None:
    reply = await served.ask("assistant:latest", "/api/chat", stream=False)
    assert (reply.status, reply.json()["model"]) == (200, "assistant:latest")


async def test_without_explanation_headers_no_answer_names_its_rule(farm: Any, rules: Any) -> None:
    f = rules.frontend("f", rules.deny("no", stream=True), defaults=("a",))
    await farm.grow("a", frontends=[f], explanation_headers=False)
    assert [(await farm.ask(stream=stream)).rule for stream in (True, False)] == ["", ""]
