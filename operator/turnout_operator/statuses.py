"""What is said about each object: its status, and an Event when the judgement turned. Pure."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from turnout_api.resolve import Key, Verdict
from turnout_api.resources import API_VERSION
from turnout_operator import conditions, linkstatus, nodestatus, servingstatus
from turnout_operator.conditions import PROGRAMMED, Fact, Unchanged, Why
from turnout_operator.damping import is_declared
from turnout_operator.events import events
from turnout_operator.former import applied_types, readable, unreadable
from turnout_operator.picture import Picture, some
from turnout_operator.prices import Prices
from turnout_operator.silence import silence_of

Manifest = Mapping[str, Any]
"""An object as the API server gives it, with its `kind`."""


@dataclass(frozen=True, slots=True)
class StatusWrite:
    """A status to apply, and the Events to create beside it."""

    key: Key
    body: Mapping[str, Any]
    events: tuple[Mapping[str, Any], ...] = ()
    declared: bool = True
    """It follows from what somebody declared, not only from what routers and pods do."""
    before: Mapping[str, Any] = field(default_factory=dict)
    """A merge patch of the status that is there, without which nothing can be applied; mostly empty. See `former`."""
    own: Collection[str] = conditions.OWN
    """Types of conditions that are the operator's."""


def statuses(
    manifests: Sequence[Manifest], picture: Picture, now: datetime, resting: AbstractSet[Key] = frozenset()
) -> Iterator[StatusWrite]:
    """Of every object whose status says something else. `manifests` in the order of the verdicts.

    Of those that are `resting` only what somebody declared is said.
    """
    prices = Prices(picture.resolution.configs, picture.resolution.master)
    silence = silence_of(picture, manifests, now)
    for manifest, verdict in zip(manifests, picture.resolution.verdicts, strict=True):
        own = conditions.OWN | applied_types(manifest)
        wrong, current = _before(manifest)
        facts = _facts(verdict, picture)
        if silence is not None and verdict.kind != "RouterNode":
            facts = silence.fill(facts, current)
        status = conditions.new_status(
            current,
            tuple(facts),
            generation=verdict.generation,
            now=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            fields=_fields(verdict, picture, prices, current),
            there=manifest.get("status"),
            own=own,
        )
        declared = status is not None and is_declared(current, status)
        if status is not None and (declared or verdict.key not in resting):
            about = _about(manifest)
            said = tuple(events(about, current, status, now))
            yield StatusWrite(verdict.key, about | {"status": status}, said, declared, wrong, own)


def of_dying(manifests: Iterable[Manifest], now: datetime) -> Iterator[StatusWrite]:
    """Of objects that are deleted, and still there since somebody else has a finalizer on them."""
    for manifest in manifests:
        held = some(map(str, manifest["metadata"].get("finalizers") or []))
        why = f"it is deleted, and routers are given nothing of it; it is held by {held}"
        own = conditions.OWN | applied_types(manifest)
        wrong, current = _before(manifest)
        status = conditions.new_status(
            current,
            (conditions.ready(Why.BEING_DELETED, why),),
            generation=manifest["metadata"]["generation"],
            now=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            fields={},
            there=manifest.get("status"),
            own=own,
        )
        if status is not None:
            key = Key(manifest["kind"], manifest["metadata"]["name"])
            yield StatusWrite(key, _about(manifest) | {"status": status}, before=wrong, own=own)


def of_unremembered(manifests: Iterable[Manifest], trouble: str, now: datetime) -> Iterator[StatusWrite]:
    """Of RouterNodes, and of what was changed since it was judged: `trouble` keeps it from being judged. All else they say stays."""
    fact = conditions.not_remembered(trouble)
    for manifest in manifests:
        (wrong, current), metadata = _before(manifest), manifest["metadata"]
        observed = int(current.get("observedGeneration", 0))
        if manifest["kind"] != "RouterNode" and observed == metadata["generation"]:
            continue
        others = [c["type"] for c in current.get("conditions") or [] if c["type"] in conditions.OWN - {fact.type}]
        status = conditions.new_status(
            current,
            (fact, *map(Unchanged, others)),
            generation=observed,
            now=now.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            fields={name: current[name] for name in current if name not in {"conditions", "observedGeneration"}},
        )
        if status is not None:
            about = _about(manifest)
            said = tuple(events(about, current, status, now))
            yield StatusWrite(Key(manifest["kind"], metadata["name"]), about | {"status": status}, said, before=wrong)


def _before(manifest: Manifest) -> tuple[dict[str, Any], Mapping[str, Any]]:
    """What has to go out of its status before anything is applied, and what can be gone on with."""
    there = manifest.get("status")
    wrong = unreadable(manifest["kind"], there)
    return wrong, readable(there, wrong)


def _facts(verdict: Verdict, picture: Picture) -> Iterable[Fact | Unchanged]:
    yield conditions.accepted(verdict)
    served = verdict.key in picture.resolution.served
    if verdict.kind == "RouteTest" and verdict.key in picture.resolution.tests:
        yield from servingstatus.facts(verdict, picture)
    elif not served:
        yield conditions.not_served(verdict)
    elif not picture.resolution.master:
        yield conditions.ready(
            Why.NO_MASTER, "no Master or Standalone is accepted in this namespace: nothing serves it"
        )
    elif verdict.kind == "RouteTest":
        yield conditions.ready(Why.NOT_SERVED)
    elif verdict.kind == "RouterNode":
        yield from nodestatus.facts(verdict, picture)
    else:
        yield _programmed(verdict, picture)
        facts = linkstatus.facts if verdict.kind == "RoutingLink" else servingstatus.facts
        yield from facts(verdict, picture)


def _programmed(verdict: Verdict, picture: Picture) -> Fact | Unchanged:
    """Of what is no node: whether the master, which runs the whole, has run a configuration with this generation of it.

    While a newer configuration of others is on its way, that does not change.
    """
    master = picture.resolution.master
    facts, runs = picture.nodes.get(master), picture.master_runs
    if facts is None:
        return conditions.programmed(Why.TOO_LARGE, f"the configuration of {master} is: see its condition Programmed")
    if not verdict.accepted:
        return Unchanged(PROGRAMMED)
    if runs is not None and runs >= picture.issued[master].generation:
        return conditions.programmed(Why.PROGRAMMED)
    failed = [f"{url}: {reached.trouble}" for url, reached in facts.reached.items() if reached and reached.trouble]
    return conditions.programmed(Why.NOT_TOLD, some(failed)) if failed else Unchanged(PROGRAMMED)


def _fields(verdict: Verdict, picture: Picture, prices: Prices, current: Mapping[str, Any]) -> dict[str, object]:
    last = picture.resolution.last_accepted.get(verdict.key)
    fields: dict[str, object] = {"acceptedGeneration": last.metadata.generation if last else 0}
    match verdict.kind:
        case "RouterNode":
            return fields | nodestatus.fields(verdict, picture, current)
        case "RoutingLink":
            return fields | linkstatus.fields(verdict, picture)
        case _:
            return fields | servingstatus.fields(verdict, picture, prices)


def _about(manifest: Manifest) -> dict[str, Any]:
    """With the uid: an object that was replaced meanwhile refuses its status."""
    metadata = {name: manifest["metadata"][name] for name in ("name", "namespace", "uid")}
    return {"apiVersion": API_VERSION, "kind": manifest["kind"], "metadata": metadata}
