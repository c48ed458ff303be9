"""Which links a person means by `--link`."""

from collections.abc import Sequence
from dataclasses import replace

from turnout_api.lending import ModelRef
from turnout_cli.reporting.log import ClusterLog, Pair


class NoSuchLink(Exception):
    """Nothing has that name; the message lists what there is."""


def chosen(log: ClusterLog, asked: Sequence[str]) -> frozenset[Pair] | None:
    """A link's name, or `NODE/MODEL>NODE/MODEL`, or one end of it. None = all. Raises NoSuchLink."""
    if not asked:
        return None
    known = {link.pair: link.name for link in log.links or ()}
    pairs = {*known, *(Pair.of(row) for row in log.rows if row.owner_node and row.helper_node)}
    found: set[Pair] = set()
    for text in asked:
        meant = {pair for pair in pairs if text in {known.get(pair), said(pair), _end(pair.owner), _end(pair.helper)}}
        if not meant:
            there = ", ".join(sorted(known.get(pair) or said(pair) for pair in pairs)) or "none"
            raise NoSuchLink(f"no link {text!r} is in the log or in the configuration: there are {there}")
        found |= meant
    return frozenset(found)


def said(pair: Pair) -> str:
    """`NODE/MODEL>NODE/MODEL`."""
    return f"{_end(pair.owner)}>{_end(pair.helper)}"


def only(log: ClusterLog, pairs: frozenset[Pair] | None) -> ClusterLog:
    """The rows of these links, for a list of rows. Rows that name no link stay when their helper is one's."""
    if pairs is None:
        return log
    helpers = {pair.helper.node for pair in pairs}
    rows = [row for row in log.rows if Pair.of(row) in pairs or (not row.owner_node and row.helper_node in helpers)]
    return replace(log, rows=rows)


def _end(ref: ModelRef) -> str:
    return f"{ref.node}/{ref.model}"
