"""A cluster that runs pods: containerd, kubelet, kube-proxy and CoreDNS beside the control plane, the chart installed with the images of
this checkout, and the objects of `examples/kubernetes` applied. One for all tests of this folder.
"""

import fcntl
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
SCRIPTS = HERE.parent / "cluster"
STATE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turnout-kube"
BIN = Path(os.environ.get("KUBE_BIN") or STATE / "bin")
RUN = STATE / "node"
"""Not a folder of the session: the store of containerd stays, and what a killed session left is removed by the next one."""
NAMESPACE = "turnout"
KEY, TOKEN = "the key of a client", "0123456789abcdef" * 4
DEADLINE_S = 120
VALUES = ("--set", "router.drainTimeout=45s")
"""A minute is the default. A namespace that is deleted takes at least half of a pod's grace period, here 30 s."""
TIMEOUT_S = 1800
"""Of the first test, which may build images."""
LAST = "test_the_operator_uninstalled.py"
"""Nothing can come after it."""
CLIENT = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "client"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 10001, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "client",
                "image": "turnout-backends:0.1.0",
                "command": ["sleep", "infinity"],
                "env": [{"name": "KEY", "value": KEY}, {"name": "TOKEN", "value": TOKEN}],
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
            }
        ],
    },
}


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ours = [item for item in items if HERE in item.path.parents]
    for item in ours:
        item.add_marker(pytest.mark.timeout(TIMEOUT_S), append=False)  # before that of tests/kube: the first one counts
    places = [number for number, item in enumerate(items) if HERE in item.path.parents]
    for number, item in zip(places, sorted(ours, key=lambda item: item.path.name == LAST), strict=True):
        items[number] = item


