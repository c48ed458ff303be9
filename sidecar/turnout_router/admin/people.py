"""Who may sign in: names and hashes of passwords, from `access.admins_file`.

    users:
    - {name: ann, passwordHash: "$argon2id$v=19$m=65536,t=3,p=4$…"}

The file is read again when it changes; one that cannot be used changes nothing. Checking a name that nobody has costs
what checking a real one costs: else the time of an answer would tell which names there are.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from turnout_router.access import AccessError, stamp_of
from turnout_router.admin.passwords import PasswordHash, UnusableHash, decoy_for_nobody
from turnout_router.invalid import what_is_wrong

MAX_PEOPLE = 10_000

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Person:
    """Somebody who may sign in."""

    name: str
    password: PasswordHash = field(repr=False)


class People:
    """Everybody who may sign in."""

    def __init__(self, people: Mapping[str, Person]) -> None:
        self._people = people
        self._decoy = _decoy(people)
        self._stamp: object = None

    @classmethod
    def of(cls, path: str) -> "People":
        """Those in the file; nobody without one. Blocks. Raises AccessError."""
        stamp = stamp_of(path)
        people = cls(_read(path))
        people._stamp = stamp
        return people

    def follow(self, path: str) -> None:
        """Read the file again if it, or its name, changed. One that cannot be used changes nothing. Blocks."""
        stamp = stamp_of(path)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            found = _read(path)
        except AccessError as error:
            log.warning("who may sign in stays what it was: %s", error)
        else:
            self._decoy = _decoy(found)
            self._people = found
            log.info("who may sign in was read again")

    def find(self, name: str) -> Person | None:
        """Whoever has this name now."""
        return self._people.get(name)

    def check(self, name: str, password: str) -> Person | None:
        """Whoever has this name and this password. Blocks, for as long whether or not there is such a name."""
        person = self._people.get(name)
        matches = (person.password if person else self._decoy or decoy_for_nobody()).matches(password)
        return person if matches else None


def _decoy(people: Mapping[str, Person]) -> PasswordHash | None:
    """What a name that nobody has is checked against; None where nobody has any, and time has nothing to tell."""
    first = next(iter(people.values()), None)
    return first.password.decoy() if first else None


class _User(BaseModel):
    model_config = ConfigDict(extra="forbid", populate_by_name=True)

    name: Annotated[str, Field(min_length=1, max_length=253)]
    password_hash: Annotated[str, Field(alias="passwordHash", min_length=1, max_length=1024)]


class _Users(BaseModel):
    model_config = ConfigDict(extra="forbid")

    users: Annotated[list[_User], Field(max_length=MAX_PEOPLE)]


def _read(path: str) -> dict[str, Person]:
    if not path:
        return {}
    try:
        document = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        users = _Users.model_validate(document).users
    except ValidationError as error:
        raise AccessError(f"the people in {path} cannot be used: {'; '.join(what_is_wrong(error))}") from None
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise AccessError(f"the people in {path} cannot be used: {error}") from error
    people: dict[str, Person] = {}
    for index, user in enumerate(users):
        if user.name in people:
            raise AccessError(f"the people in {path} cannot be used: users.{index}: a name is there twice")
        try:
            people[user.name] = Person(user.name, PasswordHash.parse(user.password_hash))
        except UnusableHash as error:
            raise AccessError(f"the people in {path} cannot be used: users.{index}.passwordHash: {error}") from None
    return people
