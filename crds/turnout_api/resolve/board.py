"""Who holds what: everything that two objects of a namespace cannot both have.

Exclusive are: being its Master or Standalone, a public name, a place in an endless chain of jumps, a link's lane and ends,
a guardian's scope. An object is put on the board when it is admitted; whoever comes after it and wants the same is told
who holds it.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from turnout_api import identity
from turnout_api.resolve.interface import Key, Problem
from turnout_api.resolve.reasons import Reason
from turnout_api.resources import FrontendModel, Guardian, Resource, RouterNode, RoutingLink, SplitRecipe
from turnout_api.resources.refusals import Path
from turnout_api.vocabulary import Role

_SHOWN = 12
"""Names of a loop that are told."""
_MASTER = "the one Master or Standalone of the namespace"


@dataclass(frozen=True, slots=True)
class Claim:
    """Something that an object wants for itself."""

    what: tuple[str, ...]
    path: Path


@dataclass(slots=True)
class Board:
    """The admitted objects, and what they hold. Mutable: one run of `admit` owns it."""

    suffixed: Mapping[str, str]
    """Public names with a suffix that the ledger gave out → the public ID that they came from."""
    may_loop: frozenset[str]
    """Frontend models that some choice of specs could put into a loop (`may_loop`); others are not searched."""
    objects: dict[Key, Resource] = field(default_factory=dict)
    _held: dict[tuple[str, ...], dict[Key, None]] = field(default_factory=dict)

    def put(self, key: Key, resource: Resource) -> None:
        """Admit the object, whatever it claims."""
        self.objects[key] = resource
        for claim in claims(resource):
            self._held.setdefault(claim.what, {})[key] = None

    def take(self, key: Key) -> None:
        """Take the object off, if it is there."""
        resource = self.objects.pop(key, None)
        for claim in claims(resource) if resource else ():
            self._held[claim.what].pop(key, None)

    def conflicts(self, key: Key, resource: Resource) -> tuple[Problem, ...]:
        """Why the object cannot be admitted beside those on the board."""
        taken = (problem for claim in claims(resource) if (problem := self._conflict(key, claim)))
        return tuple(dict.fromkeys(taken)) or self._loops(resource)

    def _conflict(self, key: Key, claim: Claim) -> Problem | None:
        holders = [holder for holder in self._held.get(claim.what, ()) if holder != key]
        if claim.what[0] == "name":
            return self._name_conflict(key, claim, holders)
        return _taken(claim, holders[0]) if holders else None

    def _name_conflict(self, key: Key, claim: Claim, holders: list[Key]) -> Problem | None:
        """One public ID on several nodes is no conflict: identical models rotate, others get a suffix."""
        name = claim.what[1]
        others = [holder for holder in holders if not (key.kind == holder.kind == "RouterNode")]
        if others:
            return _taken(claim, others[0])
        if name in self.suffixed:
            return Problem(
                Reason.NAME_CONFLICT,
                f"the name {name} was given to a model with the public ID {self.suffixed[name]} that differs from the "
                f"first one of that ID, and such a name is never reused: choose another name",
                claim.path,
            )
        return None

    def _loops(self, resource: Resource) -> tuple[Problem, ...]:
        if not isinstance(resource, FrontendModel) or resource.name not in self.may_loop:
            return ()
        loop = self._way_back(resource)
        if not loop:
            return ()
        index = next(i for i, rule in enumerate(resource.spec.rules) if rule.jump_to == loop[1])
        message = f"jumps lead back to where they began: {_shown(loop)}; change one of them"
        return (Problem(Reason.JUMP_LOOP, message, ("spec", "rules", index, "jumpTo")),)

    def _way_back(self, start: FrontendModel) -> list[str]:
        """Names from `start` along jumps back to it by the shortest way; empty = there is none."""
        came_from: dict[str, str] = {}
        reached = [start.name]
        for name in reached:  # grows as it is walked: breadth first, without recursion
            frontend = start if name == start.name else self.objects.get(Key("FrontendModel", name))
            for jump in jumps(frontend):
                if jump == start.name:
                    return _path(came_from, name, start.name)
                if jump in self.may_loop and jump not in came_from:
                    came_from[jump] = name
                    reached.append(jump)
        return []


def jumps(frontend: Resource | None) -> list[str]:
    """Destinations of the rules that jump."""
    if not isinstance(frontend, FrontendModel):
        return []
    return [rule.jump_to for rule in frontend.spec.rules if rule.jump_to is not None]


def may_loop(options: Iterable[Resource]) -> frozenset[str]:
    """Names of frontend models that stand between two loops or in one, were every option admitted; one pass over the jumps.

    What no jump leads to is taken away until nothing more goes, then the same the other way round.
    """
    edges = {(o.name, jump) for o in options if isinstance(o, FrontendModel) for jump in jumps(o)}
    forwards = _without_ends(edges)
    backwards = _without_ends({(to, frm) for frm, to in forwards})
    return frozenset(name for edge in backwards for name in edge)


def _without_ends(edges: Collection[tuple[str, str]]) -> set[tuple[str, str]]:
    """The edges that are left when those from names that no edge leads to are taken away, again and again."""
    leading_to = Counter(to for _, to in edges)
    out: dict[str, list[str]] = {}
    for frm, to in edges:
        out.setdefault(frm, []).append(to)
    ends = [name for name in out if not leading_to[name]]
    for name in ends:  # grows as it is walked
        for to in out.pop(name):
            leading_to[to] -= 1
            if not leading_to[to] and to in out:
                ends.append(to)
    return {(frm, to) for frm, destinations in out.items() for to in destinations}


def suffixed_names(ledger: identity.Ledger) -> dict[str, str]:
    """Names with a suffix that the ledger gave out, each with the public ID that it came from."""
    names: dict[str, str] = {}
    for public_id, hashes in ledger.items():
        names |= {name: public_id for name in identity.all_names({public_id: hashes}) if name != public_id}
    return names


def claims(resource: Resource) -> Iterator[Claim]:
    """What the object wants for itself."""
    match resource:
        case RouterNode():
            if resource.spec.role is not Role.SLAVE:
                yield Claim(("master",), ("spec", "role"))
            for index, model in enumerate(resource.spec.models):
                leaf = "publicID" if model.public_id else "id"
                yield Claim(("name", model.public_id or model.id), ("spec", "models", index, leaf))
        case FrontendModel():
            path = ("spec", "modelName") if resource.spec.model_name else ("metadata", "name")
            yield Claim(("name", resource.model_name), path)
        case SplitRecipe():
            yield Claim(("name", resource.spec.public_id), ("spec", "publicID"))
        case RoutingLink(spec=spec):
            owner, helper = spec.owner, spec.helper
            yield Claim(("link", spec.lane, owner.node, owner.model, helper.node, helper.model), ("spec",))
        case Guardian(spec=spec):
            scope = spec.scope
            ends = (scope.model.node, scope.model.model) if scope.model else (scope.node or "", "")
            yield Claim(("guardian", *ends), ("spec", "scope"))
        case _:
            return


def _taken(claim: Claim, holder: Key) -> Problem:
    match claim.what[0]:
        case "master":
            return Problem(
                Reason.MASTER_EXISTS,
                f"{holder} is {_MASTER}: make this one a Slave with masterRef {holder.name}, or use another namespace",
                claim.path,
            )
        case "name":
            return Problem(
                Reason.NAME_CONFLICT,
                f"the name {claim.what[1]} belongs to {holder}: models, frontend models and recipes share one namespace "
                f"of names, so choose another one",
                claim.path,
            )
        case "link":
            return Problem(
                Reason.DUPLICATE_LINK,
                f"{holder} has this lane, owner and helper already: delete one of the two",
                claim.path,
            )
        case _:
            return Problem(
                Reason.DUPLICATE_GUARDIAN, f"{holder} has this scope already: delete one of the two", claim.path
            )


def _shown(loop: list[str]) -> str:
    """`A>B>A`; of a long one both ends, since a status has room for 4096 characters."""
    if len(loop) > _SHOWN:
        half = _SHOWN // 2
        loop = [*loop[:half], f"({len(loop) - 2 * half} more)", *loop[-half:]]
    return ">".join(loop)


def _path(came_from: Mapping[str, str], last: str, start: str) -> list[str]:
    way, at = [start], last
    while at != start:
        way.append(at)
        at = came_from[at]
    return [start, *reversed(way[1:]), start]
