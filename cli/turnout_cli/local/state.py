"""The state folder: what a cluster keeps between runs, and who may use it now.

    DIR/credentials.json   gatewayKey, clusterToken, admin.name, admin.password; made once, 0600
    DIR/clients.yaml       API keys of clients, for people to write, 0600
    DIR/secrets/           the same as files that routers read, 0600
    DIR/state.json         generation, ports, names (`turnout_api.identity`), the specs that were accepted last
    DIR/admin/objects.yaml what people changed through the admin API (`turnout_cli.local.overlay`)
    DIR/nodes/NAME/        a node's configuration, database and logs
    DIR/lock               held by the kernel while a cluster runs, so it is never stale

Files are replaced whole: whoever reads one sees the old or the new.
"""

import fcntl
import os
import secrets
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

import orjson
import yaml
from argon2 import PasswordHasher
from argon2.exceptions import Argon2Error, InvalidHashError
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from turnout_api.objects import Writable
from turnout_api.resolve import Key
from turnout_cli.local.overlay import Change, Changed
from turnout_cli.local.plan import Folders, NodePorts

T = TypeVar("T", bound=BaseModel)
PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700
KEY_BYTES = 32
NO_CLIENTS = b"""\
# API keys of clients, by their SHA-256 (printf %s KEY | sha256sum). Read again when it changes. For example:
#
# clients:
# - {name: ann, keySha256: 64 hexadecimal digits, roles: [research], models: [assistant]}
# - {name: bob, keySha256: 64 hexadecimal digits, requestsPerMinute: 60, tokensPerMinute: 100000, budgetMicrosPerDay: 5000000}
clients: []
"""


class StateError(Exception):
    """A state folder that cannot be used; the message says what to do."""


