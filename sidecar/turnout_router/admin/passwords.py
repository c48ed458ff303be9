"""Passwords as hashes: argon2id or scrypt, both in the PHC string format. Every check here takes long, on purpose.

    $argon2id$v=19$m=65536,t=3,p=4$SALT$HASH          argon2-cffi, htpasswd-like tools, `turnout up`
    $scrypt$ln=15,r=8,p=1$SALT$HASH                   passlib and others; Base64 without padding

Invariant: what a hash costs is bounded before it is computed, so no line of a file can take a router's memory.
"""

import hmac
import os
import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from hashlib import scrypt

from argon2 import PasswordHasher, Type, extract_parameters
from argon2.exceptions import InvalidHashError, VerificationError

MAX_MEMORY_BYTES = 512 * 1024 * 1024
MAX_ARGON2_PASSES, MAX_ARGON2_LANES = 32, 32
MAX_PASSWORD_CHARACTERS = 1024
_SCRYPT = re.compile(r"\$scrypt\$ln=(\d{1,2}),r=(\d{1,2}),p=(\d{1,2})\$([A-Za-z0-9+/]{11,86})\$([A-Za-z0-9+/]{22,86})")


class UnusableHash(ValueError):
    """No hash of a kind that is taken; the message says what to do."""


@dataclass(frozen=True, slots=True)
class PasswordHash:
    """A hash that can be checked."""

    text: str
    """As it stands in the file; tells one password from the next."""

    @classmethod
    def parse(cls, text: str) -> "PasswordHash":
        """Raises UnusableHash."""
        if text.startswith("$scrypt$"):
            _scrypt_parts(text)
        else:
            _check_argon2(text)
        return cls(text)

    def matches(self, password: str) -> bool:
        """Whether it is the hash of this password. Blocks, for long."""
        raw = password.encode("utf-8", "surrogatepass")
        if self.text.startswith("$scrypt$"):
            parts = _scrypt_parts(self.text)
            return hmac.compare_digest(_scrypt(raw, parts, len(parts.key)), parts.key)
        try:
            return PasswordHasher().verify(self.text, raw)
        except (VerificationError, InvalidHashError):
            return False

    def decoy(self) -> "PasswordHash":
        """A hash of a password that nobody knows, as dear to check as this one. Blocks, for long."""
        secret, salt = os.urandom(32), os.urandom(16)
        if self.text.startswith("$scrypt$"):
            parts = _scrypt_parts(self.text)
            ours = _Scrypt(parts.log_n, parts.r, parts.p, salt, b"")
            key = _scrypt(secret, ours, len(parts.key))
            return PasswordHash(f"$scrypt$ln={ours.log_n},r={ours.r},p={ours.p}${_base64(salt)}${_base64(key)}")
        return PasswordHash(PasswordHasher.from_parameters(extract_parameters(self.text)).hash(secret))


def decoy_for_nobody() -> PasswordHash:
    """The same where there is no hash to be like. Blocks, for long."""
    return PasswordHash(PasswordHasher().hash(os.urandom(32)))


@dataclass(frozen=True, slots=True)
class _Scrypt:
    log_n: int
    r: int
    p: int
    salt: bytes
    key: bytes

    @property
    def memory_bytes(self) -> int:
        return 128 * (1 << self.log_n) * self.r


def _scrypt_parts(text: str) -> _Scrypt:
    found = _SCRYPT.fullmatch(text)
    if found is None:
        raise UnusableHash("it is no scrypt hash of the form $scrypt$ln=15,r=8,p=1$SALT$HASH")
    log_n, r, p = map(int, found.group(1, 2, 3))
    try:
        salt, key = (b64decode(part + "=" * (-len(part) % 4)) for part in found.group(4, 5))
    except Base64Error as error:
        raise UnusableHash("its salt or hash is no Base64") from error
    parts = _Scrypt(log_n, r, p, salt, key)
    if not (log_n >= 10 and r >= 1 and 1 <= p <= 16 and parts.memory_bytes <= MAX_MEMORY_BYTES):
        raise UnusableHash(f"ln={log_n},r={r},p={p} is outside what is taken: ln from 10, p to 16, at most 512 MiB")
    return parts


def _scrypt(password: bytes, parts: _Scrypt, length: int) -> bytes:
    room = parts.memory_bytes + 1024 * 1024 * parts.p
    return scrypt(password, salt=parts.salt, n=1 << parts.log_n, r=parts.r, p=parts.p, maxmem=room, dklen=length)


def _check_argon2(text: str) -> None:
    try:
        given = extract_parameters(text)
    except InvalidHashError as error:
        raise UnusableHash("it is neither an argon2id nor a scrypt hash") from error
    if given.type is not Type.ID:
        raise UnusableHash("it is an argon2 hash of another variant: argon2id is taken")
    dear = given.time_cost > MAX_ARGON2_PASSES or given.parallelism > MAX_ARGON2_LANES
    if dear or given.memory_cost * 1024 > MAX_MEMORY_BYTES:
        raise UnusableHash("its cost is outside what is taken: at most 512 MiB, 32 passes and 32 lanes")


def _base64(raw: bytes) -> str:
    return b64encode(raw).decode().rstrip("=")