class Machine:
    """The one node of the cluster, from the outside: what its administrator runs, in the namespace of the release."""

    def __init__(self) -> None:
        homes = {f"HELM_{name}_HOME": str(RUN / "helm" / name) for name in ("CACHE", "CONFIG", "DATA")}
        self._environment = environment() | homes

    def run(self, *command: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs it inside; with `check`, a failure fails the test with what it said."""
        done = subprocess.run(
            [SCRIPTS / "inside.sh", *command],
            input=stdin,
            capture_output=True,
            text=True,
            env=self._environment,
            check=False,
        )
        if check and done.returncode:
            pytest.fail(f"{' '.join(command[:12])}: {done.stdout}{done.stderr}")
        return done

    def kubectl(self, *arguments: str, stdin: str = "", check: bool = True) -> str:
        return self.run("kubectl", "-n", NAMESPACE, *arguments, stdin=stdin, check=check).stdout

    def helm(self, *arguments: str) -> str:
        return self.run("helm", "-n", NAMESPACE, *arguments).stdout

    def apply(self, *manifests: dict[str, Any]) -> None:
        items = {"apiVersion": "v1", "kind": "List", "items": list(manifests)}
        self.kubectl("apply", "--server-side", "--force-conflicts", "-f", "-", stdin=json.dumps(items))

    def copy(
        self, like: str, name: str, model: dict[str, Any], *, replicas: int = 1, flags: dict[str, str]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """(RouterNode, Deployment) as those of the example, for a node with that model. `flags` of its server replace the example's."""
        node = self.get("routernode", like)["spec"]
        node["models"] = [node["models"][0] | model]
        template = self.get("deployment", like)["spec"]["template"]
        template["metadata"] = {"labels": {"app": name, "turnout.dev/node": name}}
        [server] = template["spec"]["containers"]
        flags |= {"--model": model["id"]}
        kept = [argument for argument in server["args"] if argument.split("=")[0] not in flags]
        server["args"] = kept + [f"{flag}={value}" for flag, value in flags.items()]
        many = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template}
        return (
            {"apiVersion": "turnout.dev/v1alpha1", "kind": "RouterNode", "metadata": {"name": name}, "spec": node},
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": many},
        )

    def get(self, *arguments: str) -> Any:
        return json.loads(self.kubectl("get", *arguments, "-o", "json"))

    def pods(self, selector: str) -> list[str]:
        """Names of pods that run and were not told to end."""
        found = self.get("pods", "-l", selector)["items"]
        return [one["metadata"]["name"] for one in found if "deletionTimestamp" not in one["metadata"]]

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        """Start kubectl as a process of its own."""
        return self.beside("kubectl", "-n", NAMESPACE, *arguments)

    def beside(self, *command: str) -> subprocess.Popen[str]:
        """Start it inside, as a process of its own."""
        return subprocess.Popen(
            [SCRIPTS / "inside.sh", *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env=self._environment,
        )

    @staticmethod
    def until(probe: Any, complaint: Any) -> None:
        until(probe, complaint)

    def patch(self, kind: str, name: str, spec: dict[str, Any]) -> None:
        """Merges it into the spec, and waits until the status says that the master runs what came of it."""
        before = self.get("routernode", "master")["status"]["configGeneration"]
        self.kubectl("patch", kind, name, "--type=merge", "-p", json.dumps({"spec": spec}))

        def runs() -> bool:
            status = self.get("routernode", "master")["status"]
            programmed = {c["type"]: c["status"] for c in status["conditions"]}["Programmed"]
            return status["configGeneration"] > before and programmed == "True"

        until(runs, f"the master does not run the edited {name}")

    def gone(self, pods: list[str]) -> None:
        """Waits until they have ended."""
        self.kubectl("wait", "--for=delete", *(f"pod/{pod}" for pod in pods), f"--timeout={DEADLINE_S}s")

    def remove(self, *nodes: str) -> None:
        """What `copy` made, with its pods."""
        pods = [pod for node in nodes for pod in self.pods(f"app={node}")]
        self.kubectl("delete", "deployment,routernode", *nodes, "--ignore-not-found", "--wait=false")
        if pods:
            self.gone(pods)

    def programmed(self, node: str) -> None:
        """Waits until each router of the node runs the newest configuration."""
        self.kubectl("wait", "routernode", node, "--for=condition=Programmed", f"--timeout={DEADLINE_S}s")

    def rolled_out(self, deployment: str) -> None:
        self.kubectl("rollout", "status", f"deployment/{deployment}", f"--timeout={DEADLINE_S}s")

    def client(self, *arguments: str) -> list[str]:
        return ["client", "--", "python", "-c", (HERE / "client.py").read_text(), *arguments]

    def ask(self, *bodies: dict[str, Any]) -> list[dict[str, Any]]:
        """Chats, all at once, from a pod that knows the name of the master's Service. Their answers, as `client.py` says."""
        said = self.kubectl("exec", *self.client("ask", json.dumps(bodies)))
        return [json.loads(line) for line in said.splitlines()]

    def asking(self, *bodies: dict[str, Any]) -> "Asking":
        """The same, and does not wait for the answers."""
        return Asking(self.start("exec", *self.client("ask", json.dumps(bodies))))

    def until_served(self, model: str) -> dict[str, Any]:
        """The first good answer of a model whose server starts."""
        return until(
            lambda: next((a for a in self.ask({"model": model, "max_tokens": 4}) if a["status"] == 200), None),
            f"{model} did not answer",
        )

    def decisions(self, query: str) -> list[dict[str, Any]]:
        """Rows of every node's decision log, by the master."""
        [line] = self.kubectl("exec", *self.client("decisions", query)).splitlines()
        found: list[dict[str, Any]] = json.loads(line)["rows"]
        return found

    def load(self, model: str, stream_tokens: int) -> "Load":
        return Load(self.start("exec", "-i", *self.client("load", model, str(stream_tokens))))


class Asking:
    """Chats that are under way."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def answers(self) -> list[dict[str, Any]]:
        """All of them."""
        said, _ = self._process.communicate(timeout=3 * DEADLINE_S)
        return [json.loads(line) for line in said.splitlines()]


class Load:
    """Five requests a second and one long stream."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        assert self._process.stdout is not None
        first = self._process.stdout.readline()
        assert json.loads(first) == {"streaming": 200}, first

    def stop(self) -> dict[str, Any]:
        """Its counts, once everything has ended."""
        said, _ = self._process.communicate(timeout=DEADLINE_S)
        found: dict[str, Any] = json.loads(said.splitlines()[-1])
        return found


def until(probe: Any, complaint: Any) -> Any:
    """The first truthy answer, by a deadline: what is waited for are other processes."""
    deadline = time.monotonic() + DEADLINE_S
    while not (found := probe()):
        assert time.monotonic() < deadline, complaint() if callable(complaint) else complaint
        time.sleep(0.3)
    return found


def environment() -> dict[str, str]:
    return os.environ | {"KUBE_RUN": str(RUN), "KUBE_BIN": str(BIN)}


@pytest.fixture(scope="session")
def machine() -> Iterator[Machine]:
    """The cluster, with nothing in it."""
    _need_what_it_takes()
    RUN.mkdir(parents=True, exist_ok=True)
    with (RUN / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one at a time on a machine
        _script("down.sh")  # what a killed session left
        try:
            _script("images.sh")
            _script("up.sh", "--kubelet")
            yield Machine()
        finally:
            _script("down.sh")


@pytest.fixture(scope="session")
def shop(machine: Machine) -> Machine:
    """The chart in a namespace that enforces `restricted`, the examples' objects in force, and a pod that is a client."""
    machine.kubectl("create", "namespace", NAMESPACE)
    machine.kubectl("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted")
    machine.helm("install", "turnout", str(ROOT / "helm" / "turnout"), *VALUES, "--wait", f"--timeout={DEADLINE_S}s")
    digest = hashlib.sha256(KEY.encode()).hexdigest()
    clients = f"clients: [{{name: me, keySha256: {digest}}}]"
    machine.kubectl("create", "secret", "generic", "turnout-token", f"--from-literal=token={TOKEN}")
    machine.kubectl("create", "secret", "generic", "turnout-clients", f"--from-literal=clients.yaml={clients}")
    machine.kubectl("apply", "-f", str(ROOT / "examples" / "kubernetes"))
    machine.apply(CLIENT)
    machine.kubectl("wait", "--for=condition=Ready", "routernode", "--all", f"--timeout={DEADLINE_S}s")
    machine.kubectl("wait", "--for=condition=Ready", "pod/client", f"--timeout={DEADLINE_S}s")
    for model in ("cc11-ff", "cc11", "smollm2"):
        machine.until_served(model)
    return machine


@pytest.fixture
def ended_quietly(shop: Machine) -> Iterator[Any]:
    """Follows routers that a test ends, `ended_quietly(selector, container)`: none of them may have logged a traceback."""
    followed: dict[str, subprocess.Popen[str]] = {}

    def follow(selector: str, container: str) -> None:
        followed.update({pod: shop.start("logs", "-f", pod, "-c", container) for pod in shop.pods(selector)})

    yield follow
    for pod, process in followed.items():
        said, _ = process.communicate(timeout=DEADLINE_S)
        assert "Traceback" not in said, f"{pod}:\n{said}"
        assert "drain" in said.lower(), f"{pod} was not followed to its end:\n{said}"


def _need_what_it_takes() -> None:
    if os.geteuid():
        _give_up("pods need root: network namespaces, mounts, cgroups")
    if not (BIN / "kubeall").exists():
        _give_up(f"no Kubernetes in {BIN}: run `make kube`, which needs Go 1.26 or newer")
    if missing := subprocess.run([SCRIPTS / "packages.sh"], capture_output=True, text=True, check=True).stdout.strip():
        _give_up(f"missing: apt-get install --no-install-recommends {missing}")


def _give_up(reason: str) -> None:
    """In CI these tests must run; elsewhere a machine may lack what they take."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def _script(name: str, *arguments: str) -> None:
    done = subprocess.run([SCRIPTS / name, *arguments], capture_output=True, text=True, env=environment(), check=False)
    if done.returncode:
        pytest.fail(f"{name}: {done.stdout}{done.stderr}")
