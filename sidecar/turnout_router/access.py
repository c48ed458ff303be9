"""Who may call: cluster tokens between routers, API keys of clients.

Problem: a comparison that stops at the first wrong byte tells an attacker how far he got, and one on text raises for a
non-ASCII header. Idea: both sides are hashed and compared as bytes in constant time; whatever a header holds, the
answer is yes or no, never an exception. A token that is empty, short or a placeholder stops the router at its start.
"""

import hmac
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from turnout_api.config import AccessConfig, ClusterConfig
from turnout_api.vocabulary import Role
from turnout_router.allowances import UNLIMITED, KeyLimits
from turnout_router.invalid import what_is_wrong

MIN_TOKEN_BYTES = 16
MAX_TOKEN_BYTES = 4096
PLACEHOLDERS = ("changeme", "change-me", "change_me", "placeholder", "replaceme", "replace-me", "replace_me", "your-token", "yourtoken")  # fmt: skip
"""A token that contains one of these was copied from an example."""
GATEWAY = "gateway"
MASTER = "master"
RESERVED = frozenset({GATEWAY, MASTER})
"""Who calls, in records, where it is no client: the gateway key, and a master that has a node serve. No client is called so,
or its usage and its budget could not be told from theirs."""

log = logging.getLogger(__name__)


class AccessError(Exception):
    """A secret that cannot be used; the message says which file and what to do."""


@dataclass(frozen=True, slots=True)
class Caller:
    """A client that proved who it is."""

    name: str
    roles: frozenset[str] = frozenset()
    models: frozenset[str] | None = None
    """Public names that it may use; None = all."""
    limits: KeyLimits = UNLIMITED
    is_gateway: bool = False
    """It has the gateway master key, not one of a client's own."""

    def may_use(self, model: str) -> bool:
        """Whether its key is for the model of that public name."""
        return self.models is None or model in self.models


class ClusterTokens:
    """The token of the cluster, and the previous one while it is rotated out.

    A Secret reaches the routers of a cluster at different times, up to a minute apart. So the files are read again when
    they change, and a router that another one refuses with the new token tries the previous one.
    """

    def __init__(self, current: str, previous: str = "") -> None:
        self._stamp: object = None
        self._take(current, previous)

    @classmethod
    def of(cls, cluster: ClusterConfig) -> "ClusterTokens":
        """Those in the files of the configuration; `follow` keeps them so. Raises AccessError."""
        stamp = stamp_of(cluster.token_file, cluster.token_previous_file)
        tokens = cls(*_read_tokens(cluster))
        tokens._stamp = stamp
        return tokens

    def follow(self, cluster: ClusterConfig) -> None:
        """Read the files again if they, or their names, changed. Tokens that cannot be used change nothing. Blocks shortly."""
        stamp = stamp_of(cluster.token_file, cluster.token_previous_file)
        if self._stamp is None or stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._take(*_read_tokens(cluster))
        except AccessError as error:
            log.warning("the cluster tokens stay what they were: %s", error)
        else:
            log.info("the cluster tokens were read again")

    def _take(self, current: str, previous: str) -> None:
        self.offered = tuple(token for token in (current, previous) if token)
        """To show to other routers, in this order: one that has not taken up the new token yet knows the previous one."""
        self._digests = [sha256(token.encode()).digest() for token in self.offered]

    def accepts(self, authorization: Sequence[str]) -> bool:
        """Whether these `Authorization` values (all that the request had) carry a valid token."""
        token = bearer(authorization)
        if not token:
            return False
        digest = sha256(token).digest()
        # no `any`: it would stop at the first match and tell which of the two is in use
        return sum(hmac.compare_digest(digest, known) for known in self._digests) > 0


class ApiKeys:
    """API keys, known by their SHA-256 only. Their files are read again when they change, as those of the tokens are."""

    def __init__(self, callers: dict[bytes, Caller]) -> None:
        self._callers = callers
        self._stamp: object = None

    @classmethod
    def of(cls, access: AccessConfig) -> "ApiKeys":
        """Those in the files of the configuration; `follow` keeps them so. Raises AccessError."""
        stamp = stamp_of(access.gateway_key_file, access.clients_file)
        keys = cls(_read_callers(access))
        keys._stamp = stamp
        return keys

    def follow(self, access: AccessConfig) -> None:
        """Read the files again if they, or their names, changed. Keys that cannot be used change nothing. Blocks shortly."""
        stamp = stamp_of(access.gateway_key_file, access.clients_file)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            self._callers = _read_callers(access)
        except AccessError as error:
            log.warning("the API keys stay what they were: %s", error)
        else:
            log.info("the API keys were read again")

    def caller(self, authorization: Sequence[str], api_key: Sequence[str] = ()) -> Caller | None:
        """Who calls, from `Authorization: Bearer` or, as Anthropic's clients send it, `x-api-key`."""
        token = bearer(authorization) if authorization else _raw(api_key)
        # a lookup by digest takes the same time for every wrong key: where it misses depends on the hash alone
        return self._callers.get(sha256(token).digest()) if token else None

    def named(self, name: str) -> Caller | None:
        """A client of that name, which is never the gateway key."""
        return next(
            (caller for caller in self._callers.values() if caller.name == name and not caller.is_gateway), None
        )

    def clients(self) -> list[Caller]:
        """One for each name that has a key of its own."""
        return list({caller.name: caller for caller in self._callers.values() if not caller.is_gateway}.values())


