"""Borrowed requests that a helper serves now, so that they can be stopped by their ID."""

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from turnout_api.config import LinkConfig
from turnout_api.lending import ModelRef
from turnout_api.wire import LentStopped, StopLent
from turnout_router.gateway.lent import Stopped
from turnout_router.lending.job import Borrow

STOP_LIMIT_S: Final = 3.0
"""To take a request off the backend: its connection is closed, nobody is asked."""


class StillRunning(Exception):
    """A request could not be taken off its backend in time."""


class Borrowed:
    """The handlers of borrowed requests."""

    def __init__(self) -> None:
        self._running: dict[asyncio.Task[object], tuple[str, str]] = {}
        self._stopped = Stopped()

    @contextmanager
    def serving(self, request_id: str, lease: str) -> Iterator[None]:
        """The current task serves this request. Raises HandedBack when it was stopped before it arrived."""
        self._stopped.refuse(request_id, lease)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a handler runs in a task
        self._running[task] = request_id, lease
        try:
            yield
        finally:
            del self._running[task]

    async def stop(self, asked: StopLent) -> LentStopped:
        """End it; returns when its backend has been let go. Raises StillRunning."""
        self._stopped.add(asked)
        meant = [
            task
            for task, (request_id, lease) in self._running.items()
            if request_id == asked.request_id and asked.lease in {"", lease}
        ]
        for task in meant:
            task.cancel()
        if meant:
            await asyncio.wait(meant, timeout=STOP_LIMIT_S)
        if any(task in self._running for task in meant):
            raise StillRunning(f"request {asked.request_id} has not ended {STOP_LIMIT_S:g} s after it was stopped")
        return LentStopped(state="stopped" if meant else "unknown")


def borrow_of(lease: str, link_name: str, model: str, links: Sequence[LinkConfig], here: frozenset[str]) -> Borrow:
    """What a borrowed request may do here: as its link says; without its name, what every link to the model allows."""
    to_model = [link for link in links if link.helper_node in here and link.helper_model == model]
    meant = [link for link in to_model if link.name == link_name] or to_model
    owners = {ModelRef(link.owner_node, link.owner_model) for link in meant}
    return Borrow(
        lease,
        may_load=bool(meant) and all(link.load_if_unloaded for link in meant),
        restore=bool(meant) and all(link.restore_after_borrow for link in meant),
        owner=owners.pop() if len(owners) == 1 else None,
    )
