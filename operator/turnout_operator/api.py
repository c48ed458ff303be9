"""The API server, as the operator uses it. The only module that imports the Kubernetes client.

Requests are plain JSON: the seven kinds have types of their own, and of Secrets three fields are read.
"""

import asyncio
import base64
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio import config as credentials
from kubernetes.aio.client import ApiClient, Configuration

from turnout_api.resources import API_VERSION, CATEGORY, GROUP, KINDS, VERSION
from turnout_api.resources.common import SecretKeyRef
from turnout_operator.children import ChildKey, key_of
from turnout_operator.former import left_over
from turnout_operator.names import FIELD_MANAGER, LABELS, MASTER_LABEL, NODE_LABEL, STATE_SECRET, router_secret
from turnout_operator.rights import Rights, missing, used
from turnout_operator.state import Kept, Texts, dump, load
from turnout_operator.statuses import StatusWrite

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_TIMEOUT_S = 30.0
"""A request without an answer for this long has failed. Lists of one namespace take well under a second."""
_LONGEST_RETRY_AFTER_S = 60.0
_BUSY_TRIES, _LONGEST_BUSY_S = 5, 10.0
"""Of one request that the API server is too busy for (429), and how long it is waited for between two of them."""
_AT_ONCE = 8
"""Requests side by side, where many of one kind are made."""
_PAGE = 500
"""Objects a request of a list: bounds what one answer holds in memory, here and in the API server."""
_APPLY, _MERGE = "application/apply-patch+yaml", "application/merge-patch+json"
_LEASES = "coordination.k8s.io/v1"
_CHILDREN = {
    "Service": ("v1", "services"),
    "ServiceAccount": ("v1", "serviceaccounts"),
    "PersistentVolumeClaim": ("v1", "persistentvolumeclaims"),
    "Deployment": ("apps/v1", "deployments"),
    "PodDisruptionBudget": ("policy/v1", "poddisruptionbudgets"),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", "rolebindings"),
}
"""What the operator makes beside Secrets: kind → API version, plural."""


class ApiError(Exception):
    """The API server refused, or was not reached."""

    def __init__(self, status: int, message: str, retry_after_s: float = 0.0, *, said: bool = False) -> None:
        super().__init__(f"{status}: {message}" if status else message)
        self.status = status
        """0 = not reached."""
        self.retry_after_s = retry_after_s
        """What it asked for; 0 = nothing."""
        self.said = said
        """Somebody complained already: `Rights`, of one that is missing."""


class WritesRefused(ApiError):
    """All that could be done was; some objects the API server did not take."""


@dataclass(slots=True)
class _State:
    """What is remembered of a namespace, as it was read last."""

    version: str = ""
    kept: Kept = field(default_factory=Kept)
    texts: Texts = field(default_factory=Texts)


