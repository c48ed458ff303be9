"""Where the objects that people change are kept, as a port: this router has no copy that it could change.

`KeptElsewhere` asks whoever keeps them (`admin.objects_url`: `turnout up`) and waits until routers serve the change;
`custom_resources.CustomResources` does the same with the API server of a cluster (`admin.namespace`). `OnlyServed` shows what this
router serves and changes nothing.
"""

import asyncio
from hashlib import sha256
from typing import Any, Protocol, TypeVar

import orjson
from pydantic import BaseModel, ValidationError

from turnout_api.config import (
    FrontendConfig,
    GuardianConfig,
    LinkConfig,
    PoolConfig,
    RouterConfig,
    TargetConfig,
)
from turnout_api.objects import (
    OBJECTS_PATH,
    ObjectWrite,
    ObjectWritten,
    StoredObject,
    StoredObjects,
    Writable,
    WriteRefusal,
)
from turnout_router.access import AccessError, read_secret
from turnout_router.admin.errors import AdminError, Exists, NotFound, NotHere, Stale, Unacceptable
from turnout_router.upstream.interface import BodyTooLarge, Origin, UpstreamClient, UpstreamError, UpstreamRequest

MAX_ANSWER_BYTES = 32 * 1024 * 1024
CALL_S = 10.0
CHANGE_S = 60.0
"""A change waits for those before it, and for routers that take up to half a minute to take it."""
Answer = TypeVar("Answer", bound=BaseModel)


class Objects(Protocol):
    """Whoever keeps them."""

    async def all(self, kind: Writable) -> list[StoredObject]:
        """Every object of a kind. Raises AdminError."""
        ...

    async def change(self, wish: ObjectWrite) -> StoredObject | None:
        """What is kept and served afterwards; None = it was removed. Raises AdminError, and nothing has changed."""
        ...


class KeptElsewhere:
    """Asks over HTTP, with a token of its own."""

    def __init__(self, client: UpstreamClient, url: str, token_file: str) -> None:
        self._client, self._url, self._token_file = client, url, token_file

    async def all(self, kind: Writable) -> list[StoredObject]:
        """As `Objects`."""
        status, body = await self._call("GET", f"{OBJECTS_PATH}?kind={kind}", b"", CALL_S)
        if status != 200:
            raise _unusable(status)
        return _read(StoredObjects, body).objects

    async def change(self, wish: ObjectWrite) -> StoredObject | None:
        """As `Objects`."""
        status, body = await self._call("POST", OBJECTS_PATH, wish.model_dump_json().encode(), CHANGE_S)
        match status:
            case 200:
                return _read(ObjectWritten, body).object
            case 409:
                raise error_of(_read(WriteRefusal, body))
            case _:
                raise _unusable(status)

    async def _call(self, method: str, target: str, body: bytes, timeout_s: float) -> tuple[int, bytes]:
        try:
            token = await asyncio.to_thread(read_secret, self._token_file, "the token for changes")
            headers = [(b"Authorization", b"Bearer " + token.encode()), (b"Content-Type", b"application/json")]
            async with asyncio.timeout(timeout_s):
                response = await self._client.request(
                    Origin.of(self._url), UpstreamRequest(method, target, headers, body)
                )
                try:
                    return response.status, await response.read_all(MAX_ANSWER_BYTES)
                finally:
                    response.close()
        except (UpstreamError, BodyTooLarge, AccessError, TimeoutError) as error:
            message = "whoever keeps these does not answer: what is served goes on, and nothing can be changed now"
            raise NotHere(message, retry_after_s=5) from error


class OnlyServed:
    """What this router serves."""

    def __init__(self, config: RouterConfig) -> None:
        self._config = config

    async def all(self, kind: Writable) -> list[StoredObject]:
        """As `Objects`."""
        return served(self._config, kind)

    async def change(self, wish: ObjectWrite) -> StoredObject | None:
        """Always NotHere."""
        raise NotHere(
            f"{wish.kind} {wish.name} cannot be changed here: it is given to this router by its configuration; in a "
            "cluster change the custom resource (kubectl apply), or let the operator give the master the right to "
            "(--admin-role)",
            retry_after_s=60,
        )


