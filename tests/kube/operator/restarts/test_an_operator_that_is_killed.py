"""An operator that is killed after any of its writes: the next one brings the namespace to the same end, and writes nothing twice."""

import signal
from typing import Any

import pytest

QUICK = ("--lease-duration", "1s")
POINTS = [
    "secrets/turnout-state",
    "secrets/turnout-router-gpu-a",
    "secrets/turnout-router-master",
    "routernodes/gpu-a/status",
]


@pytest.fixture
def killed_after(between, behind, until):
    """Starts an operator that is killed when the API server has done a write to this path, before it hears of it. Gives what starts the next."""

    def start() -> Any:
        return behind(*QUICK, resync="1s")

    def killed_after(path: str) -> Any:
        due = [path]

        def kill(asked) -> None:
            made = asked.method == "POST" and asked.path.endswith("/secrets") and path == "secrets/turnout-state"
            if due and asked.writes and (made or path in asked.path):
                due.clear()
                operator.send(signal.SIGKILL)

        between.after = kill
        operator = start()
        until(lambda: not due, f"it wrote no {path}")
        operator.kill()
        return start

    killed_after.start, killed_after.between = start, between
    return killed_after


@pytest.mark.parametrize("point", POINTS)
def test_the_next_one_ends_where_it_would_have(objects, manifests, killed_after, until, point):
    objects.apply(*manifests.all())

    operator = killed_after(point)()

    assert {objects.accepted("routernode", node)["status"] for node in ("master", "gpu-a", "gpu-b")} == {"True"}
    objects.becomes_accepted("routinglink", "a-to-b")

    def rests() -> bool:
        before = objects.versions()
        operator.more_rounds(2)
        return objects.versions() == before

    for node in ("master", "gpu-a", "gpu-b"):
        objects.condition(node, "Ready", "Unreachable")  # the last that becomes known: asked twice, with a pause
    until(rests, "it goes on writing")
    assert rests()
    made = [
        asked for asked in killed_after.between.writes() if asked.method == "POST" and asked.path.endswith("/secrets")
    ]
    assert len(made) == 1, "what is remembered is made once"


@pytest.mark.parametrize("point", ["secrets/turnout-state", "secrets/turnout-router-gpu-a"])
def test_what_was_accepted_last_is_kept_when_it_is_killed_amid_a_change(objects, manifests, killed_after, point):
    objects.apply(*manifests.all())
    first = killed_after.start()
    objects.accepted("routinglink", "a-to-b")
    assert first.stop() == 0
    objects.apply(manifests.slave("gpu-a", 2048))
    start = killed_after(point)
    broken = manifests.slave("gpu-a", 512)
    broken["spec"]["backends"][0]["family"] = "Whisper"
    objects.apply(broken)

    start()

    assert objects.accepted("routernode", "gpu-a")["status"] == "False"
    assert objects.config("gpu-a")["models"]["local"][0]["context_window"] == 2048
