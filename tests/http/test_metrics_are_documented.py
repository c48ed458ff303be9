"""docs/metrics.md lists what `/metrics` shows: names, types and labels, no more and no less."""

import re
from functools import cached_property
from pathlib import Path
from typing import Any, get_args

from prometheus_client import Counter
from prometheus_client.parser import text_string_to_metric_families

from turnout_router.gateway.ejection import EJECT_AFTER, Verdict
from turnout_router.metrics import Metrics
from turnout_router.store.records import Outcome

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text(encoding="utf-8")
PAGE = PAGE.partition("# Metrics of the operator")[0]
ROW = re.compile(r"^\| `(turnout_\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)


def touch(metrics: Metrics) -> None:
    """Give every counter a sample: one without is not shown, and its labels are not either."""
    for name, kind in vars(Metrics).items():
        if isinstance(kind, cached_property):
            counter = getattr(metrics, name)
            assert isinstance(counter, Counter), f"{name}: this test knows counters only"
            give_a_child(counter)


def give_a_child(counter: Counter) -> None:
    for count in range(1, 6):
        try:
            counter.labels(*["x"] * count)
        except ValueError:
            continue
        return


def shown(text: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Name → type and labels of what a scrape shows."""
    return {
        sample.name: (family.type, frozenset(sample.labels))
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_created")
    }


async def test_every_metric_of_a_scrape_is_documented_and_every_documented_one_is_there(
    cluster: Any, client: Any
) -> None:
    backend = await cluster.backend(models=("local-m",), decode_tokens_per_second=5)
    slave = await cluster.slave("gpu-a", backend.url, cluster.model("local-m", "m"))
    key = f"clients: [{{name: ann, keySha256: {'a' * 64}, budgetMicrosPerDay: 5}}]"
    cluster.access = {"clients_file": cluster.secret("clients.yaml", key)}
    master = await cluster.master()
    body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 1000, "stream": True}
    found = {}
    async with client.post("/v1/chat/completions", json=body) as stream:  # some gauges are of what is open
        assert await stream.content.readline()
        for router in (master, slave):
            touch(router.metrics)
            for _ in range(EJECT_AFTER):
                router.endpoints.ejections.ended(("x", "x"), Verdict.BAD, 0.0)
            async with client.get(f"http://127.0.0.1:{router.health_port}/metrics") as response:
                found |= shown(await response.text())
    documented = {name: (kind, frozenset(re.findall(r"`(\w+)`", labels))) for name, kind, labels in ROW.findall(PAGE)}
    assert found == documented


def test_every_outcome_of_a_request_is_documented() -> None:
    table = PAGE.split("| `outcome` | meaning |")[1].split("\n\n")[0]
    assert set(re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)) == set(get_args(Outcome))
