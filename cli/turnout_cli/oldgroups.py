"""Symmetric routing groups of earlier releases → one-way links (spec: Upgrading from routing groups).

In a group every member could serve every other. Each pair of members on different nodes becomes two links, one a
direction, with loading allowed; the restore flag of a member goes to the links in which it is the helper. A member
without the flag did not restore. Several groups that have a pair in one lane give its links once.

The names of links follow from their ends alone, so that migrating again gives the same objects.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from typing import Annotated

from pydantic import BeforeValidator, Field, ValidationError

from turnout_api.manifests import Finding
from turnout_api.resources import API_VERSION, NodeModelRef, Part
from turnout_api.resources.refusals import Path, refusals
from turnout_api.vocabulary import Lane
from turnout_api.yamlnodes import Unreadable, compose

_SHAPE = "write groups: [{lane: Text, members: [{node: gpu-a, model: cc11, restoreAfterBorrow: true}]}]"
_MAX_NAME = 253
_DIGEST = 8


def _lane(value: object) -> object:
    return value.capitalize() if isinstance(value, str) else value


class Member(NodeModelRef):
    """A model that could serve every other one of its group."""

    restore_after_borrow: bool = False
    """Whether its node loaded back what borrowed work had displaced."""


class Group(Part):
    """Models of one lane that served each other."""

    lane: Annotated[Lane, BeforeValidator(_lane)]
    members: Annotated[list[Member], Field(min_length=1, max_length=256)]


class Groups(Part):
    """The file."""

    groups: Annotated[list[Group], Field(min_length=1, max_length=1024)]


@dataclass(frozen=True, slots=True)
class Direction:
    """One link to be written."""

    lane: Lane
    owner: NodeModelRef
    helper: NodeModelRef
    restore: bool
    line: int
    """Where the helper stands in the file."""

    @property
    def name(self) -> str:
        """A name that Kubernetes takes and that no other ends have."""
        parts = [self.lane.lower(), self.owner.node, self.owner.model, "to", self.helper.node, self.helper.model]
        plain = ".".join(_label(part) for part in parts)
        if plain == ".".join(parts) and len(plain) <= _MAX_NAME:
            return plain
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_DIGEST]
        return f"{plain[: _MAX_NAME - _DIGEST - 1].rstrip('.-')}-{digest}"

    def manifest(self, *, namespace: str, acknowledge: str) -> dict[str, object]:
        """The RoutingLink."""
        spec: dict[str, object] = {
            "lane": str(self.lane),
            "owner": {"node": self.owner.node, "model": self.owner.model},
            "helper": {"node": self.helper.node, "model": self.helper.model},
            "loadIfUnloaded": True,
            "restoreAfterBorrow": self.restore,
        }
        if acknowledge:
            spec["acknowledgeDifferentWeights"] = acknowledge
        metadata = {"name": self.name} | ({"namespace": namespace} if namespace else {})
        return {"apiVersion": API_VERSION, "kind": "RoutingLink", "metadata": metadata, "spec": spec}


@dataclass(frozen=True, slots=True)
class Migration:
    """What a file of groups comes to."""

    directions: tuple[Direction, ...] = ()
    errors: tuple[Finding, ...] = ()
    """Why the file cannot be used; then there is nothing else."""
    warnings: tuple[Finding, ...] = ()


def migrate(file: str, text: str) -> Migration:
    """Both directions of every pair, in the order of the file."""
    try:
        documents = list(compose(text))
    except Unreadable as error:
        return Migration(errors=(Finding(file, error.line, str(error)),))
    if len(documents) != 1:
        return Migration(errors=(Finding(file, 1, f"holds {len(documents)} documents, one is needed: {_SHAPE}"),))
    [document] = documents
    problems = [Finding(file, line, message) for line, message in document.problems]
    if not isinstance(document.value, Mapping):
        problems.append(Finding(file, document.lines[()], f"holds no groups: {_SHAPE}"))
    try:
        groups = Groups.model_validate(document.value, by_alias=True, by_name=False).groups if not problems else []
    except ValidationError as error:
        problems += [
            Finding(file, _line(document.lines, refusal.path), refusal.message) for refusal in refusals(Groups, error)
        ]
        groups = []
    if problems:
        return Migration(errors=tuple(problems))
    return _migrated(file, groups, document.lines)


def _migrated(file: str, groups: list[Group], lines: Mapping[Path, int]) -> Migration:
    found: dict[tuple[Lane, NodeModelRef, NodeModelRef], Direction] = {}
    warnings: list[Finding] = []
    for index, group in enumerate(groups):
        at: Path = ("groups", index)
        if len({member.node for member in group.members}) == 1:
            said = "all members are on one node, so the group gives no link: nothing was lent in it"
            warnings.append(Finding(file, _line(lines, at), said))
        for direction in _directions(group, lines, at):
            key = (direction.lane, direction.owner, direction.helper)
            known = found.setdefault(key, direction)
            if known.restore != direction.restore:
                said = f"{direction.name}: restoreAfterBorrow is true in one place and false in another, true is kept"
                warnings.append(Finding(file, direction.line, said))
                found[key] = replace(known, restore=True)
    return Migration(tuple(found.values()), warnings=tuple(dict.fromkeys(warnings)))


def _directions(group: Group, lines: Mapping[Path, int], at: Path) -> Iterator[Direction]:
    for (_, owner), (place, helper) in permutations(enumerate(group.members), 2):
        if owner.node != helper.node:
            yield Direction(
                lane=group.lane,
                owner=_end(owner),
                helper=_end(helper),
                restore=helper.restore_after_borrow,
                line=_line(lines, (*at, "members", place)),
            )


def _end(member: Member) -> NodeModelRef:
    return NodeModelRef(node=member.node, model=member.model)


def _label(part: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", part.lower()).strip("-") or "x"


def _line(lines: Mapping[Path, int], path: Iterable[str | int]) -> int:
    """Of the field, or of the nearest one around it."""
    at = tuple(path)
    while at not in lines:
        at = at[:-1]
    return lines[at]
