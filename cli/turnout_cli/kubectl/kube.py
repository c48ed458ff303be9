"""kubectl, as the plugin uses it: it knows the cluster and whatever way of signing in the person has.

Errors: `Refused`, whose message says what is the matter and what to do.
"""

import base64
import contextlib
import http.client
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from turnout_api.resources import GROUP, KINDS

_TIMEOUT_S: Final = 20.0
_ASK: Final = 15.0
"""Of one request to a router: a master waits 5 s for its nodes."""


class Refused(Exception):
    """The cluster, or something in it, cannot be read."""


class Kubectl:
    """kubectl with the person's options."""

    def __init__(self, options: Sequence[str]) -> None:
        self._options = list(options)

    def objects(self) -> list[dict[str, Any]]:
        """Every object of Turnout's kinds in the namespace."""
        kinds = ",".join(f"{kind.plural}.{GROUP}" for kind in KINDS.values())
        items: list[dict[str, Any]] = json.loads(self._run("get", kinds, "-o", "json"))["items"]
        return items

    def secret_value(self, namespace: str, name: str, key: str) -> str:
        """One value of a Secret."""
        found = json.loads(self._run("get", "secret", name, "-n", namespace, "-o", "json"))
        value = (found.get("data") or {}).get(key)
        if value is None:
            raise Refused(f"Secret {name} has no key {key}")
        return base64.b64decode(value).decode().strip()

    @contextlib.contextmanager
    def proxy(self, path: str) -> Iterator[Path]:
        """A socket behind which the API server answers for what begins with the path; nobody else can open it."""
        with tempfile.TemporaryDirectory(prefix="kubectl-turnout-") as folder:  # of mode 0700
            at = Path(folder) / "api"
            command = ["kubectl", *self._options, "proxy", f"--unix-socket={at}", f"--accept-paths=^{path}"]
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)  # noqa: S603 - kubectl
            try:
                if process.stdout is None or not process.stdout.readline():  # it says so once it listens
                    raise Refused(_why(process.communicate(timeout=_TIMEOUT_S)[1]))
                yield at
            finally:
                process.terminate()
                process.communicate(timeout=_TIMEOUT_S)

    def _run(self, *arguments: str) -> str:
        try:
            done = subprocess.run(  # noqa: S603 - kubectl
                ["kubectl", *self._options, *arguments],  # noqa: S607 - the person's own
                capture_output=True,
                text=True,
                check=False,
                timeout=_TIMEOUT_S,
                env=os.environ | {"LC_ALL": "C"},
            )
        except FileNotFoundError as error:
            raise Refused("there is no kubectl on the PATH") from error
        except subprocess.TimeoutExpired as error:
            raise Refused(
                f"the cluster did not answer within {_TIMEOUT_S:g}s: is the context the right one?"
            ) from error
        if done.returncode:
            raise Refused(_why(done.stderr))
        return done.stdout


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a socket in the file system."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=_ASK)
        self._path = path

    def connect(self) -> None:
        """Instead of a host."""
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(_ASK)
        self.sock.connect(str(self._path))


def get(connection: http.client.HTTPConnection, path: str, headers: dict[str, str]) -> bytes:
    """One answer. Raises Refused."""
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise Refused(f"it was not reached: {error}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise Refused(_answered(answer.status, body))
    return body


def _answered(status: int, body: bytes) -> str:
    """Of a router, or of the API server before it."""
    try:
        said = json.loads(body)
    except ValueError:
        said = {}
    message = said.get("message") if isinstance(said, dict) else None
    text = str(message or body[:200].decode("utf-8", "replace")).strip()
    match status:
        case 401:
            return f"its router refused the cluster token: {text}"
        case 403:
            return f"you may not reach it through the API server (it takes get on services/proxy): {text}"
        case 502 | 503:
            return f"nothing answers behind its Service: {text}"
        case _:
            return f"it answered {status}: {text}"


def _why(stderr: str) -> str:
    """What kubectl said, and what to do."""
    lines = [line for line in stderr.splitlines() if line.strip() and " memcache.go:" not in line]
    text = " ".join(lines[-1:]) or stderr.strip() or "kubectl said nothing"
    if "doesn't have a resource type" in stderr or "could not find the requested resource" in stderr:
        return f"the cluster does not know Turnout's kinds: install the chart, or `kubectl apply -f crds/` ({text})"
    if "(Forbidden)" in stderr:
        return f"you may not read this ({text}): docs/kubernetes.md says what `kubectl turnout` needs"
    if any(word in stderr for word in ("refused", "no such host", "Unable to connect", "i/o timeout")):
        return f"no cluster answers ({text}): see `kubectl config current-context`"
    if "no configuration has been provided" in stderr or "does not exist" in stderr:
        return f"kubectl knows no such cluster ({text}): see `kubectl config get-contexts`"
    return text
