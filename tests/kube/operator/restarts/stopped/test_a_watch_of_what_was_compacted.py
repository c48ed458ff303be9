"""An API server that was away for a moment, and cannot tell what happened meanwhile: watches expire (410), and what changed is acted on."""

import pytest

LONG = ("--lease-duration", "1h")
"""The operator goes on leading: nothing but its watches can tell it."""


@pytest.fixture
def settled(objects, start, manifests):
    """An operator that does no round without an event, and has none left."""
    objects.apply(*manifests.all(), manifests.frontend("assistant", "cc11"))
    operator = start(*LONG, resync=start.NEVER)
    objects.accepted("frontendmodel", "assistant")
    for node in ("master", "gpu-a", "gpu-b"):
        objects.condition(node, "Ready", "Unreachable")  # the last that becomes known
    return operator


class Meanwhile:
    """What the other API server is told while the first is away."""

    def __init__(self, servers, elsewhere) -> None:
        self._servers = servers
        self._elsewhere = elsewhere

    def apply(self, manifest) -> None:
        self._amid(lambda: self._elsewhere.apply(manifest))

    def delete(self, kind: str, name: str) -> None:
        self._amid(lambda: self._elsewhere.delete(kind, name))

    def _amid(self, change) -> None:
        self._servers.stop()
        seen = self._servers.version()
        change()
        self._servers.compact()
        self._servers.start()
        assert '"code":410' in self._servers.watch(seen)


@pytest.fixture
def meanwhile(servers, elsewhere):
    return Meanwhile(servers, elsewhere)


@pytest.mark.timeout(600)
def test_what_went_came_or_changed_meanwhile_is_acted_on(settled, meanwhile, objects, until, manifests):
    def frontends() -> set[str]:
        return {frontend["name"] for frontend in objects.config("master")["frontends"]}

    assert "assistant" in frontends()

    meanwhile.delete("frontendmodel", "assistant")  # on its own: anything else would wake the operator

    until(lambda: "assistant" not in frontends(), "what went was not noticed")

    meanwhile.apply(manifests.frontend("later", "cc11"))

    until(lambda: "later" in frontends(), "what came was not noticed")

    meanwhile.apply(manifests.slave("gpu-a", 2048))

    objects.accepted("routernode", "gpu-a")
    assert objects.config("gpu-a")["models"]["local"][0]["context_window"] == 2048
    assert settled.metric("turnout_operator_terms_total") == 1
    assert "Traceback" not in settled.log()
