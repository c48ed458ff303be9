"""Properties of `resolve` over made-up namespaces."""

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

NAMES = ("a", "b", "c", "d")
NODES = ("master", "gpu-a", "gpu-b", "gpu-c")
SETTINGS = settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])


def targets(draw):
    return {"targets": [{"model": draw(st.sampled_from(NAMES))}]}


@st.composite
def manifests(draw, make):
    """A master that may be missing, nodes, and objects that clash, loop and point to nothing now and then."""
    objects = [make.master()] if draw(st.integers(0, 9)) else []
    objects += [draw(one_object(make)) for _ in range(draw(st.integers(0, 10)))]
    return list({(m["kind"], m["metadata"]["name"]): m for m in draw(st.permutations(objects))}.values())


@st.composite
def one_object(draw, make):
    """Any object of the small world of NAMES and NODES, acceptable or not."""
    name, other, node = (draw(st.sampled_from(pool)) for pool in (NAMES, NAMES, NODES))
    model = {"id": other, "contextWindow": draw(st.sampled_from([1024, 2048]))}
    node_spec = draw(st.sampled_from([{}, {}, {"role": "Master"}, {"masterRef": {"name": "gpu-a"}}]))
    helper = f"{draw(st.sampled_from(NODES))}/{draw(st.sampled_from(NAMES))}"
    choices = [
        make.node(node, model, **node_spec),
        make.node(node, model, **node_spec),
        make.jump(name, other),
        make.frontend(name, modelName=other, defaults=targets(draw)),
        make.link(name, f"{node}/{other}", helper),
        make.recipe(name, other, {"capability": "Text", "node": node, "model": name}),
        make.frontend(name, {"when": {"hasImage": True}} | targets(draw)),
        make.pool(name, other),
    ]
    return draw(st.sampled_from(choices))


@st.composite
def bad_object(draw, make):
    """An edit that is not acceptable, or only in some worlds."""
    name, other, node = (draw(st.sampled_from(pool)) for pool in (NAMES, NAMES, NODES))
    choices = [
        make.node(node, {"id": other}, masterRef={"name": "nobody"}),
        make.node(node, {"id": other}, role="Master"),
        make.node(node, {"id": other, "backend": "nobody"}),
        make.jump(name, *NAMES[: draw(st.integers(1, 4))]),
        make.frontend(name, {"when": {"hasImage": True}} | targets(draw)),
        make.frontend(name, modelName=other, defaults=targets(draw)),
        make.recipe(name, other, {"capability": "Video", "node": node, "model": name}),
        make.link(name, f"{node}/{other}", "nobody/a"),
    ]
    return draw(st.sampled_from(choices))


def key_of(manifest):
    return manifest["kind"], manifest["metadata"]["name"]


def outcome(resolution):
    return {(v.kind, v.name): (v.reason, v.message) for v in resolution.verdicts}


@SETTINGS
@given(data=st.data())
def test_resolving_again_changes_nothing(make, data):
    objects = data.draw(manifests(make))

    first = make.resolved(*objects)
    second = make.resolved(*objects, before=first)

    assert second.configs == first.configs
    assert second.ledger == first.ledger
    assert second.last_accepted == first.last_accepted
    assert {key: reason for key, (reason, _) in outcome(second).items()} == {
        key: reason for key, (reason, _) in outcome(first).items()
    }


@SETTINGS
@given(data=st.data())
def test_objects_that_are_all_accepted_may_come_in_any_order(make, data):
    declared = data.draw(manifests(make))
    verdicts = make.resolved(*declared).verdicts
    peaceful = [m for m, v in zip(declared, verdicts, strict=True) if v.accepted and not named_anew(v)]
    first = make.resolved(*peaceful)
    assume(all(v.accepted for v in first.verdicts))

    second = make.resolved(*data.draw(st.permutations(peaceful)))

    assert second.configs == first.configs
    assert second.ledger == first.ledger
    assert outcome(second) == outcome(first)


def named_anew(verdict):
    """Who has the bare name is a matter of order."""
    return any(warning.reason == "NameSuffixed" for warning in verdict.warnings)


@SETTINGS
@given(data=st.data())
def test_an_edit_that_is_refused_changes_no_configuration(make, data):
    objects = data.draw(manifests(make))
    before = make.resolved(*objects)
    again = make.resolved(*objects, before=before)
    served = sorted({(k.kind, k.name) for k in before.served})
    edits = [e for e in data.draw(st.lists(bad_object(make), min_size=20, max_size=20)) if key_of(e) in served]
    assume(edits)  # almost always one of so many is an edit of something that is served
    edit = edits[0]
    key = key_of(edit)

    edited = [edit if key_of(m) == key else m for m in objects]
    after = make.resolved(*edited, before=before)

    [verdict] = [v for v in after.verdicts if (v.kind, v.name) == key]
    assume(not verdict.accepted)
    assert verdict.last_good
    assert after.configs == again.configs
    assert after.ledger == again.ledger


@SETTINGS
@given(data=st.data())
def test_what_is_served_never_clashes(make, data):
    objects = data.draw(manifests(make))
    before = make.resolved(*objects)
    after = make.resolved(*data.draw(manifests(make)), before=before)

    for resolution in (before, after):
        roles = [config.cluster.role for config in resolution.configs.values()]
        assert sum(role != "Slave" for role in roles) == (1 if roles else 0)
        if not resolution.master:
            continue
        master = resolution.configs[resolution.master]
        brought = {m.public_name for c in resolution.configs.values() for m in c.models.local}
        exclusive = [f.model_name for f in master.frontends] + [r.public_id for r in master.recipes]
        assert len(exclusive) == len(set(exclusive))
        assert not brought & set(exclusive)
        assert_no_loop({f.name: [r.jump_to for r in f.rules if r.jump_to] for f in master.frontends})


def assert_no_loop(jumps):
    """Takes away what jumps nowhere any more, until nothing is left."""
    left = dict(jumps)
    while left:
        ends = [name for name, destinations in left.items() if not set(destinations) & set(left)]
        assert ends, f"a loop is left among {sorted(left)}"
        for name in ends:
            del left[name]
