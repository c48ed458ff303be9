"""`resolve`: the objects of a namespace → what each router runs, and what is to be said about each object.

An object is judged in three steps: by what it knows about itself (`own`), by what it cannot have beside others (`admit`),
and by what it needs of others (`dependent`). A declared spec that fails any of them gives way to the one that was accepted
last, if that still holds; then everything is judged again, since that one may have other names. Those give way together
that cannot be one another's reason: first an edit that took the master away, then those of other nodes, then those of
objects that name nodes. Each round takes at least one declared spec away, and a few rounds are usual.

An object that needs what is not there is not served but keeps its names: while a master is away, nobody takes the names
of its slaves' models.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from turnout_api import identity
from turnout_api.config import RouterConfig
from turnout_api.resolve import frontends, guardians, links, nodes, routetests
from turnout_api.resolve.admit import Admission, Entry, admit
from turnout_api.resolve.configure import configure
from turnout_api.resolve.interface import Declared, Key, Placement, Problem, Resolution, TestOutcome, Verdict
from turnout_api.resolve.reasons import Reason
from turnout_api.resolve.world import World, grown_ledger, world_of
from turnout_api.resources import (
    FrontendModel,
    Guardian,
    ModelPool,
    Resource,
    RouterNode,
    RouteTest,
    RoutingLink,
    SplitRecipe,
)
from turnout_api.routing import Routing, offline
from turnout_api.vocabulary import Role

_Problems = tuple[Problem, ...]


def resolve(
    objects: Sequence[Declared],
    *,
    placement: Placement,
    generation: int,
    last_accepted: Mapping[Key, Resource] | None = None,
    ledger: identity.Ledger | None = None,
) -> Resolution:
    """Resolve the objects of one namespace, given in the order of their creation.

    `last_accepted` and `ledger` are those of the Resolution before. `generation` goes into each configuration and only
    grows; whether a configuration differs from the one before is for the caller to compare. Raises ValueError for
    objects of several namespaces (see `by_namespace`).
    """
    if len({declared.namespace for declared in objects}) > 1:
        raise ValueError("resolve takes the objects of one namespace: split them with by_namespace")
    unique, passed_over = _unique(objects)
    judged = _Judge(unique, placement, last_accepted or {}, ledger or {}).judge()
    configs: dict[str, RouterConfig] = configure(
        judged.served, placement=placement, ledger=judged.world.ledger, generation=generation
    )
    master = judged.world.master
    return Resolution(
        configs=configs,
        verdicts=tuple(passed_over.get(index) or judged.verdict(declared) for index, declared in enumerate(objects)),
        last_accepted=judged.last_accepted,
        ledger=judged.world.ledger,
        master=master.name if master else "",
        served=judged.served,
        tests=judged.tests,
    )


def verdicts(
    objects: Sequence[Declared],
    about: Collection[Key],
    *,
    placement: Placement,
    last_accepted: Mapping[Key, Resource],
    ledger: identity.Ledger,
) -> dict[Key, Verdict]:
    """What `resolve` says of these objects, without making configurations. Each key is given once, and has a name."""
    judged = _Judge(objects, placement, last_accepted, ledger).judge()
    return {declared.key: judged.verdict(declared) for declared in objects if declared.key in about}


def by_namespace(objects: Sequence[Declared]) -> dict[str, list[Declared]]:
    """The objects of each namespace, in the order given."""
    spaces: dict[str, list[Declared]] = {}
    for declared in objects:
        spaces.setdefault(declared.namespace, []).append(declared)
    return spaces


@dataclass(frozen=True, slots=True)
class _Judged:
    """Every decision made."""

    world: World
    served: Mapping[Key, Resource]
    problems: Mapping[Key, _Problems]
    last_accepted: Mapping[Key, Resource]
    tests: Mapping[Key, TestOutcome]

    def verdict(self, declared: Declared) -> Verdict:
        problems = self.problems.get(declared.key, ())
        return Verdict(
            kind=declared.kind,
            namespace=declared.namespace,
            name=declared.name,
            generation=declared.generation,
            problems=problems,
            warnings=self._warnings(declared, accepted=not problems),
            last_good=bool(problems) and declared.key in self.served,
        )

    def _warnings(self, declared: Declared, *, accepted: bool) -> _Problems:
        if declared.resource is None:
            return ()
        found = _warnings(declared.resource, self.world, accepted=accepted)
        tested = routetests.warnings(self.tests.get(declared.key) if accepted else None)
        return (*found, *tested)


class _Judge:
    """One run over the objects; they are in the order of creation, each key once."""

    def __init__(
        self,
        objects: Sequence[Declared],
        placement: Placement,
        last_accepted: Mapping[Key, Resource],
        ledger: identity.Ledger,
    ) -> None:
        self._objects = objects
        self._placement = placement
        self._last = last_accepted
        self._ledger = ledger
        self._keys = frozenset(d.key for d in objects)
        self._declared_nodes = frozenset(d.name for d in objects if d.kind == "RouterNode")
        self._routings: dict[frozenset[tuple[Key, int]], Routing | None] = {}
        """By who is served: the tests of one judgement ask for the same one several times."""
        self._refused: dict[Key, _Problems] = {}
        """Declared specs that are out of the question, and why."""

    def judge(self) -> _Judged:
        for declared in self._objects:
            problems = declared.problems or tuple(_own_problems(declared.resource, self._placement))
            if problems:
                self._refused[declared.key] = problems
        while True:
            entries = self._entries()
            admission = admit(entries, self._ledger)
            lacking = self._lacking(admission)
            giving_way = self._giving_way(entries, admission, lacking)
            refused = {key: lacking[key] for key in giving_way} or self._breaking(entries, admission, lacking)
            if not refused:
                return self._judged(admission, lacking)
            self._refused |= refused

    def _entries(self) -> list[Entry]:
        return [
            Entry(
                key=declared.key,
                declared=None if declared.key in self._refused else declared.resource,
                last=self._last_good(declared.key),
            )
            for declared in self._objects
        ]

    def _last_good(self, key: Key) -> Resource | None:
        """What was accepted last, unless this version or place cannot serve it any more."""
        last = self._last.get(key)
        return None if last is None or any(_own_problems(last, self._placement)) else last

    @staticmethod
    def _giving_way(entries: list[Entry], admission: Admission, lacking: Mapping[Key, _Problems]) -> list[Key]:
        """Declared specs that lack something, have an older one behind them, and are no consequence of another's edit."""
        found = [
            entry
            for entry in entries
            if entry.key in lacking and admission.admitted[entry.key] is entry.declared and len(entry.options) > 1
        ]
        masters = [e.key for e in found if isinstance(e.last, RouterNode) and e.last.spec.role is not Role.SLAVE]
        nodes = [e.key for e in found if isinstance(e.last, RouterNode)]
        return masters or nodes or [e.key for e in found]

    def _lacking(self, admission: Admission) -> dict[Key, _Problems]:
        """Admitted objects that need something of others which is not there."""
        world = self._world(admission.admitted)
        lacking = _each(_node_problems, admission.admitted, world)
        served = {key: resource for key, resource in admission.admitted.items() if key not in lacking}
        lacking |= _each(_dependent_problems, served, self._world(served))
        served = {key: resource for key, resource in served.items() if key not in lacking}
        return lacking | routetests.failing(served, self._routing)

    def _breaking(
        self, entries: list[Entry], admission: Admission, lacking: Mapping[Key, _Problems]
    ) -> dict[Key, _Problems]:
        """Declared specs that make a required route test fail which passed on what was accepted last."""
        admitted = admission.admitted
        failing = [test for key in lacking if isinstance(test := admitted[key], RouteTest)]
        if not failing:
            return {}
        return routetests.breaking(
            failing,
            now={key: resource for key, resource in admitted.items() if key not in lacking},
            before=self._last,
            changed=[e.key for e in entries if e.is_changed and admitted.get(e.key) is e.declared],
            routing_of=self._routing,
        )

    def _routing(self, served: Mapping[Key, Resource]) -> Routing | None:
        """What routers that serve these objects would route by; None without a master."""
        # identities will do: resources live as long as this judge, and none of them changes
        who = frozenset((key, id(resource)) for key, resource in served.items() if key.kind != "RouteTest")
        if who not in self._routings:
            self._routings[who] = self._new_routing(served)
        return self._routings[who]

    def _new_routing(self, served: Mapping[Key, Resource]) -> Routing | None:
        known = [served[declared.key] for declared in self._objects if declared.key in served]
        gone = [served[key] for key in sorted(served) if key not in self._keys]  # of what was accepted before
        ledger = grown_ledger(self._ledger, [*known, *gone], before=self._last.values())
        configs = configure(served, placement=self._placement, ledger=ledger, generation=0)
        return offline(configs) if configs else None

    def _world(self, admitted: Mapping[Key, Resource], waiting: Sequence[Resource] = ()) -> World:
        in_order = [admitted[declared.key] for declared in self._objects if declared.key in admitted]
        return world_of(
            admitted,
            placement=self._placement,
            declared_nodes=self._declared_nodes,
            ledger=grown_ledger(self._ledger, in_order, waiting=waiting, before=self._last.values()),
        )

    def _judged(self, admission: Admission, lacking: Mapping[Key, _Problems]) -> _Judged:
        served = {key: resource for key, resource in admission.admitted.items() if key not in lacking}
        waiting = [admission.admitted[key] for key in lacking]
        problems = {**lacking, **admission.conflicts, **self._refused}
        kept = {d.key: self._last[d.key] for d in self._objects if d.key in self._last}
        accepted = {d.key: d.resource for d in self._objects if d.resource and d.key not in problems}
        world = self._world(served, waiting)
        return _Judged(
            world=world,
            served=served,
            problems=problems,
            last_accepted={**kept, **accepted},
            tests=routetests.outcomes(admission.admitted, served, self._routing),
        )


