"""The operator as its own process against the session's control plane, and what a person does to its objects."""

import asyncio
import base64
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from hashlib import sha256
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from turnout_api.config import RouterConfig
from turnout_api.resources import KINDS
from turnout_router.backends.process import free_port
from turnout_router.router import Router
from turnout_router.simbackend import SimBackend, SimOptions

DEADLINE_S = 120.0
RESYNC = "1s"
NEVER = "24h"
"""An interval that no test lives to see: what is noticed was noticed by its event."""
API = "turnout.dev/v1alpha1"
CHILDREN = ("secrets", "services", "serviceaccounts", "deployments", "poddisruptionbudgets", "persistentvolumeclaims")


class Objects:
    """The objects of one namespace."""

    def __init__(self, cluster: Any, namespace: str) -> None:
        self.cluster = cluster
        self.namespace = namespace

    def apply(self, *manifests: dict[str, Any]) -> None:
        self.cluster.kubectl(
            "apply",
            "--server-side",
            "--force-conflicts",
            "-n",
            self.namespace,
            "-f",
            "-",
            stdin=yaml.safe_dump_all(manifests),
        )

    def write(self, *manifests: dict[str, Any], dry_run: bool = False) -> Any:
        """`kubectl apply` that may be refused: how it ended, with its warnings in stderr."""
        text = yaml.safe_dump_all(manifests)
        how = ("apply", "--server-side", "--force-conflicts", *(("--dry-run=server",) if dry_run else ()))
        return self.cluster.kubectl(*how, "-n", self.namespace, "-f", "-", stdin=text, check=False)

    def delete(self, kind: str, name: str) -> None:
        self.cluster.kubectl("delete", kind, name, "-n", self.namespace)

    def get(self, kind: str, name: str) -> dict[str, Any] | None:
        found = self.cluster.kubectl("get", kind, name, "-n", self.namespace, "-o", "json", "--ignore-not-found").stdout
        return json.loads(found) if found else None

    def condition(self, node: str, type_: str, reason: str) -> dict[str, Any]:
        """A condition of a RouterNode, once it has that reason."""

        def found() -> dict[str, Any] | None:
            conditions = (self.get("routernode", node) or {}).get("status", {}).get("conditions", [])
            return next((c for c in conditions if (c["type"], c["reason"]) == (type_, reason)), None)

        return until(found, f"{node} did not become {type_} {reason}")

    def accepted(self, kind: str, name: str) -> dict[str, Any]:
        """The condition Accepted, once it speaks of the newest generation."""

        def settled() -> dict[str, Any] | None:
            found = self.get(kind, name)
            status = found.get("status", {}) if found else {}
            if not found or status.get("observedGeneration") != found["metadata"]["generation"]:
                return None
            return next(c for c in status["conditions"] if c["type"] == "Accepted")

        return until(settled, f"{kind} {name} was not judged")

    def becomes_accepted(self, kind: str, name: str) -> None:
        """Wait for it: a round that began in the middle of `kubectl apply` may see an object before what it names."""
        until(lambda: self.accepted(kind, name)["status"] == "True", f"{kind} {name} is not accepted")

    def bind(self, pod: str, machine: str) -> None:
        """As the scheduler would: a pod that no machine has is in no Endpoints."""
        target = {"apiVersion": "v1", "kind": "Node", "name": machine}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
        answered, said = self.cluster.request("POST", f"/api/v1/namespaces/{self.namespace}/pods/{pod}/binding", body)
        assert answered == 201, said

    def pod_status(self, pod: str, status: dict[str, Any]) -> None:
        """As a kubelet would write it."""
        patch = ("--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))
        self.cluster.kubectl("patch", "pod", pod, "-n", self.namespace, *patch)

    def secret(self, name: str) -> dict[str, Any]:
        return until(lambda: self.get("secret", name), f"there is no Secret {name}")

    def config(self, node: str) -> dict[str, Any]:
        return yaml.safe_load(base64.b64decode(self.secret(f"turnout-router-{node}")["data"]["router.yaml"]))

    def versions(self) -> dict[str, str]:
        """The resourceVersion of everything that the operator may write."""
        kinds = ",".join([*CHILDREN, *(kind.plural for kind in KINDS.values())])
        items = json.loads(self.cluster.kubectl("get", kinds, "-n", self.namespace, "-o", "json").stdout)["items"]
        found = {f"{i['kind']}/{i['metadata']['name']}": i["metadata"]["resourceVersion"] for i in items}
        found.pop("ServiceAccount/default", None)  # every namespace has one
        return found


class Operator:
    """One process."""

    def __init__(self, cluster: Any, namespace: str, log: Path, *more: str, kubeconfig: Path, resync: str) -> None:
        self._log = log
        with log.open("a") as out:
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    "turnout_operator",
                    *(() if "--all-namespaces" in more else ("--namespace", namespace)),
                    "--health-port",
                    "0",
                    "--resync-interval",
                    resync,
                    *more,
                ],
                env=os.environ | cluster.environment | {"KUBECONFIG": str(kubeconfig)},
                stderr=out,
            )
        self.namespace = namespace

    def log(self) -> str:
        return self._log.read_text()

    def facts(self) -> dict[str, Any]:
        """Of its namespace."""
        return self.health()["namespaces"][self.namespace]

    def health(self) -> dict[str, Any]:
        """What /healthz says."""
        return json.loads(self.ask("/healthz"))

    def ask(self, path: str) -> str:
        """On its health port; a refusal fails the test."""

        def port() -> str | None:
            assert self._process.poll() is None, self.log()
            _, found, rest = self.log().rpartition("health on port ")
            return rest.splitlines()[0] if found else None

        with urllib.request.urlopen(f"http://127.0.0.1:{until(port, 'no health port')}{path}") as answer:
            return answer.read().decode()

    def metric(self, series: str) -> float:
        """A line of /metrics: `name{label="value"}`."""
        values = [
            line.rpartition(" ")[2] for line in self.ask("/metrics").splitlines() if line.startswith(f"{series} ")
        ]
        return float(values[0])

    def more_rounds(self, count: int) -> dict[str, Any]:
        """Wait until so many more good rounds are done."""
        wanted = self.facts()["rounds"] + count
        return until(lambda: (facts := self.facts())["rounds"] >= wanted and facts, "the rounds stopped")

    def cpu_s(self) -> float:
        """That it used so far."""
        user, system = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> int:
        self._process.send_signal(signal.SIGCONT)  # a test may have stopped it
        self._process.terminate()
        return self._process.wait(timeout=DEADLINE_S)


