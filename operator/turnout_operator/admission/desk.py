"""What a namespace holds at this moment: what the last round read, and what was admitted since.

A round comes a moment after a change, and `kubectl apply` writes its next object sooner. So an object that was admitted
counts from then on, and of two writes that exclude each other, the second one is told. But an admitted write may still
fail: what no later reading confirms is forgotten again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from turnout_api.resolve import Declared, Key, Standing, Verdict
from turnout_operator.known import Known
from turnout_operator.placement import InCluster

FORGOTTEN_AFTER = timedelta(seconds=15)
"""A round comes sooner after whatever was written."""
LANDS_WITHIN = timedelta(seconds=2)
"""Between being admitted and being read. A reading that began later is right about the object."""


@dataclass(frozen=True, slots=True)
class _Admitted:
    at: datetime
    declared: Declared | None
    """None = it was deleted."""
    verdict: Verdict | None


class Desk:
    """Of one namespace. Mutable: only the validator writes it."""

    def __init__(self, known: Known) -> None:
        self.known = known
        self._admitted: dict[Key, _Admitted] = {}
        self._standing = _standing(known)

    def standing(self, now: datetime) -> Standing:
        """To judge by."""
        if any(now - admitted.at > FORGOTTEN_AFTER for admitted in self._admitted.values()):
            self._rebuild(now - FORGOTTEN_AFTER)
        return self._standing

    def read(self, known: Known) -> None:
        """A round, or a look, found the namespace so."""
        self.known = known
        self._rebuild(known.read_at - LANDS_WITHIN)

    def put(self, declared: Declared, verdict: Verdict, now: datetime) -> None:
        """The object was admitted so."""
        self._admit(declared.key, _Admitted(now, declared, verdict))

    def remove(self, key: Key, now: datetime) -> None:
        """The object's deletion was admitted."""
        self._admit(key, _Admitted(now, None, None))

    def _admit(self, key: Key, admitted: _Admitted) -> None:
        self._admitted.pop(key, None)  # the newest is the last
        self._admitted[key] = admitted
        self._carry_out(key, admitted)

    def _rebuild(self, younger_than: datetime) -> None:
        self._admitted = {key: admitted for key, admitted in self._admitted.items() if admitted.at > younger_than}
        self._standing = _standing(self.known)
        for key, admitted in self._admitted.items():
            self._carry_out(key, admitted)

    def _carry_out(self, key: Key, admitted: _Admitted) -> None:
        if admitted.declared is None or admitted.verdict is None:
            self._standing.remove(key)
        elif self._standing.declared(key) != admitted.declared:
            self._standing.put(admitted.declared, admitted.verdict)


def _standing(known: Known) -> Standing:
    objects: Sequence[Declared] = known.declared
    resolution = known.resolution
    return Standing(
        objects,
        resolution.verdicts,
        placement=InCluster(),
        last_accepted=resolution.last_accepted,
        ledger=resolution.ledger,
    )