def served(config: RouterConfig, kind: Writable) -> list[StoredObject]:
    """What a router serves of a kind."""
    match kind:
        case "FrontendModel":
            return [_stored(kind, frontend.name, _frontend_spec(frontend)) for frontend in config.frontends]
        case "ModelPool":
            return [_stored(kind, pool.name, _pool_spec(pool)) for pool in config.pools]
        case "RoutingLink":
            return [_stored(kind, link.name, _link_spec(link)) for link in config.links]
        case "Guardian":
            return [_stored(kind, guardian.name, _guardian_spec(guardian)) for guardian in config.guardians]


def error_of(refusal: WriteRefusal) -> AdminError:
    """What a caller is told of a refused wish."""
    match refusal.code:
        case "stale":
            return Stale(refusal.message, **_now(refusal.current))
        case "exists":
            return Exists(refusal.message, **_now(refusal.current))
        case "not_found":
            return NotFound(refusal.message)
        case "unacceptable":
            return Unacceptable(refusal.message, reason=refusal.reason)
        case "unavailable":
            return NotHere(refusal.message, retry_after_s=5)


def _now(current: StoredObject | None) -> dict[str, Any]:
    if current is None:
        return {}
    return {"version": current.version, "changed_by": current.changed_by or None, "changed_at": current.changed_at}


def _unusable(status: int) -> NotHere:
    return NotHere(f"whoever keeps these answered HTTP {status}: is it of this version?", retry_after_s=5)


def _read(kind: type[Answer], body: bytes) -> Answer:
    try:
        return kind.model_validate_json(body)
    except ValidationError as error:
        raise NotHere("whoever keeps these is of another version", retry_after_s=5) from error


def _stored(kind: Writable, name: str, spec: dict[str, Any]) -> StoredObject:
    version = sha256(orjson.dumps(spec, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]
    return StoredObject(kind=kind, name=name, version=version, spec=spec)


def _pool_spec(pool: PoolConfig) -> dict[str, Any]:
    members = [{"model": member.model, "weight": member.weight} for member in pool.members]
    return _given({"policy": pool.policy and str(pool.policy), "members": members})


def _frontend_spec(frontend: FrontendConfig) -> dict[str, Any]:
    rules = [
        _given(
            {
                "name": rule.name,
                "when": rule.when,
                "action": rule.action,
                "targets": _targets(rule.targets),
                "denyStatus": rule.deny_status,
                "denyMessage": rule.deny_message,
                "jumpTo": rule.jump_to,
                "tag": rule.tag,
            }
        )
        for rule in frontend.rules
    ]
    defaults = {"targets": _targets(frontend.default_targets)} if frontend.default_targets else None
    return _given({"modelName": frontend.model_name, "rules": rules, "defaults": defaults})


def _link_spec(link: LinkConfig) -> dict[str, Any]:
    return {
        "lane": str(link.lane),
        "owner": {"node": link.owner_node, "model": link.owner_model},
        "helper": {"node": link.helper_node, "model": link.helper_model},
        "loadIfUnloaded": link.load_if_unloaded,
        "restoreAfterBorrow": link.restore_after_borrow,
    }


def _guardian_spec(guardian: GuardianConfig) -> dict[str, Any]:
    scope: dict[str, Any] = {"cluster": True}
    if guardian.scope_model:
        scope = {"model": {"node": guardian.scope_node, "model": guardian.scope_model}}
    elif guardian.scope_node:
        scope = {"node": guardian.scope_node}
    return {"scope": scope, "guardian": {"node": guardian.guardian_node, "model": guardian.guardian_model}}


def _targets(targets: list[TargetConfig]) -> list[dict[str, str]]:
    return [{"model": target.model} if target.model else {"pool": target.pool} for target in targets]


def _given(fields: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value not in (None, "", [], {})}