def until(probe: Any, complaint: str) -> Any:
    """The first truthy answer, by a deadline: what is waited for is another process."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := probe()):
        assert time.monotonic() < deadline, complaint
        time.sleep(0.1)
    return found


@pytest.fixture(scope="session")
def until_of_the_session() -> Any:
    """`until`, for what serves a module."""
    return until


@pytest.fixture(scope="session")
def processes() -> Any:
    """Makes an operator of the cluster, the namespace, the file of its log and its options; who made it stops it."""
    return Operator


@pytest.fixture(name="until")
def until_fixture() -> Any:
    """`until`, for tests."""
    return until


@pytest.fixture
def objects(crds, namespace) -> Objects:
    return Objects(crds, namespace)


@pytest.fixture
def start(crds, namespace, tmp_path) -> Iterator[Any]:
    """Starts an operator for the test's namespace; the test may stop it and start another. `start.NEVER` is an interval."""
    running: list[Operator] = []

    def start(*more: str, kubeconfig: Path = crds.kubeconfig, resync: str = RESYNC) -> Operator:
        log = tmp_path / f"operator-{len(running)}.log"
        running.append(Operator(crds, namespace, log, *more, kubeconfig=kubeconfig, resync=resync))
        return running[-1]

    start.NEVER = NEVER
    yield start
    for operator in running:
        operator.stop()


@pytest.fixture
def manifests() -> Any:
    """A master, two slaves, a link between them."""
    return Manifests()


