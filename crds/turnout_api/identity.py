"""Public names with stable suffixes.

Problem: two nodes may declare one public ID for models that are not the same. Idea: a ledger keeps, for each public
ID, the identity hashes in the order in which they were first seen. The first keeps the bare ID, later ones get `-2`,
`-3`, … A number is never reused, so the name of a model does not change when another one goes away.

An edit is no second model: when nothing declares a hash any more, and what declared it now declares another one under the
same public ID, the new hash takes the place of the old one (`follow`), and the name stays.

The operator keeps the ledger (`turnout up`: in its state folder); a master extends a copy of it for models that only
its slaves declare.
"""

from collections.abc import Collection, Mapping

Ledger = Mapping[str, list[str]]
"""Public ID → identity hashes; an empty string is a number that is skipped because that name is taken."""


Holders = Mapping[tuple[str, str], tuple[str, str]]
"""(node, local ID) → (public ID, identity hash): who declares what, in order."""


def follow(ledger: Ledger, before: Holders, now: Holders) -> dict[str, list[str]]:
    """The ledger after edits: a hash that nobody declares any more gives its place to what its first holder became."""
    declared = set(now.values())
    edited = {public_id: list(hashes) for public_id, hashes in ledger.items()}
    for holder, (public_id, was) in before.items():
        became = now.get(holder)
        hashes = edited.get(public_id, [])
        if became is None or became[0] != public_id or (public_id, was) in declared or was not in hashes:
            continue
        if became[1] not in hashes:
            hashes[hashes.index(was)] = became[1]
    return edited


def extend(ledger: Ledger, seen: Collection[tuple[str, str]], *, taken: Collection[str] = ()) -> dict[str, list[str]]:
    """The ledger with every (public ID, identity hash) of `seen` in it, in the order given.

    `taken` are names of other things (frontend models, recipes): no suffix makes one of them. A public ID that a suffix made
    before is not given out a second time: its models get suffixes only.
    """
    grown = {public_id: list(hashes) for public_id, hashes in ledger.items()}
    declared = set(grown) | {public_id for public_id, _ in seen} | set(taken)
    made = {name for name in all_names(grown) if name not in grown}
    for public_id, identity in seen:
        hashes = grown.setdefault(public_id, [""] if public_id in made else [])
        if identity in hashes:
            continue
        while hashes and _suffixed(public_id, len(hashes)) in declared:
            hashes.append("")  # that name is somebody's own public ID
        hashes.append(identity)
    return grown


def public_name(ledger: Ledger, public_id: str, identity: str) -> str:
    """The name that clients use. Raises KeyError for an identity that the ledger does not hold."""
    hashes = ledger[public_id]
    if identity not in hashes:
        raise KeyError(identity)
    return _suffixed(public_id, hashes.index(identity))


def _suffixed(public_id: str, index: int) -> str:
    return public_id if index == 0 else f"{public_id}-{index + 1}"


def all_names(ledger: Ledger) -> list[str]:
    """Every public name that the ledger has given out."""
    return [_suffixed(public_id, i) for public_id, hashes in ledger.items() for i, h in enumerate(hashes) if h]
