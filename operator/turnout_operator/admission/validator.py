"""Judges writes of Turnout's objects, as the next round would.

Refused is what a person has to change in the object itself. What heals when another object comes or goes passes with a
warning, and so does what was the matter with the object before. A deletion is never refused: it is told what hangs on it.
Invariants: nothing but a new spec is judged, so that labels, finalizers and statuses can always be written; a namespace
that ends is not asked about each of its objects.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator, Mapping, MutableMapping
from datetime import UTC, datetime, timedelta
from typing import Any

from turnout_api.resolve import WAITING, YIELDING, Key, Trial, declare
from turnout_api.resources import API_VERSION, GROUP, KINDS
from turnout_operator.admission import review
from turnout_operator.admission.desk import Desk
from turnout_operator.known import Known

FRESH = timedelta(seconds=2)
"""An operator that has no rounds of its own, since another one leads, looks anew when it knows nothing newer than this."""
_GOOD_FOR = timedelta(minutes=2)
"""How long what a round read is the truth about objects that nobody was heard to change."""
_CLEANERS = "system:serviceaccount:kube-system:"
"""Users of the control plane that delete: a namespace with all that is in it, and what its owner left behind."""
_CLEARS = WAITING | YIELDING


def _utc_now() -> datetime:
    return datetime.now(UTC)


class Validator:
    """The answers."""

    def __init__(
        self,
        namespaces: Collection[str],
        judged: MutableMapping[str, Known],
        look: Callable[[str], Awaitable[Known]],
        *,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        """No namespaces = all of them. `judged`: what the last round of each found out; it is written there while this reads."""
        self._namespaces = frozenset(namespaces)
        self._judged = judged
        self._look = look
        self._now = now
        self._desks: dict[str, Desk] = {}
        self._looking = asyncio.Lock()

    async def answer(self, document: object) -> dict[str, Any]:
        """To one AdmissionReview. Raises NoReview, and ApiError and StateError when the namespace cannot be read."""
        request = review.request_of(document, "object", "oldObject")
        namespace = str(request.get("namespace", ""))
        if not _is_to_be_judged(request):
            return review.passed(request)
        if self._namespaces and namespace not in self._namespaces:
            return review.passed(request, f"turnout does not watch namespace {namespace}: nothing serves this object")
        desk = await self._desk(namespace)
        # from here on nothing is awaited: of two writes at once, the second one sees the first
        if request.get("operation") == "DELETE":
            return self._deleted(request, desk)
        return self._written(request, desk)

    def _written(self, request: Mapping[str, Any], desk: Desk) -> dict[str, Any]:
        now = self._now()
        standing = desk.standing(now)
        declared = declare(_bare(request["object"]))
        trial = standing.try_put(declared)
        refusing = [problem for problem in trial.problems if problem.reason not in _CLEARS]
        warnings = list(_warnings(trial))
        if refusing:
            return review.refused(request, refusing, warnings)
        # a creation of what is there already fails, and changes nothing
        lands = not request.get("dryRun") and (request.get("operation") != "CREATE" or declared.key not in standing)
        if lands and trial.verdict is not None:
            desk.put(declared, trial.verdict, now)
        return review.passed(request, *warnings)

    def _deleted(self, request: Mapping[str, Any], desk: Desk) -> dict[str, Any]:
        now = self._now()
        key = Key(request["oldObject"]["kind"], request["oldObject"]["metadata"]["name"])
        trial = desk.standing(now).try_remove(key)
        if not request.get("dryRun"):
            desk.remove(key, now)
        return review.passed(request, *_of_others(trial))

    async def _desk(self, namespace: str) -> Desk:
        """With the newest reading."""
        known = self._judged.get(namespace)
        if known is None or self._now() - known.read_at > _GOOD_FOR:
            async with self._looking:  # many ask at once
                looked = self._desks.get(namespace)
                is_fresh = looked is not None and self._now() - looked.known.read_at <= FRESH
                known = looked.known if looked is not None and is_fresh else await self._look(namespace)
        desk = self._desks.get(namespace)
        if desk is None:
            desk = self._desks[namespace] = Desk(known)
        elif known.read_at > desk.known.read_at:
            desk.read(known)
        return desk


def _is_to_be_judged(request: Mapping[str, Any]) -> bool:
    """Whether it is about a spec of Turnout's that changes, or a deletion that somebody asked for."""
    now, before = request.get("object"), request.get("oldObject")
    about = now or before or {}
    if str(about.get("apiVersion", "")).partition("/")[0] != GROUP or about.get("kind") not in KINDS:
        return False
    if request.get("operation") == "DELETE":
        user = request.get("userInfo") or {}
        return before is not None and not str(user.get("username", "")).startswith(_CLEANERS)
    if not isinstance(now, dict) or now["metadata"].get("deletionTimestamp"):
        return False
    return not isinstance(before, dict) or before.get("spec") != now.get("spec")


def _bare(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """As rounds judge it: metadata is the API server's."""
    kept = ("name", "namespace", "generation", "uid")
    metadata = {name: manifest["metadata"][name] for name in kept if name in manifest["metadata"]}
    return {"apiVersion": API_VERSION, "kind": manifest["kind"], "metadata": metadata, "spec": manifest.get("spec")}


def _warnings(trial: Trial) -> Iterator[str]:
    for problem in trial.problems:
        if problem.reason in WAITING:
            yield f"{review.said(problem)} ({problem.reason}): nothing serves this object until that is there"
        elif problem.reason in YIELDING:
            yield f"{review.said(problem)} ({problem.reason}): not accepted until that is gone"
    for problem in trial.known:
        yield f"{review.said(problem)} ({problem.reason}): it was not accepted for this before, and is not now"
    yield from (f"{review.said(warning)} ({warning.reason})" for warning in trial.warnings)
    yield from _of_others(trial)


def _of_others(trial: Trial) -> Iterator[str]:
    """What it does to others."""
    yield from (f"{key}: {review.said(problem)} ({problem.reason})" for key, problem in trial.others)