class Manifests:
    token: ClassVar[dict[str, Any]] = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "token"},
        "stringData": {"token": "0123456789abcdef" * 2},
    }

    urls: ClassVar[dict[str, str]] = {
        name: f"http://127.0.0.1:{port}" for port, name in enumerate(("master", "gpu-a", "gpu-b", "gpu-late"), 1)
    }
    """Nobody listens there."""

    def node(self, name: str, **spec: Any) -> dict[str, Any]:
        slave = {"role": "Slave", "masterRef": {"name": "master"}}
        shared = {"publicURL": self.urls[name], "tokenSecretRef": {"name": "token"}}
        return self._object("RouterNode", name, slave | shared | spec)

    def master(self, **spec: Any) -> dict[str, Any]:
        clients = {"secretRef": {"name": "clients"}}
        found = self.node("master", clients=clients, **spec) | {}
        found["spec"] |= {"role": "Master"}
        del found["spec"]["masterRef"]
        return found

    def slave(self, name: str, context: int = 4096, **spec: Any) -> dict[str, Any]:
        backend = {"name": "llama", "family": "LlamaCpp", "url": "http://127.0.0.1:8081"}
        model = {"id": f"{name}-ff", "publicID": "cc11", "backend": "llama", "contextWindow": context, "parallel": 1}
        return self.node(name, backends=[backend], models=[model], **spec)

    def link(self, name: str, owner: str, helper: str) -> dict[str, Any]:
        ends = {"owner": {"node": owner, "model": f"{owner}-ff"}, "helper": {"node": helper, "model": f"{helper}-ff"}}
        return self._object("RoutingLink", name, {"lane": "Text", **ends})

    def pool(self, name: str, *models: str) -> dict[str, Any]:
        return self._object("ModelPool", name, {"members": [{"model": model} for model in models]})

    def frontend(self, name: str, *models: str) -> dict[str, Any]:
        return self._object("FrontendModel", name, {"defaults": {"targets": [{"model": model} for model in models]}})

    def guardian(self, name: str, node: str) -> dict[str, Any]:
        spec = {"scope": {"cluster": True}, "guardian": {"node": node, "model": f"{node}-ff"}}
        return self._object("Guardian", name, spec)

    def recipe(self, name: str, node: str) -> dict[str, Any]:
        components = [{"capability": "Text", "node": node, "model": f"{node}-ff"}]
        return self._object("SplitRecipe", name, {"publicID": name, "components": components})

    def route_test(self, name: str, frontend: str) -> dict[str, Any]:
        request = {"path": "/v1/chat/completions", "body": {"model": frontend, "messages": []}}
        return self._object("RouteTest", name, {"request": request, "expect": {"rule": f"{frontend}/defaults"}})

    @staticmethod
    def ruled(name: str, *, to: str = "cc11", jump: str = "", **spec: Any) -> dict[str, Any]:
        """A frontend model, with a rule that jumps."""
        rule = {"name": "on", "when": {"stream": True}, "action": "Jump", "jumpTo": jump}
        rules = {"rules": [rule]} if jump else {}
        return Manifests._object("FrontendModel", name, rules | {"defaults": {"targets": [{"model": to}]}} | spec)

    def in_cluster(self) -> list[dict[str, Any]]:
        """The same nodes, whose routers the operator runs or injects."""
        found = self.all()
        for manifest in found:
            if manifest["kind"] == "RouterNode":
                del manifest["spec"]["publicURL"]
        return found

    @staticmethod
    def yaml(*manifests: dict[str, Any]) -> str:
        return yaml.safe_dump_all(manifests)

    def pod(self, name: str, node: str) -> dict[str, Any]:
        """Of a node, without its sidecar."""
        metadata = {"name": name, "labels": {"turnout.dev/node": node}}
        containers = [{"name": "llama", "image": "llama:1"}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": containers}}

    def all(self) -> list[dict[str, Any]]:
        return [
            self.token,
            self.master(),
            self.slave("gpu-a"),
            self.slave("gpu-b", 8192),
            self.link("a-to-b", "gpu-a", "gpu-b"),
        ]

    def good(self) -> list[dict[str, Any]]:
        """What `bad_writes` are bad beside."""
        request = {"path": "/v1/chat/completions", "body": {"model": "front", "messages": []}}
        test = {"request": request, "expect": {"rule": "front/defaults"}, "required": True}
        return [
            *self.all()[:-1],
            self.ruled("front", jump="policy"),
            self.ruled("policy"),
            self._object("RouteTest", "stays", test),
        ]

    def bad_writes(self) -> dict[str, tuple[dict[str, Any], str, str]]:
        """Beside a master, gpu-a and gpu-b, the frontend models `front` and `policy`, and a required test of `front`.

        Each is what is written, its reason and its field.
        """
        no = {"name": "no", "when": {"endpoints": ["/v1/chat/completions"]}, "action": "Deny", "denyStatus": 403}
        audio = {"capability": "Speech", "node": "gpu-a", "model": "gpu-a-ff"}
        other = self.master()
        other["metadata"] = {"name": "other"}
        return {
            "a second master": (other, "MasterExists", "spec.role"),
            "a slave of a slave": (
                self.slave("gpu-late", masterRef={"name": "gpu-a"}),
                "NotAMaster",
                "spec.masterRef.name",
            ),
            "a jump back": (self.ruled("policy", jump="front"), "JumpLoop", "spec.rules[0].jumpTo"),
            "a lost condition": (
                self.ruled("x", rules=[{"name": "r", "when": {"hasImage": True}, "targets": [{"model": "cc11"}]}]),
                "UnknownField",
                "spec.rules[0].when.hasImage",
            ),
            "a link of unlike models": (
                self.link("a-to-b", "gpu-a", "gpu-b")
                | {"spec": self.link("", "gpu-a", "gpu-b")["spec"] | {"lane": "Image"}},
                "IneligibleLink",
                "spec.owner.model",
            ),
            "a guardian without eyes": (
                self._object(
                    "Guardian", "eyes", {"scope": {"cluster": True}, "guardian": {"node": "gpu-a", "model": "gpu-a-ff"}}
                ),
                "GuardianNotMultimodal",
                "spec.guardian.model",
            ),
            "a component that cannot": (
                self._object("SplitRecipe", "studio", {"publicID": "studio", "components": [audio]}),
                "CapabilityMismatch",
                "spec.components[0].capability",
            ),
            "a broken required test": (self.ruled("front", jump="policy", rules=[no]), "BreaksRouteTest", ""),
        }

    @staticmethod
    def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}


