"""API servers as processes that really end and begin again, over the same etcd: a control plane of this folder's own."""

import json
import os
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[5]
DEADLINE_S = 120.0
"""A start takes 4 s on an idle machine."""


class ApiServers:
    """The first is the one that `cluster` asks; `other` is a second one over the same etcd, with addresses of its own."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self._run = cluster.kubeconfig.parent
        self._pid = int((self._run / "pid" / "kube-apiserver").read_text())
        self._command = Path(f"/proc/{self._pid}/cmdline").read_text().rstrip("\0").split("\0")
        self._first: subprocess.Popen[bytes] | None = None
        """None = the control plane's script started it."""
        self._others: list[subprocess.Popen[bytes]] = []
        self.other: Any = None
        self.namespace = ""
        """Of the test."""

    def start_another(self) -> None:
        """Once; it runs until the end."""
        host = self._option("bind-address")
        with socket.socket() as free:
            free.bind((host, 0))
            port = free.getsockname()[1]
        command = [f"--secure-port={port}" if part.startswith("--secure-port=") else part for part in self._command]
        server = f"https://{host}:{port}"
        kubeconfig = self._run / "other.kubeconfig"
        kubeconfig.write_text(self._cluster.kubeconfig.read_text().replace(self._cluster.server, server))
        self._others.append(self._begin(command, "other-kube-apiserver"))
        environment = self._cluster.environment | {"KUBECONFIG": str(kubeconfig)}
        self.other = replace(self._cluster, server=server, kubeconfig=kubeconfig, environment=environment)
        self._until_ready(self.other)

    def stop(self) -> None:
        """Kill the first, as a machine does that fails. Returns when nobody listens there."""
        os.kill(self._pid, signal.SIGKILL)
        if self._first is not None:
            self._first.wait()
        until(lambda: not self.runs(), "it does not end")

    def start(self) -> None:
        """The first again, with the same command line. Returns when it is ready."""
        self._first = self._begin(self._command, "kube-apiserver")
        self._pid = self._first.pid
        (self._run / "pid" / "kube-apiserver").write_text(str(self._pid))  # for the script that ends the control plane
        self._until_ready(self._cluster)

    def compact(self) -> None:
        """What etcd knows of before this moment is forgotten."""
        revision = self._etcd("/v3/kv/range", {"key": "Lw=="})["header"]["revision"]
        self._etcd("/v3/kv/compaction", {"revision": revision, "physical": True})

    def version(self) -> str:
        """Whoever watches the namespace's RouterNodes by way of the first saw this version last, or an older one, while it is away."""
        return str(json.loads(self.other.kubectl("get", "--raw", self._nodes).stdout)["metadata"]["resourceVersion"])

    def watch(self, since: str) -> str:
        """What the first answers whoever goes on watching them from there, for a second at most."""
        query = f"?watch=true&resourceVersion={since}&timeoutSeconds=1"
        answer = self._cluster.kubectl("get", "--raw", self._nodes + query, check=False)
        return answer.stdout + answer.stderr

    @property
    def _nodes(self) -> str:
        return f"/apis/turnout.dev/v1alpha1/namespaces/{self.namespace}/routernodes"

    def close(self) -> None:
        for process in (*self._others, *((self._first,) if self._first else ())):
            process.kill()
            process.wait()

    def runs(self) -> bool:
        """The first."""
        try:
            state = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return False
        return state != "Z"  # whoever adopted it may never ask for its end

    def _option(self, name: str) -> str:
        return next(part for part in self._command if part.startswith(f"--{name}=")).partition("=")[2]

    def _begin(self, command: list[str], name: str) -> subprocess.Popen[bytes]:
        with (self._run / "log" / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def _etcd(self, path: str, body: dict[str, Any]) -> Any:
        """By its JSON gateway."""
        asked = urllib.request.Request(  # noqa: S310 # the server is this session's own
            self._option("etcd-servers") + path, data=json.dumps(body).encode(), method="POST"
        )
        with urllib.request.urlopen(asked) as answer:  # noqa: S310 # as above
            return json.load(answer)

    @staticmethod
    def _until_ready(cluster: Any) -> None:
        def served() -> bool:  # definitions of custom resources a moment later than all else
            asked = ("/readyz", "/apis/turnout.dev/v1alpha1/routernodes?limit=1")
            return all(cluster.kubectl("get", "--raw", path, check=False).returncode == 0 for path in asked)

        until(served, "the API server does not come up")


def until(probe: Any, complaint: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not probe():
        assert time.monotonic() < deadline, complaint
        time.sleep(0.1)


@pytest.fixture
def cluster(fresh_cluster) -> Any:
    """Others of the session must not lose their API server."""
    return fresh_cluster


@pytest.fixture
def crds(cluster) -> Any:
    cluster.kubectl("apply", "--server-side", "--field-manager=turnout-tests", "-f", str(ROOT / "crds"))
    cluster.established()
    return cluster


@pytest.fixture
def servers(crds) -> Iterator[ApiServers]:
    """Both run."""
    found = ApiServers(crds)
    try:
        found.start_another()
        yield found
    finally:
        found.close()


@pytest.fixture
def namespace(servers, cluster) -> str:
    """It goes with the control plane."""
    servers.namespace = "test"
    cluster.kubectl("create", "namespace", servers.namespace)
    return str(servers.namespace)


@pytest.fixture
def elsewhere(servers, objects) -> Any:
    """The objects of the namespace, by way of the other API server."""
    return type(objects)(servers.other, objects.namespace)
