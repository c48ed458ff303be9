"""Over made-up namespaces: a trial judges a few objects, and says what `resolve` says when it judges all of them."""

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnout_api.resolve import Key, Standing, declare

NAMES = ("a", "b", "c")
NODES = ("master", "gpu-a", "gpu-b")
SETTINGS = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@st.composite
def one_object(draw, make):
    """Any object of the small world of NAMES and NODES, acceptable or not."""
    name, other, third = (draw(st.sampled_from(NAMES)) for _ in range(3))
    node, helper = (draw(st.sampled_from(NODES)) for _ in range(2))
    model = {"id": other, "contextWindow": draw(st.sampled_from([1024, 2048]))}
    hashes = draw(st.sampled_from([{}, {"weightsHash": f"sha256:{'a' * 64}"}]))
    node_spec = draw(st.sampled_from([{}, {}, {"role": "Master"}, {"masterRef": {"name": "gpu-a"}}]))
    defaults = {"targets": [draw(st.sampled_from([{"model": third}, {"pool": third}]))]}
    body = {"model": other, "messages": [{"role": "user", "content": "hello"}]}
    expect = draw(st.sampled_from([{"model": third}, {"rule": f"{third}/defaults"}, {"rule": f"{third}/rule-0"}]))
    test = {"request": {"path": "/v1/chat/completions", "body": body}, "expect": expect}
    choices = [
        make.master(model),
        make.node(node, model | hashes, **node_spec),
        make.node(node, model | hashes, {"id": "d"}),
        make.jump(name, other),
        make.jump(name, other, third),
        make.frontend(name, {"action": "Jump", "jumpTo": other}),
        make.frontend(name, defaults=defaults),
        make.frontend(name, modelName=other, defaults=defaults),
        make.frontend(name, {"when": {"hasImage": True}, "targets": [{"model": third}]}),
        make.link(name, f"{node}/{other}", f"{helper}/{third}"),
        make.guardian(name, {"node": node}, helper, other),
        make.recipe(name, other, {"capability": "Text", "node": node, "model": third}),
        make.pool(name, other, third),
        make.object("RouteTest", name, test | {"required": draw(st.booleans())}),
    ]
    return draw(st.sampled_from(choices))


def key_of(manifest):
    return Key(manifest["kind"], manifest["metadata"]["name"])


def drawn(data, make):
    objects = [make.master()] + [data.draw(one_object(make)) for _ in range(data.draw(st.integers(0, 12)))]
    return {key_of(m): m for m in objects}


def standing(objects, resolution, make):
    return Standing(
        [declare(m) for m in objects.values()],
        resolution.verdicts,
        placement=make.Placed(),
        last_accepted=resolution.last_accepted,
        ledger=resolution.ledger,
    )


def said(problems):
    return {(problem.reason, problem.message, problem.path) for problem in problems}


def rounds(make, data):
    """Objects, and what a round says of them that came after another one."""
    first = make.resolved(*drawn(data, make).values())
    objects = drawn(data, make)
    second = make.resolved(*objects.values(), before=first)
    return objects, make.resolved(*objects.values(), before=second)


def lost(before, after):
    accepted = {Key(v.kind, v.name) for v in before.verdicts if v.accepted}
    return {Key(v.kind, v.name) for v in after.verdicts if not v.accepted} & accepted


@SETTINGS
@given(data=st.data())
def test_of_the_object_that_is_written(make, data):
    objects, before = rounds(make, data)
    written = data.draw(one_object(make))
    key = key_of(written)

    trial = standing(objects, before, make).try_put(declare(written))

    after = make.resolved(*({**objects, key: written}.values()), before=before)
    [verdict] = [v for v in after.verdicts if (v.kind, v.name) == key]
    assert said(trial.verdict.problems) == said(verdict.problems)
    assert said(trial.verdict.warnings) == said(verdict.warnings)
    assert trial.verdict.last_good == verdict.last_good


@SETTINGS
@given(data=st.data())
def test_of_others_that_are_accepted_no_more(make, data):
    objects, before = rounds(make, data)
    written = data.draw(one_object(make))
    key = key_of(written)

    trial = standing(objects, before, make).try_put(declare(written))

    after = make.resolved(*({**objects, key: written}.values()), before=before)
    assert {other for other, _ in trial.others} >= lost(before, after) - {key}


@SETTINGS
@given(data=st.data())
def test_of_others_when_an_object_goes(make, data):
    objects, before = rounds(make, data)
    key = data.draw(st.sampled_from(sorted(objects)))

    trial = standing(objects, before, make).try_remove(key)

    after = make.resolved(*(m for k, m in objects.items() if k != key), before=before)
    refused = {other for other, _ in trial.others}
    assert refused >= lost(before, after) - {key}
