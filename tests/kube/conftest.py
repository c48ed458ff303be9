"""One real control plane for the session: etcd, kube-apiserver, kube-controller-manager, kube-scheduler on loopback."""

import fcntl
import json
import os
import shutil
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
SCRIPTS = HERE / "cluster"
STATE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "turnout-kube"
BIN = Path(os.environ.get("KUBE_BIN") or STATE / "bin")
ESTABLISHED_S = 120.0
TIMEOUT_S = 300
"""Of one test with its fixtures: the first starts a control plane, and the machine may do much else."""


@dataclass(frozen=True, slots=True)
class Cluster:
    """A running control plane, as its administrator sees it."""

    server: str
    kubeconfig: Path
    pki: Path
    environment: dict[str, str]

    def kubectl(self, *arguments: str, stdin: str = "", check: bool = True) -> subprocess.CompletedProcess[str]:
        """Runs kubectl; with `check`, a failure fails the test with what kubectl said."""
        done = subprocess.run(
            ["kubectl", *arguments], input=stdin, capture_output=True, text=True, env=self.environment, check=False
        )
        if check and done.returncode:
            pytest.fail(f"kubectl {' '.join(arguments)}: {done.stderr}")
        return done

    def established(self) -> None:
        """Until objects of every definition can be made.

        A definition has no conditions at all for a moment, which `kubectl wait` takes for an error.
        """
        deadline = time.monotonic() + ESTABLISHED_S
        wait = ("wait", "--for=condition=Established", "--timeout=10s", "crd", "--all")
        while self.kubectl(*wait, check=False).returncode:
            assert time.monotonic() < deadline, "the definitions are not served"

    def request(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """One request to the API server: status and decoded answer, for refusals too."""
        context = ssl.create_default_context(cafile=str(self.pki / "ca.crt"))
        context.load_cert_chain(self.pki / "admin.crt", self.pki / "admin.key")
        data = None if body is None else json.dumps(body).encode()
        asked = urllib.request.Request(  # noqa: S310 # the server is this session's own
            self.server + path, data=data, method=method, headers={"content-type": "application/json"}
        )
        try:
            with urllib.request.urlopen(asked, context=context) as answer:  # noqa: S310 # as above
                return answer.status, json.load(answer)
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, json.load(refused)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.kube)
            if not item.get_closest_marker("timeout"):
                item.add_marker(pytest.mark.timeout(TIMEOUT_S))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A control plane of this session's own."""
    with _control_plane(tmp_path_factory.mktemp("kube")) as running:
        yield running


@pytest.fixture
def fresh_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Another without anything in it, of one test that changes what is there for the whole cluster.

    Definitions are not taken away between such tests: a deletion of one once hung in the API server for minutes.
    """
    with _control_plane(tmp_path_factory.mktemp("fresh-kube")) as running:
        yield running


@pytest.fixture(scope="session")
def crds(cluster: Cluster) -> Cluster:
    """The control plane with the CRDs of `crds/` applied and established."""
    cluster.kubectl("apply", "--server-side", "--field-manager=turnout-tests", "-f", str(ROOT / "crds"))
    cluster.established()
    return cluster


@pytest.fixture
def namespace(cluster: Cluster) -> Iterator[str]:
    """A namespace for one test."""
    name = f"test-{uuid.uuid4().hex[:8]}"
    cluster.kubectl("create", "namespace", name)
    yield name
    cluster.kubectl("delete", "namespace", name, "--wait=false")


@pytest.fixture(scope="module")
def release(cluster, pytestconfig, tmp_path_factory):
    """Installs the chart into a namespace and uninstalls it: helm, as a person runs it. Definitions go at the end."""
    home = tmp_path_factory.mktemp("helm")
    environment = cluster.environment | {f"HELM_{name}_HOME": str(home / name) for name in ("CACHE", "CONFIG", "DATA")}

    def helm(*arguments: str) -> str:
        done = subprocess.run(["helm", *arguments], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    class Release:
        @staticmethod
        def install(namespace: str, *values: str) -> str:
            chart = str(pytestconfig.rootpath / "helm" / "turnout")
            # definitions that another test applied are taken over
            settings = ["--take-ownership", *(part for value in values for part in ("--set", value))]
            return helm("install", "turnout", chart, "--namespace", namespace, *settings)

        @staticmethod
        def upgrade(namespace: str, *values: str) -> str:
            chart = str(pytestconfig.rootpath / "helm" / "turnout")
            settings = [part for value in values for part in ("--set", value)]
            return helm("upgrade", "turnout", chart, "--namespace", namespace, *settings)

        @staticmethod
        def account(namespace: str, folder: Path) -> Path:
            """A kubeconfig of the chart's service account."""
            return as_service_account(cluster, namespace, folder)

        @staticmethod
        def uninstall(namespace: str) -> str:
            return helm("uninstall", "turnout", "--namespace", namespace)

    return Release


def as_service_account(cluster, namespace: str, folder: Path) -> Path:
    """A kubeconfig of the chart's service account."""
    token = cluster.kubectl("create", "token", "turnout", "-n", namespace).stdout.strip()
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    for user in config["users"]:
        user["user"] = {"token": token}
    path = folder / "service-account.kubeconfig"
    path.write_text(yaml.safe_dump(config))
    return path


@contextmanager
def _control_plane(run: Path) -> Iterator[Cluster]:
    _need_what_it_takes()
    environment = os.environ | {"KUBE_BIN": str(BIN), "KUBE_RUN": str(run)}
    try:
        with _one_at_a_time():  # between looking for a free network and taking it
            net = _free_net()
            environment["KUBE_NET"] = net
            up = subprocess.run([SCRIPTS / "up.sh"], capture_output=True, text=True, env=environment, check=False)
        if up.returncode:
            pytest.fail(f"the control plane did not come up:\n{up.stderr}")
        kubeconfig = run / "admin.kubeconfig"
        environment |= {"KUBECONFIG": str(kubeconfig), "PATH": f"{BIN / 'l'}:{environment['PATH']}"}
        yield Cluster(f"https://{net}.0.1:443", kubeconfig, run / "pki", environment)
    finally:
        subprocess.run([SCRIPTS / "down.sh"], env=environment, check=True)


def _need_what_it_takes() -> None:
    if not (BIN / "kubeall").exists():
        _give_up(f"no control plane in {BIN}: run `make kube`, which needs Go 1.26 or newer")
    if shutil.which("openssl") is None:
        _give_up("openssl is missing, which makes the control plane's certificates")


def _give_up(reason: str) -> None:
    """In CI these tests must run; elsewhere a machine may lack what they take."""
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


@contextmanager
def _one_at_a_time() -> Iterator[None]:
    with (Path(tempfile.gettempdir()) / "turnout-kube.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _free_net() -> str:
    """The first /16 of loopback that no other control plane has taken."""
    for second in range(96, 128):
        try:
            for address, port in ((f"127.{second}.0.1", 443), (f"127.{second}.0.2", 2379)):
                with socket.socket() as probe:
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                    probe.bind((address, port))
        except PermissionError:
            _give_up("port 443 on loopback needs root, or net.ipv4.ip_unprivileged_port_start at most 443")
        except OSError:
            continue
        return f"127.{second}"
    raise AssertionError("no free /16 from 127.96 to 127.127: control planes were left running")