@pytest.fixture
async def routers(objects, manifests, tmp_path) -> AsyncIterator[Any]:
    """Applies the nodes of these names, a master first, and runs their routers in this process from what the operator delivers.

    Each slave has a sim-backend, in `routers.backends`. With `own_master` a test runs the master itself.
    """
    client = {"name": "someone", "keySha256": sha256(b"a key of a client").hexdigest()}
    for file, text in (
        ("token/token", manifests.token["stringData"]["token"]),
        ("clients/clients.yaml", yaml.safe_dump({"clients": [client]})),
    ):
        (tmp_path / file).parent.mkdir()
        (tmp_path / file).write_text(text)

    async with AsyncExitStack() as down:

        async def run(*names: str, own_master: bool = False, decode_tokens_per_second: float = 0) -> dict[str, Router]:
            master, *slaves = names
            ports = {name: free_port() for name in (slaves if own_master else names)}
            here = {name: {"publicURL": f"http://127.0.0.1:{port}"} for name, port in ports.items()}
            nodes = [manifests.token, *([] if own_master else [manifests.master(**here[master])])]
            for name in slaves:
                options = SimOptions(models=(f"{name}-ff",), decode_tokens_per_second=decode_tokens_per_second)
                backends[name] = await down.enter_async_context(SimBackend(options))
                nodes.append(manifests.slave(name, **here[name]))
                nodes[-1]["spec"]["backends"] = [{"name": "llama", "family": "OpenAI", "url": backends[name].url}]
            objects.apply(*nodes)
            found = {}
            for name, port in ports.items():
                objects.accepted("routernode", name)
                found[name] = Mounted(objects.config(name), tmp_path, port)
                await found[name].start()
                down.push_async_callback(found[name].stop, drain_timeout_s=0)
            return found

        backends: dict[str, SimBackend] = {}
        run.backends, run.mounts = backends, tmp_path  # type: ignore[attr-defined] # for tests that stop one, or run a router
        yield run