def bearer(values: Sequence[str]) -> bytes:
    """The token of exactly one `Authorization: Bearer TOKEN` value, else `b""`."""
    raw = _raw(values)
    scheme, _, token = raw.partition(b" ")
    return token.strip() if scheme.lower() == b"bearer" else b""


def _raw(values: Sequence[str]) -> bytes:
    if len(values) != 1 or len(values[0]) > MAX_TOKEN_BYTES:
        return b""
    return values[0].encode("utf-8", "surrogateescape")


def load_cluster_tokens(cluster: ClusterConfig) -> ClusterTokens | None:
    """The cluster's tokens; None for a Standalone without one. Raises AccessError."""
    if not cluster.token_file:
        if cluster.role is Role.STANDALONE:
            return None
        raise AccessError(f"cluster.token_file is missing: a {cluster.role} needs the token that its cluster shares")
    return ClusterTokens.of(cluster)


def _read_tokens(cluster: ClusterConfig) -> tuple[str, str]:
    """A previous token that is gone has been rotated out."""
    current = read_secret(cluster.token_file, "the cluster token")
    path = cluster.token_previous_file
    return current, read_secret(path, "the previous token") if path and Path(path).exists() else ""


def stamp_of(*paths: str) -> object:
    """Differs from an earlier one when one of these files, or its name, changed."""
    return tuple((path, _changed(path)) for path in paths if path)


def _changed(path: str) -> tuple[int, int, int] | None:
    """Differs when the file was written or, as a mounted Secret is, replaced."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _read_callers(access: AccessConfig) -> dict[bytes, Caller]:
    """Who may call, by the digest of the key. Raises AccessError."""
    callers: dict[bytes, Caller] = {}
    if access.gateway_key_file:
        key = read_secret(access.gateway_key_file, "the gateway key")
        callers[sha256(key.encode()).digest()] = Caller(GATEWAY, is_gateway=True)
    if access.clients_file:
        for client in _read_clients(access.clients_file):
            _refuse_confusion(client, callers, access.clients_file)
            models = frozenset(client.models) if client.models is not None else None
            limits = KeyLimits(client.requests_per_minute, client.tokens_per_minute, client.budget_micros_per_day)
            callers[bytes.fromhex(client.key_sha256)] = Caller(client.name, frozenset(client.roles), models, limits)
    if not callers:
        raise AccessError("no client could call: set access.gateway_key_file or access.clients_file")
    return callers


def _refuse_confusion(client: "_Client", callers: dict[bytes, Caller], path: str) -> None:
    """Raises AccessError for a client that records could take for somebody else."""
    if client.name in RESERVED:
        raise AccessError(
            f"the clients in {path} cannot be used: '{client.name}' is the router's own name in records"
            " and usage; give this client another name"
        )
    other = callers.get(bytes.fromhex(client.key_sha256))
    if other is not None and other.name != client.name:
        raise AccessError(
            f"the clients in {path} cannot be used: '{client.name}' and '{other.name}' have the same key; give each its own"
        )


def read_secret(path: str, what: str) -> str:
    """The one line of a secret file. Raises AccessError for one that is missing, empty, short or a placeholder."""
    try:
        text = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise AccessError(f"{what} cannot be read from {path}: {error}") from error
    if not text:
        raise AccessError(f"{what} in {path} is empty")
    folded = text.lower()
    if any(word in folded for word in PLACEHOLDERS) or (text[0], text[-1]) == ("<", ">"):
        raise AccessError(f"{what} in {path} is a placeholder: make one with `openssl rand -hex 32`")
    if len(text.encode()) < MIN_TOKEN_BYTES:
        raise AccessError(
            f"{what} in {path} is shorter than {MIN_TOKEN_BYTES} bytes: make one with `openssl rand -hex 32`"
        )
    return text


class _Client(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: Annotated[str, Field(min_length=1, max_length=253)]
    key_sha256: Annotated[str, Field(alias="keySha256", pattern=r"^[0-9a-f]{64}$")]
    roles: list[str] = []
    models: list[str] | None = None
    requests_per_minute: Annotated[int | None, Field(alias="requestsPerMinute", ge=1)] = None
    tokens_per_minute: Annotated[int | None, Field(alias="tokensPerMinute", ge=1)] = None
    budget_micros_per_day: Annotated[int | None, Field(alias="budgetMicrosPerDay", ge=1)] = None


class _Clients(BaseModel):
    model_config = ConfigDict(extra="forbid")

    clients: list[_Client]


def _read_clients(path: str) -> list[_Client]:
    try:
        document = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        return _Clients.model_validate(document).clients
    except ValidationError as error:
        raise AccessError(f"the clients in {path} cannot be used: {'; '.join(what_is_wrong(error))}") from None
    except (OSError, yaml.YAMLError) as error:
        raise AccessError(f"the clients in {path} cannot be used: {error}") from error
