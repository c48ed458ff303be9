"""A namespace in memory: what `plan` says is carried out on it, as the API server would."""

import json
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from turnout_api.resolve import Key, declare, resolve
from turnout_operator.children import ChildKey, RouterPods, key_of
from turnout_operator.injection import How, Injected, Nodes, inject
from turnout_operator.placement import InCluster
from turnout_operator.plan import Observed, Outcome, Plan, plan
from turnout_operator.readings import ModelSaid, NodeSaid, Said
from turnout_operator.routerpod import RouterImage
from turnout_operator.state import Kept
from turnout_operator.statuses import StatusWrite

Manifest = dict[str, Any]
START = datetime(2026, 1, 1, tzinfo=UTC)
TOKEN = {"name": "token", "key": "token"}


@dataclass(frozen=True, slots=True)
class Done(Plan):
    """A plan, and the statuses that were written after it."""

    statuses: tuple[StatusWrite, ...]


class Namespace:
    """Objects, Secrets of routers and the remembered state."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Manifest] = {}
        self.observed = Observed(objects=[], kept=Kept(), secrets={})
        self.now = START
        self._created = 0

    def put(self, kind: str, name: str, spec: Manifest) -> Manifest:
        """Create or replace an object, with a new generation."""
        self._created += 1
        before = self.objects.get((kind, name))
        metadata = {
            "name": name,
            "namespace": "test",
            "uid": f"uid-{self._created}",
            "creationTimestamp": f"2026-01-01T00:00:{self._created:02}Z",
            "generation": 1,
        }
        if before:
            metadata = before["metadata"] | {"generation": before["metadata"]["generation"] + 1}
        status = (before or {}).get("status", {})
        self.objects[kind, name] = {"kind": kind, "metadata": metadata, "spec": spec, "status": status}
        return self.objects[kind, name]

    def round(
        self,
        *,
        how: RouterPods = RouterPods(),  # noqa: B008 - frozen
        resting: frozenset[Key] = frozenset(),
        refused: dict[ChildKey, str] | None = None,
        **observed: Any,
    ) -> Done:
        """Plan and carry out, a second later."""
        self.now += timedelta(seconds=1)
        self.observed = replace(self.observed, objects=list(self.objects.values()), **observed)
        planned = plan(self.observed, self.now, how)
        if planned.state is not None:
            self.observed = replace(self.observed, kept=planned.state)
        for secret in planned.secrets:
            node = secret["metadata"]["name"].removeprefix("turnout-router-")
            self.observed = replace(self.observed, secrets={**self.observed.secrets, node: secret})
        children = dict(self.observed.children)
        for key in planned.delete:
            del children[key]
        children |= {key_of(child): child for child in planned.apply}
        self.observed = replace(self.observed, children=children)
        statuses = planned.outlook.statuses(
            Outcome(self.observed.reached, self.observed.readings, refused or {}), resting
        )
        for status in statuses:
            self.objects[status.key]["status"] = json.loads(json.dumps(status.body["status"]))
        return Done(*(getattr(planned, field.name) for field in fields(planned)), statuses)

    def status(self, kind: str, name: str) -> Manifest:
        return self.objects[kind, name]["status"]

    def condition(self, kind: str, name: str, type_: str = "Accepted") -> Manifest:
        return next(c for c in self.status(kind, name)["conditions"] if c["type"] == type_)

    def generation(self, node: str) -> int:
        return self.observed.kept.routers[node].generation


def master(**spec: Any) -> Manifest:
    return {"role": "Master", "publicURL": "http://master:8900", "tokenSecretRef": TOKEN} | spec


def slave(name: str, *, family: str = "LlamaCpp", **model: Any) -> Manifest:
    return {
        "role": "Slave",
        "masterRef": {"name": "master"},
        "publicURL": f"http://{name}:8900",
        "tokenSecretRef": TOKEN,
        "backends": [{"name": "llama", "family": family, "url": "http://127.0.0.1:8081"}],
        "models": [{"id": f"{name}-ff", "publicID": "cc11", "backend": "llama"} | model],
    }


@pytest.fixture
def namespace() -> Namespace:
    """A master and the slaves gpu-a and gpu-b, not looked at yet."""
    found = Namespace()
    found.put("RouterNode", "master", master())
    for name in ("gpu-a", "gpu-b"):
        found.put("RouterNode", name, slave(name))
    return found


@pytest.fixture
def specs() -> Any:
    """Makes specs: `specs.master(…)`, `specs.slave(NAME, …)`."""

    class Specs:
        master = staticmethod(master)
        slave = staticmethod(slave)

    return Specs


CLUSTER_TOKEN = {"name": "cluster-token", "key": "token"}
CLUSTER_MASTER = {"role": "Master", "tokenSecretRef": CLUSTER_TOKEN}


def injectable(**spec: Any) -> dict[str, Any]:
    backend = {"name": "llama", "family": "LlamaCpp", "url": "http://127.0.0.1:8081"}
    model = {"id": "m", "backend": "llama"}
    shared = {"role": "Slave", "masterRef": {"name": "master"}, "tokenSecretRef": CLUSTER_TOKEN}
    return shared | {"backends": [backend], "models": [model]} | spec


@dataclass
class Injector:
    """Injects into pods of one namespace."""

    specs: dict[str, dict[str, Any]]

    def nodes(self) -> Nodes:
        manifests = [
            {"apiVersion": "turnout.dev/v1alpha1", "kind": "RouterNode", "metadata": {"name": name}, "spec": spec}
            for name, spec in self.specs.items()
        ]
        return Nodes.of(resolve([declare(m) for m in manifests], placement=InCluster(), generation=0))

    def __call__(self, template: dict[str, Any], *, key: str = "key", drain_timeout_s: int = 600) -> Injected:
        how = How(RouterImage("router:1"), drain_key=key, drain_timeout_s=drain_timeout_s)
        return inject(template, self.nodes(), how)


@pytest.fixture(scope="session")
def injecting() -> Any:
    """A master, gpu-a as `spec` says, gpu-b: `injecting(**spec)` gives a function that injects."""

    def make(**spec: Any) -> Injector:
        return Injector({"master": CLUSTER_MASTER, "gpu-a": injectable(**spec), "gpu-b": injectable()})

    return make


MASTER_URL = "http://master:8900"


@pytest.fixture
def saying() -> Any:
    """Makes what a master says: `saying(models={(NODE_ID, LOCAL_ID): available}, nodes={NODE_ID: healthy}, public={NAME: serves})`."""

    def make(
        *,
        models: dict[tuple[str, str], bool] | None = None,
        nodes: dict[str, bool] | None = None,
        public: dict[str, bool] | None = None,
        **more: Any,
    ) -> dict[str, Said]:
        said = Said(
            node_id="master",
            version="1.0.0",
            models=tuple(
                ModelSaid(node, model, "cc11", yes, "" if yes else "its server does not answer", ("Text",))
                for (node, model), yes in (models or {}).items()
            ),
            nodes=tuple(
                NodeSaid(node, node.partition(".")[0], f"http://{node}", yes, "" if yes else "no answer")
                for node, yes in (nodes or {}).items()
            ),
            public=public or {},
            suspended={},
        )
        return {MASTER_URL: replace(said, **more)}

    return make


@pytest.fixture
def in_cluster(namespace: Any, specs: Any) -> Any:
    """The namespace without any publicURL; `in_cluster.put_node(NAME, **spec)` changes one."""

    def put_node(name: str, **spec: Any) -> None:
        made = (specs.master() if name == "master" else specs.slave(name)) | spec
        if "publicURL" not in spec:
            del made["publicURL"]
        namespace.put("RouterNode", name, made)

    for name in ("master", "gpu-a", "gpu-b"):
        put_node(name)
    namespace.put_node = put_node
    return namespace


@pytest.fixture
def router_pod() -> Any:
    """Makes pods of a node, with their sidecar."""

    def make(name: str, node: str = "gpu-a", *, ready: bool = True, injected: bool = True, **status: Any) -> Any:
        container = {"name": "turnout-router", "restartPolicy": "Always"}
        running = [{"name": "turnout-router", "started": True}] if injected else []
        label = "turnout.dev/router" if node == "master" else "turnout.dev/node"
        return {
            "metadata": {"name": name, "labels": {label: node}},
            "spec": {"initContainers": [container] if injected else [], "containers": [{"name": "llama"}]},
            "status": {
                "podIP": "10.0.0." + name[-1],
                "phase": "Running",
                "containerStatuses": [{"name": "router", "started": True}],
                "initContainerStatuses": running,
                "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
            }
            | status,
        }

    return make
