"""Whatever a template holds: all of it stays, and a second injection changes nothing."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

NAMES = st.sampled_from(["llama", "exporter", "proxy"])
HOOKS = st.sampled_from([{}, {"preStop": {"sleep": {"seconds": 5}}}, {"postStart": {"exec": {"command": ["x"]}}}])
MOUNTS = st.lists(st.sampled_from(["/models", "/", "/cache"]), unique=True).map(
    lambda paths: [{"name": "weights", "mountPath": path} for path in paths]
)
CONTAINERS = st.lists(
    st.fixed_dictionaries(
        {"name": NAMES, "image": st.just("x")}, optional={"lifecycle": HOOKS, "volumeMounts": MOUNTS}
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda container: container["name"],
)
VOLUMES = st.lists(st.sampled_from(["weights", "turnout-store", "tmp"]), unique=True).map(
    lambda names: [{"name": name, "emptyDir": {}} for name in names]
)
SPECS = st.fixed_dictionaries(
    {"containers": CONTAINERS},
    optional={
        "volumes": VOLUMES,
        "initContainers": st.just([{"name": "download", "image": "x"}]),
        "terminationGracePeriodSeconds": st.integers(0, 5000),
        "securityContext": st.just({"fsGroup": 7}),
        "hostNetwork": st.booleans(),
    },
)


def holds(whole: Any, part: Any) -> bool:
    """Whether all of `part` is in `whole`: keys of mappings, and items of lists in their order."""
    if isinstance(part, dict):
        return all(key in whole and holds(whole[key], value) for key, value in part.items())
    if isinstance(part, list):
        rest = iter(whole)
        return all(any(holds(item, wanted) for item in rest) for wanted in part)
    return bool(whole == part)


@given(spec=SPECS, store=st.sampled_from(["", "/var/lib/turnout", "/models"]))
def test_all_that_is_found_stays_and_nothing_is_done_twice(injecting: Any, spec: dict[str, Any], store: str) -> None:
    inject = injecting(fileRoots=["/models"], **({"storeDir": store} if store else {}))
    template = {"metadata": {"labels": {"turnout.dev/node": "gpu-a"}}, "spec": spec}

    once = inject(template, key="first")
    twice = inject(once.template, key="second")

    assert twice.template == once.template
    assert (once.changed, twice.changed) == (True, False)
    given = spec | {"terminationGracePeriodSeconds": once.template["spec"]["terminationGracePeriodSeconds"]}
    assert holds(once.template, template | {"spec": given})
    assert given["terminationGracePeriodSeconds"] >= max(615, spec.get("terminationGracePeriodSeconds", 0))


@given(spec=SPECS)
def test_no_path_and_no_name_is_there_twice(injecting: Any, spec: dict[str, Any]) -> None:
    inject = injecting(fileRoots=["/models"], sharedDir="/cache/shared", storeDir="/models")
    template = {"metadata": {"labels": {"turnout.dev/node": "gpu-a"}}, "spec": spec}

    done = inject(template).template["spec"]

    paths = [mount["mountPath"] for mount in done["initContainers"][0]["volumeMounts"]]
    names = [volume["name"] for volume in done["volumes"]]
    assert len(paths) == len(set(paths))
    assert len(names) == len(set(names))
