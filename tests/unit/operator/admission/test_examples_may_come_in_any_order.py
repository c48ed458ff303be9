"""`kubectl apply` of a cluster in whatever order: what needs another object passes, and at the end all of it is accepted."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from turnout_api.resolve import WAITING, YIELDING, Standing, declare, resolve
from turnout_api.resources import GROUP
from turnout_operator.placement import InCluster

FOLDER = Path(__file__).parents[4] / "examples" / "kubernetes"


def examples() -> list[dict[str, Any]]:
    texts = [path.read_text(encoding="utf-8") for path in sorted(FOLDER.rglob("*.yaml"))]
    found = [document for text in texts for document in yaml.safe_load_all(text)]
    return [manifest for manifest in found if manifest["apiVersion"].startswith(f"{GROUP}/")]


@pytest.mark.parametrize("seed", range(20))
def test_none_is_refused(seed: int) -> None:
    manifests = examples()
    random.Random(seed).shuffle(manifests)  # noqa: S311 - an order that can be repeated
    standing = Standing([], [], placement=InCluster(), last_accepted={}, ledger={})

    objects = [declare(manifest) for manifest in manifests]
    for one in objects:
        trial = standing.try_put(one)
        assert [problem for problem in trial.problems if problem.reason not in WAITING | YIELDING] == []
        assert trial.verdict is not None
        standing.put(one, trial.verdict)

    assert len(objects) >= 8
    resolution = resolve(objects, placement=InCluster(), generation=0)
    assert [str(verdict) for verdict in resolution.verdicts if not verdict.accepted] == []
