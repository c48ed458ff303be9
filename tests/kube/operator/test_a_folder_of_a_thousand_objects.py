"""`kubectl apply -f FOLDER` with a thousand files is a handful of rounds, as the operator's metric counts them."""

import time
from pathlib import Path
from typing import Any

import pytest
import yaml

COUNT = 1000
CUTS, LONGEST_BURST_S = 5, 16.0
"""A burst that goes on is cut after 1, 2, 4, 8 s, and from then on each 16 s: see `turnout_operator.worker`."""
BESIDE = 5
"""Rounds: the first change's, what comes after the last one, and news of routers, which nobody answers for here."""
PAUSES_S = 8.0
"""On a busy machine kubectl itself is held up now and then for longer than the operator waits for the next change."""
PATIENCE_S = 600.0


@pytest.mark.timeout(1800)  # kubectl asks twice for each object, and the machine may do much else
def test_a_thousand_objects_applied_at_once_are_a_handful_of_rounds(
    objects: Any, start: Any, manifests: Any, tmp_path: Path
) -> None:
    objects.apply(*manifests.all())
    operator = start(resync=start.NEVER)
    for name in ("master", "gpu-a", "gpu-b"):
        objects.condition(name, "Ready", "Unreachable")
    folder = tmp_path / "thousand"
    folder.mkdir()
    for number in range(COUNT):
        (folder / f"{number}.yaml").write_text(yaml.safe_dump(manifests.frontend(f"app-{number}", "cc11")))
    before, began = rounds(operator, objects.namespace), time.monotonic()

    objects.cluster.kubectl("apply", "-n", objects.namespace, "-f", str(folder))

    applied_s = time.monotonic() - began
    while judged(objects) < COUNT:
        assert time.monotonic() - began - applied_s < PATIENCE_S, f"{judged(objects)} of {COUNT} are judged"
        time.sleep(1.0)
    took = rounds(operator, objects.namespace) - before
    at_most = BESIDE + CUTS + applied_s // LONGEST_BURST_S + applied_s // PAUSES_S
    assert took <= min(at_most, COUNT / 10), f"kubectl took {applied_s:.0f} s"
    assert operator.facts()["trouble"] == ""


def rounds(operator: Any, namespace: str) -> float:
    """Good and failed ones."""
    series = f'turnout_operator_rounds_total{{namespace="{namespace}",outcome="%s"}}'
    return float(sum(operator.metric(series % outcome) for outcome in ("good", "failed")))


def judged(objects: Any) -> int:
    """Frontend models that have a status."""
    each = "{range .items[*]}{.status.observedGeneration}{'\\n'}{end}"
    shown = objects.cluster.kubectl("get", "fm", "-n", objects.namespace, "-o", f"jsonpath={each}").stdout
    return sum(bool(line.strip()) for line in shown.splitlines())
