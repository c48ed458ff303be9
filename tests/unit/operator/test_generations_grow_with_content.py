"""The generation of a router's configuration: it grows with the content, always, and only then."""

import base64
from datetime import timedelta

import yaml

from turnout_operator.state import Kept


def test_only_the_routers_that_a_change_reaches_get_a_new_generation(namespace, specs):
    namespace.round()
    before = {name: namespace.generation(name) for name in ("master", "gpu-a", "gpu-b")}
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", parallel=1))

    namespace.round()

    assert namespace.generation("gpu-a") > before["gpu-a"]
    assert namespace.generation("gpu-b") == before["gpu-b"]


def test_the_generation_stands_in_the_file(namespace):
    namespace.round()

    text = base64.b64decode(namespace.observed.secrets["gpu-a"]["data"]["router.yaml"])

    assert yaml.safe_load(text)["generation"] == namespace.generation("gpu-a")


def test_a_clock_that_went_back_does_not_take_the_generation_back(namespace, specs):
    namespace.round()
    before = namespace.generation("gpu-a")
    namespace.now -= timedelta(days=1)
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", parallel=1))

    namespace.round()

    assert namespace.generation("gpu-a") == before + 1


def test_a_generation_that_nobody_remembers_is_passed(namespace):
    namespace.round()
    before = namespace.generation("gpu-a")

    namespace.round(kept=Kept(), secrets={})

    assert namespace.generation("gpu-a") > before


def test_a_node_that_is_deleted_and_made_anew_goes_on_from_a_higher_generation(namespace, specs):
    namespace.round()
    before = namespace.generation("gpu-a")
    del namespace.objects["RouterNode", "gpu-a"]
    namespace.round()
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a"))

    planned = namespace.round()

    assert namespace.generation("gpu-a") > before
    uid = namespace.objects["RouterNode", "gpu-a"]["metadata"]["uid"]
    assert [
        s["metadata"]["ownerReferences"][0]["uid"] for s in planned.secrets if s["metadata"]["name"].endswith("gpu-a")
    ] == [uid]
