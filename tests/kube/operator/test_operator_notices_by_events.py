"""What comes, changes and goes is noticed by its event: the interval between rounds is longer than the test."""

from turnout_api.config import RouterConfig


def slaves(objects) -> list[str]:
    return RouterConfig.model_validate(objects.config("master")).cluster.slave_urls


def test_a_node_that_comes_changes_and_goes(objects, start, manifests, until):
    start(resync=start.NEVER)
    objects.apply(manifests.token, manifests.master(), manifests.slave("gpu-a"))
    urls = manifests.urls
    until(lambda: slaves(objects) == [urls["gpu-a"]], "the first objects were not noticed")

    objects.apply(manifests.slave("gpu-b"))
    until(lambda: slaves(objects) == [urls["gpu-a"], urls["gpu-b"]], "the new node was not noticed")

    objects.apply(manifests.slave("gpu-b", publicURL="http://127.0.0.1:9"))
    until(lambda: slaves(objects) == [urls["gpu-a"], "http://127.0.0.1:9"], "the edit was not noticed")

    objects.delete("routernode", "gpu-a")
    until(lambda: slaves(objects) == ["http://127.0.0.1:9"], "the deletion was not noticed")


def test_an_operator_that_starts_first_waits_for_its_first_objects(objects, start, manifests):
    operator = start(resync=start.NEVER)
    operator.more_rounds(0)

    objects.apply(*manifests.all())

    objects.becomes_accepted("routinglink", "a-to-b")
