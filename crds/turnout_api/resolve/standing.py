"""What one more write would be told, in a namespace that was judged a moment ago.

Problem: admission asks at each write, and resolving thousands of objects takes most of a second. Idea: `resolve`'s own
judgement over fewer objects: those that say something of the one that is written, and all that these refer to, through
every jump. The rest cannot change what is said of them; a test compares the two over made-up namespaces.

Always among them are nodes and recipes, which bring the names that everything refers to. What was admitted since the last
round counts as accepted, so that of two writes that exclude each other the second one is told.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from turnout_api import identity
from turnout_api.resolve.board import claims
from turnout_api.resolve.core import verdicts
from turnout_api.resolve.interface import Declared, Key, Placement, Problem, Verdict
from turnout_api.resolve.reasons import Reason
from turnout_api.resolve.references import Name, brought, mentioned
from turnout_api.resources import Resource, RouteTest

_EVERYWHERE = frozenset({"RouterNode", "SplitRecipe"})
"""Kinds whose objects are always judged too."""
_ON_THE_WAY = frozenset({"RouterNode", "SplitRecipe", "Guardian"})
"""Kinds on which what becomes of every request hangs."""
_DANGLING = frozenset(
    {Reason.UNKNOWN_NODE, Reason.UNKNOWN_MODEL, Reason.UNKNOWN_POOL, Reason.UNKNOWN_FRONTEND, Reason.UNKNOWN_RULE}
)
"""Warnings that another object gets by what is taken away."""
_RULES = frozenset({"FrontendModel", "ModelPool"})
_HINTED = {"frontend": ("FrontendModel",), "pool": ("ModelPool",), "called": ("FrontendModel",)}
"""Whose names a message gives as the nearest ones to a name that is not there."""


_Fact = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Trial:
    """What a write would bring. Only what it adds: what was said before is not here."""

    problems: tuple[Problem, ...] = ()
    """Why the object would not be accepted."""
    known: tuple[Problem, ...] = ()
    """The same, where it was not accepted for these already."""
    warnings: tuple[Problem, ...] = ()
    others: tuple[tuple[Key, Problem], ...] = ()
    """What other objects would be told: why they are accepted no more, or which name is gone."""
    verdict: Verdict | None = None
    """None = the object is to be deleted."""


@dataclass(frozen=True, slots=True)
class _Facts:
    """Of one object, over its specs: as it is declared, and as it was accepted last."""

    brings: frozenset[Name]
    mentions: frozenset[Name]
    claims: frozenset[tuple[str, ...]]

    def all(self) -> frozenset[_Fact]:
        """To be found by."""
        by_name = {
            (how, name) for how, names in (("brings", self.brings), ("mentions", self.mentions)) for name in names
        }
        return frozenset(by_name | {("claims", claim) for claim in self.claims})


class _Changed(NamedTuple):
    """The object of a trial, and its facts in it."""

    key: Key
    facts: _Facts | None
    """None = it is gone."""


class Standing:
    """The objects of a namespace and what was said of each. Mutable: one task owns it."""

    def __init__(
        self,
        objects: Iterable[Declared],
        said: Iterable[Verdict],
        *,
        placement: Placement,
        last_accepted: Mapping[Key, Resource],
        ledger: identity.Ledger,
    ) -> None:
        """`objects` in the order of creation, with what `resolve` said of them and gave to be kept."""
        self._placement = placement
        self._last = dict(last_accepted)
        self._ledger = ledger
        self._objects: dict[Key, Declared] = {}
        self._facts: dict[Key, _Facts] = {}
        self._said: dict[Key, Verdict] = {}
        self._having: dict[_Fact, dict[Key, None]] = {}
        """Who brings, mentions or claims something."""
        for declared, verdict in zip(objects, said, strict=True):
            if declared.name:
                self._put(declared, verdict)

    def __contains__(self, key: Key) -> bool:
        return key in self._objects

    def declared(self, key: Key) -> Declared | None:
        """As it is now."""
        return self._objects.get(key)

    def said(self, key: Key) -> Verdict | None:
        """What was said of it."""
        return self._said.get(key)

    def try_put(self, declared: Declared) -> Trial:
        """What would be said if the object were so."""
        key, facts = declared.key, self._facts_of(declared)
        stays = frozenset(brought(declared.resource)) if declared.resource else facts.brings
        lost = (self._brings(key) - stays) | {name for name in stays if name.what == "node"}
        about = {key, *self._mentioning(key, lost), *self._required_tests(key, facts.brings | self._brings(key))}
        found = self._judged(about, {**self._objects, key: declared}, _Changed(key, facts))
        verdict, before = found.pop(key), self._said.get(key)
        problems = tuple(p for p in verdict.problems if before is None or p not in before.problems)
        return Trial(
            problems=problems,
            known=tuple(p for p in verdict.problems if p not in problems),
            warnings=tuple(w for w in verdict.warnings if before is None or w not in before.warnings),
            others=tuple(self._turned(found)),
            verdict=verdict,
        )

    def try_remove(self, key: Key) -> Trial:
        """What others would be told if the object went."""
        if key not in self._objects:
            return Trial()
        brings = self._brings(key)
        about = self._mentioning(key, brings) | self._required_tests(key, brings)
        left = {other: declared for other, declared in self._objects.items() if other != key}
        return Trial(others=tuple(self._turned(self._judged(about, left, _Changed(key, None)))))

    def put(self, declared: Declared, verdict: Verdict) -> None:
        """The object is so, and this is said of it."""
        self._forget(declared.key)
        self._put(declared, verdict)

    def remove(self, key: Key) -> None:
        """The object is gone."""
        self._forget(key)
        self._objects.pop(key, None)
        self._said.pop(key, None)
        self._last.pop(key, None)

    def _put(self, declared: Declared, verdict: Verdict) -> None:
        key = declared.key
        if verdict.accepted and declared.resource is not None:
            self._last[key] = declared.resource
        self._objects[key] = declared
        self._said[key] = verdict
        self._facts[key] = facts = self._facts_of(declared)
        for fact in facts.all():
            self._having.setdefault(fact, {})[key] = None

    def _forget(self, key: Key) -> None:
        facts = self._facts.pop(key, None)
        for fact in facts.all() if facts else ():
            del self._having[fact][key]

    def _facts_of(self, declared: Declared) -> _Facts:
        specs = [spec for spec in (declared.resource, self._last.get(declared.key)) if spec is not None]
        return _Facts(
            brings=frozenset(name for spec in specs for name in brought(spec)),
            mentions=frozenset(name for spec in specs for name in mentioned(spec)),
            claims=frozenset(claim.what for spec in specs for claim in claims(spec)),
        )

    def _brings(self, key: Key) -> frozenset[Name]:
        return self._facts[key].brings if key in self._facts else frozenset()

    def _mentioning(self, key: Key, names: Collection[Name]) -> set[Key]:
        """Who mentions one of them, or a suffixed name that came from it."""
        suffixed = {
            Name("called", other)
            for name in names
            if name.what == "called" and name.name in self._ledger
            for other in identity.all_names({name.name: self._ledger[name.name]})
        }
        found = {other for name in {*names, *suffixed} for other in self._having.get(("mentions", name), ())}
        return found - {key}

    def _required_tests(self, key: Key, brings: Collection[Name]) -> set[Key]:
        """Those whose request may come by the object, or all of them where every request may."""
        if key.kind in _ON_THE_WAY:
            return {other for other in self._objects if self._is_required(other)}
        seen, names = {key}, list(brings)
        for name in names:  # grows as it is walked: against the direction of jumps
            found = self._having.get(("mentions", name), {}).keys() - seen
            seen |= found
            names += (n for other in found if other.kind in _RULES for n in self._facts[other].brings)
        return {other for other in seen - {key} if self._is_required(other)}

    def _is_required(self, key: Key) -> bool:
        test = self._objects[key].resource
        return isinstance(test, RouteTest) and test.spec.required

    def _judged(self, about: Collection[Key], objects: Mapping[Key, Declared], changed: _Changed) -> dict[Key, Verdict]:
        if not about:
            return {}
        near = self._near(about, objects, changed)
        chosen = (self._as_it_counts(declared, about) for key, declared in objects.items() if key in near)
        return verdicts(
            [declared for declared in chosen if declared is not None],
            about,
            placement=self._placement,
            last_accepted={key: last for key, last in self._last.items() if key in near},
            ledger=self._ledger,
        )

    def _as_it_counts(self, declared: Declared, about: Collection[Key]) -> Declared | None:
        """What breaks a route test that may not be among those that are judged now is still refused for it."""
        said = self._said.get(declared.key)
        if declared.key in about or said is None or said.reason is not Reason.BREAKS_ROUTE_TEST:
            return declared
        last = self._last.get(declared.key)
        return None if last is None else Declared(declared.kind, declared.namespace, declared.name, last)

    def _near(self, about: Collection[Key], objects: Mapping[Key, Declared], changed: _Changed) -> set[Key]:
        """These, all that they refer to through any number of others, and who claims what any of them claims."""
        near = {key for key in objects if key.kind in _EVERYWHERE or key in about}
        waiting = [*near]
        for key in waiting:  # grows as it is walked
            facts = changed.facts if key == changed.key and changed.facts else self._facts[key]
            found: set[Key] = set()
            for name in facts.mentions:
                bringing = self._with("brings", name, changed)
                found |= bringing
                if key in about and not any(map(self._is_served, bringing)):
                    found |= {other for other in objects if other.kind in _HINTED.get(name.what, ())}
            for claim in facts.claims:
                found |= self._with("claims", claim, changed)
            waiting += found - near
            near |= found
        return near

    def _with(self, how: str, what: Name | tuple[str, ...], changed: _Changed) -> set[Key]:
        found = set(self._having.get((how, what), ())) - {changed.key}
        has = changed.facts is not None and (how, what) in changed.facts.all()
        return found | {changed.key} if has else found

    def _is_served(self, key: Key) -> bool:
        said = self._said.get(key)
        return said is not None and (said.accepted or said.last_good)

    def _turned(self, found: Mapping[Key, Verdict]) -> Iterator[tuple[Key, Problem]]:
        for key, verdict in found.items():
            before = self._said[key]
            if before.accepted:
                yield from ((key, problem) for problem in verdict.problems)
            gone = (w for w in verdict.warnings if w.reason in _DANGLING and w not in before.warnings)
            yield from ((key, warning) for warning in gone)