class _Kept(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class Admin(_Kept):
    """Who may log in."""

    name: str
    password: str


class Credentials(_Kept):
    """`credentials.json`."""

    gateway_key: str = Field(alias="gatewayKey", min_length=16)
    cluster_token: str = Field(alias="clusterToken", min_length=16)
    admin: Admin


class _Ports(_Kept):
    port: int
    health_port: int


class State(_Kept):
    """`state.json`."""

    generation: int = 0
    gateway_port: int = 0
    """The port that was drawn for `--port 0`."""
    ports: dict[str, _Ports] = {}
    ledger: dict[str, list[str]] = {}
    accepted: list[dict[str, Any]] = []
    """As `turnout_api.resolve.dump_accepted` writes them."""

    def node_ports(self) -> dict[str, NodePorts]:
        """Ports by node."""
        return {name: NodePorts(ports.port, ports.health_port) for name, ports in self.ports.items()}


class _ChangedObject(_Kept):
    kind: Writable
    name: str
    manifest: dict[str, Any] | None
    """None = removed."""
    over: str
    by: str
    at: float


class _ChangedObjects(_Kept):
    """`admin/objects.yaml`."""

    objects: list[_ChangedObject] = []


class StateFolder:
    """An open state folder. Only one process has it open."""

    def __init__(self, folders: Folders, lock: BinaryIO) -> None:
        self.folders = folders
        self._lock = lock

    @classmethod
    def open(cls, root: Path) -> "StateFolder":
        """Make it if need be, and take its lock. Raises StateError."""
        folders = Folders(root.absolute())
        try:
            folders.root.mkdir(parents=True, exist_ok=True, mode=PRIVATE_FOLDER)
            ignore = folders.root / ".gitignore"
            if not ignore.exists():
                ignore.write_text("*\n", encoding="utf-8")  # it holds secrets
            return cls(folders, _locked(folders.lock))
        except OSError as error:
            raise StateError(f"the state folder {folders.root} cannot be used: {error}") from error

    def close(self) -> None:
        """Give the lock back."""
        self._lock.close()

    def credentials(self) -> Credentials:
        """Those of an earlier run, or new ones; the secret files agree with them. Raises StateError."""
        path = self.folders.credentials
        if path.exists():
            credentials = _read(path, Credentials)
        else:
            admin = Admin(name="admin", password=secrets.token_urlsafe(KEY_BYTES))
            key, token = f"sk-{secrets.token_urlsafe(KEY_BYTES)}", secrets.token_hex(KEY_BYTES)
            credentials = Credentials(gateway_key=key, cluster_token=token, admin=admin)
            write_private(path, orjson.dumps(credentials.model_dump(by_alias=True), option=orjson.OPT_INDENT_2) + b"\n")
        self.folders.secrets.mkdir(exist_ok=True, mode=PRIVATE_FOLDER)
        write_private(self.folders.token, credentials.cluster_token.encode() + b"\n")
        write_private(self.folders.gateway_key, credentials.gateway_key.encode() + b"\n")
        _write_users(self.folders.users, credentials.admin)
        if not self.folders.clients.exists():
            write_private(self.folders.clients, NO_CLIENTS)
        return credentials

    def state(self) -> State:
        """What earlier runs kept. Raises StateError."""
        return _read(self.folders.state, State) if self.folders.state.exists() else State()

    def keep(self, state: State) -> None:
        """Replace what is kept. Raises StateError, for example when somebody removed the folder meanwhile."""
        root, again = self.folders.root, "end `turnout up`, and start it again"
        if not self._is_there():
            raise StateError(f"the state folder {root} was removed or replaced: {again}")
        try:
            write_private(self.folders.state, state.model_dump_json(by_alias=True).encode())
        except OSError as error:
            raise StateError(f"the state folder {root} cannot be written ({error.strerror}): {again}") from error

    def changed(self) -> dict[Key, Change]:
        """What people changed in earlier runs. Raises StateError."""
        path = self.folders.changed
        if not path.exists():
            return {}
        try:
            document = yaml.safe_load(path.read_text(encoding="utf-8"))
            kept = _ChangedObjects.model_validate(document)
        except (OSError, UnicodeDecodeError, yaml.YAMLError, ValidationError) as error:
            raise StateError(f"{path} cannot be used ({error}): repair or remove it") from error
        return {Key(o.kind, o.name): Change(o.manifest, o.over, o.by, o.at) for o in kept.objects}

    def keep_changed(self, changed: Changed) -> None:
        """Replace what people changed. Raises StateError."""
        path = self.folders.changed
        objects = [
            {"kind": key.kind, "name": key.name, "manifest": c.document, "over": c.over, "by": c.by, "at": c.at}
            for key, c in changed.items()
        ]
        try:
            path.parent.mkdir(exist_ok=True, mode=PRIVATE_FOLDER)
            write_private(path, yaml.safe_dump({"objects": objects}, sort_keys=False, allow_unicode=True).encode())
        except OSError as error:
            raise StateError(f"{path} cannot be written ({error.strerror})") from error

    def write_control_token(self, token: str) -> None:
        """What the gateway of this run shows where it asks for changes."""
        write_private(self.folders.control_token, token.encode() + b"\n")

    def _is_there(self) -> bool:
        """Whether the folder is the one whose lock we hold: a log of a backend makes a removed one anew, without its keys."""
        try:
            return os.path.samestat(os.fstat(self._lock.fileno()), self.folders.lock.stat())
        except OSError:
            return False


def write_private(path: Path, content: bytes) -> None:
    """Replace a file that only its owner may read."""
    part = path.with_name(path.name + ".part")
    descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, PRIVATE_FILE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    part.chmod(PRIVATE_FILE)
    part.replace(path)


def _locked(path: Path) -> BinaryIO:
    lock = path.open("a+b")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        lock.seek(0)
        holder = lock.read(32).decode(errors="replace").strip() or "unknown"
        lock.close()
        raise StateError(
            f"another `turnout up` (process {holder}) runs on {path.parent}: stop it, or name another folder with --state"
        ) from error
    lock.truncate(0)
    lock.write(f"{os.getpid()}\n".encode())
    lock.flush()
    return lock


def _read(path: Path, kind: type[T]) -> T:
    try:
        return kind.model_validate_json(path.read_bytes())
    except OSError as error:
        raise StateError(f"{path} cannot be used ({error}): repair or remove it") from error
    except ValidationError as error:  # its own text would show what is in the file, which may be a key
        wrong = "; ".join(f"{'.'.join(map(str, e['loc'])) or 'the file'}: {e['msg']}" for e in error.errors())
        raise StateError(f"{path} cannot be used ({wrong}): repair or remove it") from None


def _write_users(path: Path, admin: Admin) -> None:
    if not _knows(path, admin):
        digest = PasswordHasher().hash(admin.password)
        document = {"users": [{"name": admin.name, "passwordHash": digest}]}
        write_private(path, yaml.safe_dump(document, sort_keys=False).encode())


def _knows(path: Path, admin: Admin) -> bool:
    """Whether the file is right already: a hash differs each time, and a changed file would ask for a restart."""
    try:
        user = yaml.safe_load(path.read_text(encoding="utf-8"))["users"][0]
        return bool(user["name"] == admin.name and PasswordHasher().verify(user["passwordHash"], admin.password))
    except (OSError, yaml.YAMLError, LookupError, TypeError, Argon2Error, InvalidHashError):
        return False