class Api:
    """An open connection. Raises ApiError."""

    def __init__(
        self,
        client: ApiClient,
        rights: Rights,
        may_write: Callable[[], bool] = lambda: True,
        states: dict[str, _State] | None = None,
    ) -> None:
        self._client = client
        self._rights = rights
        self._may_write = may_write
        self.answers: Counter[tuple[str, int]] = Counter()
        """How often a method was answered with a status; 0 = not at all."""
        self._states = {} if states is None else states
        """By namespace. Reading one of 2,000 objects anew takes a third of a second."""

    @classmethod
    async def connect(cls, rights: Rights) -> Self:
        """With the service account of a pod, else with the current context of the kubeconfig. `rights` hears what is refused."""
        configuration = Configuration()
        try:
            await _load_credentials(configuration)
        except credentials.ConfigException as error:
            raise ApiError(0, f"there are neither a pod's service account nor a usable kubeconfig: {error}") from error
        configuration.retries = False  # the worker of a namespace comes again by itself
        return cls(ApiClient(configuration), rights)

    def only_while(self, may_write: Callable[[], bool]) -> Self:
        """The same connection, that writes nothing when `may_write` says no."""
        view = type(self)(self._client, self._rights, may_write, self._states)
        view.answers = self.answers
        return view

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.close()  # type: ignore[no-untyped-call] # as shipped

    async def missing_kinds(self) -> list[str]:
        """Kinds whose CustomResourceDefinition is not served yet."""
        try:
            found = await self._request("GET", f"/apis/{GROUP}/{VERSION}")
        except ApiError as error:
            if error.status != 404:
                raise
            return list(KINDS)
        served = {resource["kind"] for resource in found["resources"] if CATEGORY in (resource.get("categories") or [])}
        return [kind for kind in KINDS if kind not in served]

    async def openapi(self) -> dict[str, Any]:
        """How the kinds are served, which every account may read."""
        return await self._request("GET", f"/openapi/v3/apis/{GROUP}/{VERSION}")

    async def objects(self, namespace: str) -> list[dict[str, Any]]:
        """All objects of all kinds, each with its `kind`."""
        lists = await asyncio.gather(*(self._list(self._of_kind(namespace, kind)) for kind in KINDS))
        return [item | {"kind": kind} for kind, items in zip(KINDS, lists, strict=True) for item in items]

    async def read_state(self, namespace: str) -> tuple[Kept, str]:
        """What is remembered, and the resourceVersion to give back with `write_state`; empty = there is none."""
        secret = await self.secret(namespace, STATE_SECRET)
        if secret is None:
            self._states.pop(namespace, None)
            return Kept(), ""
        version, state = str(secret["metadata"]["resourceVersion"]), self._states.setdefault(namespace, _State())
        if version != state.version:
            state.kept, state.version = load(secret.get("data") or {}, state.texts), version
        return state.kept, version

    async def write_state(self, namespace: str, kept: Kept, version: str) -> None:
        """Remember. Refused (409) when it is not what was read that is replaced."""
        metadata = {"name": STATE_SECRET, "namespace": namespace, "labels": LABELS}
        body: dict[str, Any] = {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata}
        body["data"] = dump(kept, self._states.setdefault(namespace, _State()).texts)
        if version:
            metadata["resourceVersion"] = version
        await self.write_secret(body)

    async def router_secrets(self, namespace: str, nodes: list[str]) -> dict[str, dict[str, Any]]:
        """Those that are there, by name of RouterNode. Read one by one: a list would need the right to see all Secrets."""
        limit = asyncio.Semaphore(_AT_ONCE)

        async def one(node: str) -> dict[str, Any] | None:
            async with limit:
                return await self.secret(namespace, router_secret(node))

        found = await asyncio.gather(*map(one, nodes))
        return {node: secret for node, secret in zip(nodes, found, strict=True) if secret is not None}

    async def apply_secret(self, manifest: Mapping[str, Any]) -> None:
        """Server-side apply."""
        metadata = manifest["metadata"]
        await self._apply(f"/api/v1/namespaces/{metadata['namespace']}/secrets/{metadata['name']}", manifest)

    async def children(self, namespace: str, names: Iterable[str], *, roles: bool) -> dict[ChildKey, dict[str, Any]]:
        """All Services, whose names anybody may have taken; of the other kinds what the operator made, and what has one of `names`.

        `roles`: it may give roles, so that it has the right to look for what it gave.
        """
        kinds = [kind for kind in _CHILDREN if kind != "RoleBinding" or roles]
        lists = await asyncio.gather(*(self._children_of(kind, namespace, names) for kind in kinds))
        return {key_of(child): child for children in lists for child in children}

    async def _children_of(self, kind: str, namespace: str, names: Iterable[str]) -> list[dict[str, Any]]:
        version, plural = _CHILDREN[kind]
        path = _path(version, namespace, plural)
        labels = "" if kind == "Service" else f"app.kubernetes.io/managed-by={FIELD_MANAGER}"
        items = await self._list(path, labels)
        mine = {item["metadata"]["name"] for item in items}
        for name in () if kind == "Service" else names:
            if name not in mine:  # a list, as the operator has no right to get
                items += await self._list(path, fields=f"metadata.name={name}")
        return [item | {"kind": kind, "apiVersion": version} for item in items]

    async def apply_child(self, manifest: Mapping[str, Any]) -> None:
        """Server-side apply."""
        metadata = manifest["metadata"]
        version, plural = _CHILDREN[manifest["kind"]]
        await self._apply(f"{_path(version, metadata['namespace'], plural)}/{metadata['name']}", manifest)

    async def delete_child(self, namespace: str, key: ChildKey) -> None:
        """And what hangs on it, in the background."""
        version, plural = _CHILDREN[key.kind]
        try:
            await self._request(
                "DELETE", f"{_path(version, namespace, plural)}/{key.name}?propagationPolicy=Background"
            )
        except ApiError as error:
            if error.status != 404:
                raise

    async def pods(self, namespace: str) -> list[dict[str, Any]]:
        """Those labelled with a node, and those of masters."""
        path = _path("v1", namespace, "pods")
        labels = (NODE_LABEL, f"{MASTER_LABEL},!{NODE_LABEL}")
        of_nodes, of_masters = await asyncio.gather(*(self._list(path, label) for label in labels))
        return of_nodes + of_masters

    async def apply_status(self, namespace: str, write: StatusWrite) -> None:
        """Server-side apply; what others wrote beside it is taken out. Nothing is written when the object is gone, or another one by now."""
        path = f"{self._of_kind(namespace, write.key.kind)}/{write.key.name}/status"
        try:
            if write.before:
                await self._merge(path, {"uid": write.body["metadata"]["uid"]}, write.before)
            found = await self._apply(path, write.body)
            if rest := left_over(write.body["status"], found.get("status") or {}, write.own):
                # of what was there a moment ago: whatever came since is for the next round
                await self._merge(path, {name: found["metadata"][name] for name in ("uid", "resourceVersion")}, rest)
        except ApiError as error:
            if error.status not in {404, 409}:
                raise

    async def create_event(self, event: Mapping[str, Any]) -> None:
        """For `kubectl describe`. The API server forgets it after an hour."""
        await self._request("POST", f"/apis/events.k8s.io/v1/namespaces/{event['metadata']['namespace']}/events", event)

    async def with_previous(self, namespace: str, references: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
        """Of (Secret, key) pairs those whose Secret has `KEY-previous` too."""
        found = set()
        for name, key in references:
            secret = await self.secret(namespace, name)
            if secret is not None and f"{key}-previous" in (secret.get("data") or {}):
                found.add((name, key))
        return found

    async def secret_value(self, namespace: str, reference: SecretKeyRef) -> str | None:
        """One value of a Secret; None = there is none."""
        secret = await self.secret(namespace, reference.name)
        value = None if secret is None else (secret.get("data") or {}).get(reference.key)
        return None if value is None else base64.b64decode(value).decode("utf-8", "replace").strip()

    async def trust(self, kind: str, name: str, authorities: str) -> None:
        """Have the API server trust these for the webhooks of a configuration of that kind. Raises LookupError when there is none."""
        path = f"/apis/admissionregistration.k8s.io/v1/{kind.lower()}s/{name}"
        try:
            found = await self._request("GET", path)
        except ApiError as error:
            if error.status == 404:
                raise LookupError(f"there is no {kind} {name}") from error
            raise
        trusted = base64.b64encode(authorities.encode()).decode()
        hooks = found.get("webhooks") or []
        if any(hook["clientConfig"].get("caBundle") != trusted for hook in hooks):
            told = [{"name": hook["name"], "clientConfig": {"caBundle": trusted}} for hook in hooks]
            head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": {"name": name}}
            await self._apply(path, head | {"webhooks": told})

    async def write_secret(self, manifest: Mapping[str, Any]) -> None:
        """Create it, or replace the one of the same resourceVersion."""
        metadata = manifest["metadata"]
        path = f"/api/v1/namespaces/{metadata['namespace']}/secrets"
        if "resourceVersion" in metadata:
            await self._request("PUT", f"{path}/{metadata['name']}", manifest)
        else:
            await self._request("POST", path, manifest)

    async def lease(self, namespace: str, name: str) -> dict[str, Any] | None:
        """A whole Lease; None = there is none."""
        return await self._found(f"{_path(_LEASES, namespace, 'leases')}/{name}")

    async def write_lease(self, manifest: Mapping[str, Any]) -> dict[str, Any]:
        """Create it, or replace the one of the same resourceVersion; gives what there is now."""
        metadata = manifest["metadata"]
        path = _path(_LEASES, metadata["namespace"], "leases")
        if "resourceVersion" in metadata:
            return await self._request("PUT", f"{path}/{metadata['name']}", manifest)
        return await self._request("POST", path, manifest)

    @staticmethod
    def _of_kind(namespace: str, kind: str) -> str:
        return f"/apis/{API_VERSION}/namespaces/{namespace}/{KINDS[kind].plural}"

    async def secret(self, namespace: str, name: str) -> dict[str, Any] | None:
        """A whole Secret; None = there is none."""
        return await self._found(f"/api/v1/namespaces/{namespace}/secrets/{name}")

    async def _found(self, path: str) -> dict[str, Any] | None:
        try:
            return await self._request("GET", path)
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    async def _list(self, path: str, labels: str = "", fields: str = "") -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        more = ""
        while True:
            wanted = {"limit": str(_PAGE), "labelSelector": labels, "fieldSelector": fields, "continue": more}
            query = {name: value for name, value in wanted.items() if value}
            page = await self._request("GET", f"{path}?{urlencode(query)}")
            items += page["items"]
            more = page["metadata"].get("continue", "")
            if not more:
                return items

    async def _apply(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Gives what is there now."""
        query = f"?fieldManager={FIELD_MANAGER}&force=true"  # these fields are the operator's alone
        return await self._request("PATCH", path + query, body, content_type=_APPLY)

    async def _merge(self, path: str, metadata: Mapping[str, Any], status: Mapping[str, Any]) -> None:
        body = {"metadata": metadata, "status": status}
        await self._request("PATCH", f"{path}?fieldManager={FIELD_MANAGER}", body, content_type=_MERGE)

    async def _request(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, content_type: str = "application/json"
    ) -> dict[str, Any]:
        """A busy API server did nothing, and says when to come again: a round of hundreds of requests does not begin anew for it."""
        for _ in range(_BUSY_TRIES - 1):
            try:
                return await self._once(method, path, body, content_type)
            except ApiError as error:
                if error.status != 429 or not 0 < error.retry_after_s <= _LONGEST_BUSY_S:
                    raise
                await asyncio.sleep(error.retry_after_s)
        return await self._once(method, path, body, content_type)

    async def _once(self, method: str, path: str, body: Mapping[str, Any] | None, content_type: str) -> dict[str, Any]:
        if method != "GET" and not self._may_write():
            raise ApiError(0, "another operator may have the Lease by now: nothing is written")
        headers = {"Accept": "application/json", "Content-Type": content_type}
        try:
            request = await self._client.param_serialize(
                method, path, header_params=headers, body=body, auth_settings=["BearerToken"]
            )
            answer = await self._client.call_api(*request, _request_timeout=_TIMEOUT_S)
            text: bytes = await answer.response.read()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            self.answers[method, 0] += 1
            raise ApiError(0, f"the API server was not reached: {error!r}") from error
        self.answers[method, answer.status] += 1
        plain, _, _ = path.partition("?")
        if answer.status >= 400:
            message = _message(text)
            if answer.status == 403 and (right := missing(message, plain)) is not None:
                self._rights.lacks(right)
                raise ApiError(403, f"may not {right}", said=True)
            raise ApiError(answer.status, message, _retry_after_s(answer.response.headers))
        self._rights.has(used(method, plain, answer.status))
        decoded: dict[str, Any] = json.loads(text)
        return decoded


def _path(version: str, namespace: str, plural: str) -> str:
    return f"/{'apis' if '/' in version else 'api'}/{version}/namespaces/{namespace}/{plural}"


async def _load_credentials(configuration: Configuration) -> None:
    if (SERVICE_ACCOUNT / "token").exists():
        credentials.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call] # as shipped
    else:
        await credentials.load_kube_config(client_configuration=configuration)  # type: ignore[no-untyped-call] # as shipped


def _retry_after_s(headers: Mapping[str, str]) -> float:
    """The API server's is a number of seconds."""
    asked = headers.get("Retry-After", "")
    return min(float(asked), _LONGEST_RETRY_AFTER_S) if asked.isascii() and asked.isdigit() else 0.0


def _message(text: bytes) -> str:
    """Of a Status object; proxies answer with other things."""
    try:
        return str(json.loads(text)["message"])
    except (ValueError, KeyError, TypeError):
        return text[:200].decode("utf-8", "replace")
