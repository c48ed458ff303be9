"""docs/metrics.md lists what the operator's `/metrics` shows: names, types and labels, no more and no less."""

import re
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

from prometheus_client.parser import text_string_to_metric_families

from turnout_operator import metrics
from turnout_operator.hearing import Hearing
from turnout_operator.metrics import Parts
from turnout_operator.worker import Worker

PAGE = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| `(turnout_\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)


async def nothing(_namespace: str) -> int:
    return 0


def test_every_metric_is_documented_and_every_documented_one_is_there():
    parts = Parts(
        workers=[Worker("gpus", nothing, resync_s=1.0)],
        hearing=Hearing([("gpus", "routernodes")]),
        leader=SimpleNamespace(leads=True, terms=1),
        api=SimpleNamespace(answers=Counter({("GET", 200): 3})),
    )
    shown = {
        sample.name: (family.type, frozenset(sample.labels))
        for family in text_string_to_metric_families(metrics.text_of(parts).decode())
        for sample in family.samples
    }

    page = PAGE.partition("# Metrics of the operator")[2]
    documented = {name: (kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in ROW.findall(page)}
    assert shown == documented