def _unique(objects: Sequence[Declared]) -> tuple[list[Declared], dict[int, Verdict]]:
    """The first object of each key, and by position the verdicts of those that repeat one or have no name."""
    first: dict[Key, Declared] = {}
    passed_over = {}
    for index, declared in enumerate(objects):
        if not declared.name:
            passed_over[index] = _refused(declared, declared.problems)
        elif first.setdefault(declared.key, declared) is not declared:
            message = f"{declared.key} is declared twice: this one is passed over, remove one of the two"
            problem = Problem(Reason.DUPLICATE_OBJECT, message, ("metadata", "name"))
            passed_over[index] = _refused(declared, (problem,))
    return list(first.values()), passed_over


def _refused(declared: Declared, problems: _Problems) -> Verdict:
    return Verdict(declared.kind, declared.namespace, declared.name, declared.generation, problems=problems)


def _each(
    judge: Callable[[Resource, World], Iterator[Problem]], resources: Mapping[Key, Resource], world: World
) -> dict[Key, _Problems]:
    found = {key: tuple(judge(resource, world)) for key, resource in resources.items()}
    return {key: problems for key, problems in found.items() if problems}


def _own_problems(resource: Resource | None, placement: Placement) -> Iterator[Problem]:
    match resource:
        case RouterNode():
            yield from nodes.own_problems(resource, placement)
        case FrontendModel():
            yield from frontends.own_problems(resource)
        case _:
            return


