"""Metrics of one router, in a registry of their own so that several routers live in one process.

Label values are names that somebody declared; a model that a client made up is counted as `unknown`, so that the number
of series is bounded by the configuration.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property

from prometheus_client import CollectorRegistry, Counter
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Sample:
    """One value of a gauge that is read when somebody asks."""

    name: str
    help: str
    labels: dict[str, str]
    value: float


class _Readings(Collector):
    def __init__(self, read: Callable[[], Iterable[Sample]]) -> None:
        self._read = read

    def collect(self) -> Iterable[GaugeMetricFamily]:
        families: dict[str, GaugeMetricFamily] = {}
        for sample in self._read():
            family = families.get(sample.name)
            if family is None:
                family = families[sample.name] = GaugeMetricFamily(sample.name, sample.help, labels=list(sample.labels))
            family.add_metric(list(sample.labels.values()), sample.value)
        return families.values()


class Metrics:
    """Counters that the router writes, gauges that are read from their owners."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._children: dict[tuple[str, str, str], Counter] = {}
        self._deciding: dict[tuple[str, str, str], Counter] = {}

    @cached_property
    def requests(self) -> Counter:
        return self._counter("requests", "Client requests that ended.", "model", "node", "outcome")

    @cached_property
    def refused(self) -> Counter:
        return self._counter("refused", "Requests that the router answered itself.", "code")

    @cached_property
    def failovers(self) -> Counter:
        return self._counter("failovers", "Requests that another endpoint was asked for.", "model", "kind")

    @cached_property
    def ejections(self) -> Counter:
        return self._counter(
            "ejections", "Times that an endpoint was left alone because it kept failing.", "node", "model"
        )

    @cached_property
    def rule_decisions(self) -> Counter:
        return self._counter(
            "rule_decisions", "Requests to a frontend model, by the rule that decided.", "frontend", "rule", "action"
        )

    @cached_property
    def polls_failed(self) -> Counter:
        return self._counter("polls_failed", "Polls of a node that failed.", "url")

    @cached_property
    def records_dropped(self) -> Counter:
        return self._counter("records_dropped", "Rows that the store could not take in time.", "table")

    @cached_property
    def decisions(self) -> Counter:
        return self._counter("lending_decisions", "Rows of the decision log.", "kind", "outcome", "reason")

    @cached_property
    def logins(self) -> Counter:
        return self._counter("logins", "Attempts of people to sign in: right, wrong or throttled.", "outcome")

    @cached_property
    def offload_events(self) -> Counter:
        return self._counter("offload_events", "Queue events that owners reported to this master.", "trigger")

    def request_ended(self, model: str, node: str, outcome: str) -> None:
        """Count one request; children are kept, as looking one up by labels costs more than the increment."""
        key = (model, node, outcome)
        child = self._children.get(key)
        if child is None:
            child = self._children[key] = self.requests.labels(*key)
        child.inc()

    def decided(self, frontend: str, rule: str, action: str) -> None:
        """Count one decision. The labels are names of the configuration, so they are as many as that has rules."""
        key = (frontend, rule, action)
        child = self._deciding.get(key)
        if child is None:
            child = self._deciding[key] = self.rule_decisions.labels(*key)
        child.inc()

    def read_from(self, read: Callable[[], Iterable[Sample]]) -> None:
        """Gauges that are computed when somebody scrapes."""
        self.registry.register(_Readings(read))

    def _counter(self, name: str, text: str, *labels: str) -> Counter:
        return Counter(f"turnout_{name}", text, labels, registry=self.registry)
