"""One worker a namespace: those that were named, or one for each namespace in which something is declared.

Namespaces are not listed, which would take another right: a watch begins with every object there is, and an object names its
namespace. For the same reason nobody says that one is gone: a worker of one that was heard of ends when it finds nothing declared there and
nothing left to be done, and an object that comes later has another.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager

from turnout_operator.worker import Worker


class Fleet:
    """The workers, and their tasks while they run. They may be run again."""

    def __init__(
        self,
        make: Callable[[str], Worker],
        namespaces: Sequence[str],
        ended: Callable[[str], object] = lambda _namespace: None,
    ) -> None:
        """No namespaces = those that are heard of. `ended` gets one whose worker has ended by itself."""
        self._ended = ended
        self.workers = [make(name) for name in namespaces]
        """It grows and shrinks."""
        self._make = make
        self._tasks: set[asyncio.Task[None]] | None = None
        """None = they do not run."""

    def wake(self, namespace: str) -> None:
        """Something changed there."""
        worker = next((worker for worker in self.workers if worker.namespace == namespace), None)
        if worker is None:
            worker = self._make(namespace)
            self.workers.append(worker)
            self._start(worker)
        worker.wake()

    def pressing(self, namespace: str) -> bool:
        """Whether something changed there that no round has seen."""
        return any(worker.pressing for worker in self.workers if worker.namespace == namespace)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """All have their rounds until the end of the block."""
        self._tasks = set()
        for worker in self.workers:
            self._start(worker)
        try:
            yield
        finally:
            tasks, self._tasks = self._tasks, None
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    def _start(self, worker: Worker) -> None:
        if self._tasks is not None:
            task = asyncio.create_task(self._run(worker), name=f"rounds of {worker.namespace}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _run(self, worker: Worker) -> None:
        await worker.run()
        self.workers.remove(worker)  # with no await in between: whoever wakes it comes before its end, or makes another
        self._ended(worker.namespace)
