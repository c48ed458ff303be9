"""What a round found out about its namespace, for admission to judge by."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from turnout_api.resolve import Declared, Resolution
from turnout_operator.injection import Nodes

_NEVER = datetime.min.replace(tzinfo=UTC)


def _nothing() -> Resolution:
    return Resolution(configs={}, verdicts=(), last_accepted={}, ledger={})


@dataclass(frozen=True, slots=True)
class Known:
    """The objects of a namespace as they were judged."""

    nodes: Nodes = field(default_factory=Nodes)
    """What pods may be labelled with."""
    declared: Sequence[Declared] = ()
    """In the order of creation."""
    resolution: Resolution = field(default_factory=_nothing)
    read_at: datetime = _NEVER
    """When their reading began: what was written before is in it."""
