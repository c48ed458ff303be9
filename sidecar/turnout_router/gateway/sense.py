"""What a message about lending cannot mean, although it can be read. Pure.

A lease for a model that owns no link is no such message: the owner refuses it with a row of its log (`lease_refused`,
`not_an_owner`), as the text says. What is caught here the text has no word for, and no master sends it.
"""

from collections.abc import Collection, Sequence

from turnout_api.config import LinkConfig
from turnout_api.lending import LeaseAnswer, QueueEvent

MAX_NUMBER = 2**63 - 1
"""Of epochs and of what counts messages and configurations: what others than Python can read."""


def wrong_number(**numbers: int) -> str:
    """Why one of these counts nothing; empty = all may."""
    for name, number in numbers.items():
        if not 0 <= number <= MAX_NUMBER:
            return f"{name}: {str(number)[:64]} is not in 0 to {MAX_NUMBER}"
    return ""


def wrong_event(event: QueueEvent) -> str:
    """Why an owner's queue cannot be so; empty = it can."""
    if wrong := wrong_number(seq=event.seq):
        return wrong
    for name, count in (("held_count", event.held_count), ("lendable_count", event.lendable_count)):
        if count < 0:
            return f"{name}: {count} requests"
    return ""


def wrong_lease(answer: LeaseAnswer, here: Collection[str], links: Sequence[LinkConfig]) -> str:
    """Why these leases cannot be used; empty = they can. `here` = how this node is called in links."""
    helpers = {
        (link.helper_node, link.helper_model)
        for link in links
        if link.owner_node in here and link.owner_model == answer.model
    }
    for index, lease in enumerate(answer.leases):
        at = f"leases.{index}"
        if lease.slots < 1:
            return f"{at}.slots: {lease.slots}, but a lease has one at least; no lease at all ends lending"
        if lease.ttl_ms < 0:
            return f"{at}.ttl_ms: {lease.ttl_ms}"
        if lease.requests is not None and lease.requests < 1:
            return f"{at}.requests: {lease.requests}, but a lease is for one at least"
        if not helpers:
            continue
        if lease.helper.node in here:
            return f"{at}.helper: {lease.helper.node} is this node, which cannot lend to itself"
        if not any((node, lease.helper.model) in helpers for node in _names(lease.helper.node)):
            return f"{at}.helper: no link of {answer.model} names {lease.helper.node}/{lease.helper.model}"
    return ""


def _names(node: str) -> tuple[str, str]:
    """A link may name an instance, `NAME.POD`, or its node."""
    return node, node.split(".", 1)[0]
