"""Who may sign in follows the file; one that cannot be used changes nothing, and its message shows no hash."""

from pathlib import Path

import pytest
import yaml
from argon2 import PasswordHasher

from turnout_router.access import AccessError
from turnout_router.admin.people import People

CHEAP = PasswordHasher(time_cost=1, memory_cost=64, parallelism=1)


def write(path: Path, **people: str) -> str:
    users = [{"name": name, "passwordHash": CHEAP.hash(password)} for name, password in people.items()]
    path.write_text(yaml.safe_dump({"users": users}))
    return str(path)


def test_a_person_needs_the_password_of_that_name(tmp_path: Path) -> None:
    people = People.of(write(tmp_path / "users.yaml", ann="one", bob="two"))
    found = people.check("ann", "one")
    assert found is not None
    assert found.name == "ann"
    assert people.check("ann", "two") is None
    assert people.check("eve", "one") is None


def test_nobody_may_sign_in_without_a_file() -> None:
    assert People.of("").check("admin", "admin") is None


def test_the_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    path = write(tmp_path / "users.yaml", ann="one")
    people = People.of(path)
    write(tmp_path / "users.yaml", ann="other", bob="two")
    people.follow(path)
    assert people.check("ann", "one") is None
    assert people.check("bob", "two") is not None


def test_a_file_that_cannot_be_used_changes_nothing(tmp_path: Path) -> None:
    path = write(tmp_path / "users.yaml", ann="one")
    people = People.of(path)
    Path(path).write_text("users: [{name: ann, passwordHash: hunter2}]")
    people.follow(path)
    assert people.check("ann", "one") is not None


@pytest.mark.parametrize(
    "text",
    [
        "users: [{name: ann, passwordHash: hunter2}]",
        "users: [{name: ann, password: hunter2}]",
        "people: []",
        "[1, 2",
        "users: [{name: '', passwordHash: hunter2}]",
    ],
)
def test_an_unusable_file_is_refused_without_showing_what_may_be_a_secret(tmp_path: Path, text: str) -> None:
    path = tmp_path / "users.yaml"
    path.write_text(text)
    with pytest.raises(AccessError) as refused:
        People.of(str(path))
    assert "hunter2" not in str(refused.value)


def test_a_name_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    hashed = CHEAP.hash("x")
    path = tmp_path / "users.yaml"
    path.write_text(yaml.safe_dump({"users": [{"name": "ann", "passwordHash": hashed}] * 2}))
    with pytest.raises(AccessError, match="twice"):
        People.of(str(path))


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match=r"users\.yaml"):
        People.of(str(tmp_path / "users.yaml"))