def _node_problems(resource: Resource, world: World) -> Iterator[Problem]:
    if isinstance(resource, RouterNode):
        yield from nodes.dependent_problems(resource, world)


def _dependent_problems(resource: Resource, world: World) -> Iterator[Problem]:
    match resource:
        case RoutingLink():
            yield from links.dependent_problems(resource, world)
        case Guardian():
            yield from guardians.guardian_problems(resource, world)
        case SplitRecipe():
            yield from guardians.recipe_problems(resource, world)
        case _:
            return


def _warnings(resource: Resource, world: World, *, accepted: bool) -> Iterator[Problem]:
    match resource:
        case RouterNode():
            yield from nodes.warnings(resource, world)
            return
        case RoutingLink():
            yield from links.warnings(resource, world)
        case Guardian():
            yield from guardians.guardian_warnings(resource, world)
        case FrontendModel():
            yield from frontends.warnings(resource, world)
        case ModelPool():
            yield from frontends.pool_warnings(resource, world)
        case SplitRecipe():
            yield from guardians.recipe_warnings(resource, world)
        case RouteTest():
            yield from frontends.test_warnings(resource, world)
        case _:
            pass
    if accepted and world.master is None:
        message = "the namespace has no accepted Master or Standalone, so nothing serves this yet"
        yield Problem(Reason.NO_MASTER, message)
    if accepted and (not_yet := _NOT_SERVED_YET.get(type(resource))):
        yield Problem(Reason.NOT_SERVED_YET, not_yet)


_ROUTING = "this version judges it but does not route by it"
_NOT_SERVED_YET: dict[type[Resource], str] = {
    Guardian: _ROUTING,
    SplitRecipe: _ROUTING,
}
"""What the router of this version does not do with an accepted object."""