class Mounted(Router):
    """Runs what it is given with a folder of the test instead of /etc/turnout, and, since all share one host, a port of its own."""

    def __init__(self, config: Any, mounts: Path, port: int) -> None:
        self._mounts, self._port = mounts, port
        super().__init__(as_if_mounted(config, mounts, port))

    async def reconfigure(self, config: RouterConfig) -> bool:
        return await super().reconfigure(as_if_mounted(config.model_dump(mode="json"), self._mounts, self._port))


def as_if_mounted(config: Any, mounts: Path, port: int) -> RouterConfig:
    text = yaml.safe_dump(config).replace("/etc/turnout", str(mounts))
    listen = {"host": "127.0.0.1", "port": port, "health_host": "127.0.0.1", "health_port": 0}
    return RouterConfig.model_validate(yaml.safe_load(text) | {"listen": listen})


async def eventually(probe: Any, complaint: str) -> Any:
    """As `until`, for a test whose routers run in its own process: the probe does not hold them up."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := await asyncio.to_thread(probe)):
        assert time.monotonic() < deadline, complaint
        await asyncio.sleep(0.1)
    return found


@pytest.fixture(name="eventually")
def eventually_fixture() -> Any:
    """`eventually`, for tests."""
    return eventually


class Webhook:
    """The chart's webhooks, and the operator as its pod would be: at the address of their Service, with its account."""

    KINDS = ("mutatingwebhookconfiguration", "validatingwebhookconfiguration")

    def __init__(self, objects: Objects, start: Any, release: Any, account: Path) -> None:
        self.configuration = f"turnout-{objects.namespace}"
        self._release = release
        self._objects = objects
        self._start = start
        self._account = account

    def start(self, *more: str, resync: str = NEVER) -> Operator:
        """An operator that the API server trusts."""
        options = (
            f"--webhook={self.configuration}",
            f"--validating-webhook={self.configuration}",
            "--webhook-secret=turnout-webhook",
            f"--webhook-namespace={self._objects.namespace}",
            f"--webhook-host={self.address()}",
            "--webhook-port=443",
            "--router-image=router:1",
        )
        operator = self._start(*options, *more, kubeconfig=self._account, resync=resync)
        until(lambda: all(map(self.authorities, self.KINDS)), "nobody said whom to trust")
        operator.more_rounds(0)
        return operator

    def address(self) -> str:
        """Of the Service by which the API server calls."""
        return self._objects.get("service", "turnout")["spec"]["clusterIP"]

    def must_be_asked(self) -> None:
        """From now on nothing is written past the validating webhook."""
        self._release.upgrade(self._objects.namespace, "webhook.validation.failurePolicy=Fail")

    def authorities(self, kind: str = KINDS[0]) -> str:
        """PEM that the API server trusts; empty = none yet."""
        hooks = self._objects.get(kind, self.configuration)["webhooks"]
        told = {hook["clientConfig"].get("caBundle", "") for hook in hooks}
        return base64.b64decode(told.pop()).decode() if len(told) == 1 else ""

    def is_asked(self) -> None:
        """Wait until the validating webhook is in force: a moment after its configuration was written."""
        wrong = Manifests.ruled("probe", to="nobody")

        def warned() -> bool:
            done = self._objects.write(wrong, dry_run=True)
            return "UnknownModel" in done.stderr

        until(warned, "the validating webhook is not asked")


@pytest.fixture
def webhook(objects, release, start, tmp_path) -> Iterator[Webhook]:
    """Of the chart with its default values."""
    release.install(objects.namespace)
    yield Webhook(objects, start, release, release.account(objects.namespace, tmp_path))
    release.uninstall(objects.namespace)
