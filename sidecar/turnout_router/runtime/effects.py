"""What the core asks its shell to do, and the tickets that it answers.

Every ticket is answered exactly once (`Grant`, `Refuse`, `Loaded` or `Unloaded`), unless it is cancelled first.
"""

from dataclasses import dataclass

from turnout_router.runtime.interface import RuntimeRefusal


@dataclass(slots=True, eq=False)
class Ticket:
    """Somebody who waits for a model. `eq=False`: a ticket is itself and nothing else, and a key in dictionaries."""

    seq: int
    """Order of arrival on the node."""
    model: str
    request_id: str
    since: float
    granted_at: float | None = None


@dataclass(frozen=True, slots=True)
class LoadReport:
    """One load that ended, on the core's clock."""

    model: str
    started: float
    seconds: float
    displaced: tuple[str, ...]
    """Local IDs of the models that had to go for it."""
    error: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """The claim has its slot."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class Refuse:
    """The ticket cannot be served."""

    ticket: Ticket
    error: RuntimeRefusal


@dataclass(frozen=True, slots=True)
class Loaded:
    """Answer to a request to load: the model is loaded. A report of 0 seconds means that it already was."""

    ticket: Ticket
    report: LoadReport


@dataclass(frozen=True, slots=True)
class Unloaded:
    """Answer to a request to unload: the model is gone."""

    ticket: Ticket


@dataclass(frozen=True, slots=True)
class StartLoad:
    """Unload `displaced` one after the other, then load `unit`.

    Report `on_unloaded` for each that is gone, then `on_loaded` or `on_load_failed`.
    """

    unit: str
    displaced: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class StartUnload:
    """Unload one unit, then report `on_unloaded`."""

    unit: str


@dataclass(frozen=True, slots=True)
class Record:
    """A load that was measured, or that failed."""

    report: LoadReport


@dataclass(frozen=True, slots=True)
class Forget:
    """Nothing refers to this unit any more."""

    unit: str
    backend: str


Effect = Grant | Refuse | Loaded | Unloaded | StartLoad | StartUnload | Record | Forget
