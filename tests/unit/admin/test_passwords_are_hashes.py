"""argon2id and scrypt hashes of passwords: read, checked, bounded in what they cost."""

from base64 import b64encode
from hashlib import scrypt

import pytest
from argon2 import PasswordHasher, Type

from turnout_router.admin.passwords import PasswordHash, UnusableHash

CHEAP = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


def base64(raw: bytes) -> str:
    return b64encode(raw).decode().rstrip("=")


def scrypt_hash(password: bytes, *, log_n: int = 10, r: int = 1, p: int = 2) -> str:
    key = scrypt(password, salt=b"0123456789abcdef", n=1 << log_n, r=r, p=p)
    return f"$scrypt$ln={log_n},r={r},p={p}${base64(b'0123456789abcdef')}${base64(key)}"


@pytest.mark.parametrize("text", [CHEAP.hash("pässword"), scrypt_hash("pässword".encode())], ids=["argon2id", "scrypt"])
def test_the_right_password_matches_and_no_other(text: str) -> None:
    stored = PasswordHash.parse(text)
    assert stored.matches("pässword")
    assert not stored.matches("password")
    assert not stored.matches("")
    assert not stored.matches("p\ud800")


@pytest.mark.parametrize("text", [CHEAP.hash("x"), scrypt_hash(b"x")], ids=["argon2id", "scrypt"])
def test_a_decoy_costs_the_same_and_nothing_matches_it(text: str) -> None:
    decoy = PasswordHash.parse(text).decoy()
    assert decoy.text.rsplit("$", 2)[0] == text.rsplit("$", 2)[0]
    assert not PasswordHash.parse(decoy.text).matches("x")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hunter2", "neither"),
        ("$2b$12$abcdefghijklmnopqrstuv", "neither"),
        (PasswordHasher(time_cost=1, memory_cost=64, parallelism=1, type=Type.I).hash("x"), "argon2id"),
        ("$argon2id$v=19$m=4194304,t=3,p=4$c29tZXNhbHRzb21l$aGFzaGhhc2hoYXNoaGFzaA", "cost"),
        ("$argon2id$v=19$m=64,t=99,p=1$c29tZXNhbHRzb21l$aGFzaGhhc2hoYXNoaGFzaA", "cost"),
        (scrypt_hash(b"x").replace("ln=10", "ln=24"), "outside"),
        (scrypt_hash(b"x").replace("ln=10", "ln=9"), "outside"),
        (scrypt_hash(b"x").replace("p=2", "p=0"), "outside"),
        ("$scrypt$ln=15,r=8,p=1$short$short", "form"),
    ],
    ids=["plain", "bcrypt", "argon2i", "memory", "passes", "ln-24", "ln-9", "p-0", "no-form"],
)
def test_what_is_no_hash_of_these_kinds_or_too_dear_is_refused(text: str, why: str) -> None:
    with pytest.raises(UnusableHash, match=why):
        PasswordHash.parse(text)
