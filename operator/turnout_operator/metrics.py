"""What `/metrics` shows of the operator. It is read from what the parts know anyway; docs/metrics.md lists it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from turnout_operator.api import Api
from turnout_operator.hearing import Hearing
from turnout_operator.leader import Leader
from turnout_operator.worker import Worker


@dataclass(frozen=True, slots=True)
class Parts:
    """Of the process, as far as it is measured."""

    workers: Sequence[Worker]
    hearing: Hearing
    leader: Leader
    api: Api


def text_of(parts: Parts) -> bytes:
    """In Prometheus's text format."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(parts))
    return generate_latest(registry)


class _Collector(Collector):
    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def collect(self) -> Iterator[Metric]:
        yield from self._rounds()
        yield self._watches()
        yield self._requests()
        leader = self._parts.leader
        yield GaugeMetricFamily("turnout_operator_leads", "1 = it holds the Lease, and writes.", int(leader.leads))
        yield CounterMetricFamily("turnout_operator_terms", "Times that it became the leader.", leader.terms)

    def _rounds(self) -> Iterator[Metric]:
        rounds = CounterMetricFamily(
            "turnout_operator_rounds", "Rounds: everything read and resolved once.", labels=["namespace", "outcome"]
        )
        writes = CounterMetricFamily("turnout_operator_writes", "Objects that rounds wrote.", labels=["namespace"])
        busy = CounterMetricFamily("turnout_operator_round_seconds", "Spent in rounds.", labels=["namespace"])
        age = GaugeMetricFamily(
            "turnout_operator_round_age_seconds", "Since the last good round.", labels=["namespace"]
        )
        for worker in self._parts.workers:
            rounds.add_metric([worker.namespace, "good"], worker.rounds)
            rounds.add_metric([worker.namespace, "failed"], worker.failed)
            writes.add_metric([worker.namespace], worker.writes)
            busy.add_metric([worker.namespace], worker.busy_s)
            age.add_metric([worker.namespace], worker.age_s())
        yield from (rounds, writes, busy, age)

    def _watches(self) -> Metric:
        age = GaugeMetricFamily(
            "turnout_operator_watch_age_seconds",
            "Since the API server last answered a list or a watch of these objects.",
            labels=["namespace", "resource"],
        )
        if self._parts.leader.leads:  # others do not watch
            for stream, seconds in self._parts.hearing.ages().items():
                age.add_metric(list(stream), seconds)
        return age

    def _requests(self) -> Metric:
        requests = CounterMetricFamily(
            "turnout_operator_api_requests", "Requests to the API server, watches apart.", labels=["method", "code"]
        )
        for (method, code), count in sorted(self._parts.api.answers.items()):
            requests.add_metric([method, str(code)], count)
        return requests
