"""How an exclusive runtime shares itself among models.

One model's pipe is filled at a time; its *turn* begins when its unit is loaded.

1. While nobody else waits, the turn goes on.
2. Once another model waits, the turn still serves what waited when the turn began and what came before the other
   model's oldest request; later arrivals do not overtake it.
3. Then the pipe runs empty and the model whose oldest request is the oldest gets the next turn.

So a request waits for at most one turn of each other model, and a turn is bounded by the queue: none starves, and
requests that alternate between two models are served in batches, not with a swap for each.

Own and borrowed work never wait at once (`lending/helper.py`), so nothing here tells them apart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf

from turnout_router.runtime.loading import Loading
from turnout_router.runtime.state import Board, ModelState, Phase

Serve = Callable[[ModelState, float, float], bool]
"""(model, limit, now): answer who waits for it and arrived before `limit`; whether anybody was answered."""
BeginLoad = Callable[[ModelState, float], None]


@dataclass(frozen=True, slots=True)
class _Turn:
    model: ModelState
    start: float
    """Who arrived before this number is served in this turn."""


class Turns:
    """Whose turn it is."""

    def __init__(self, board: Board, loading: Loading, serve: Serve, begin_load: BeginLoad) -> None:
        self._board = board
        self._loading = loading
        self._serve = serve
        self._begin_load = begin_load
        self._turn: _Turn | None = None

    def share(self, now: float) -> None:
        """Give slots and loads to whose turn it is."""
        board = self._board
        if board.is_moving():
            return
        self._loading.shed(now)
        while not board.is_moving() and (contenders := self._contenders(now)):
            turn, limit = self._turn, inf
            if turn is not None:
                limit = _right_of_way(turn, contenders)
            if turn is None or turn.model not in contenders or turn.model.oldest >= limit:
                if board.holders:
                    return  # a swap waits until what runs has ended
                self._turn = turn = _Turn(contenders[0], board.seq)
                limit = _right_of_way(turn, contenders)
            if turn.model.unit.phase is Phase.LOADED:
                if not self._serve(turn.model, limit, now):
                    return
            else:  # also when its process died under what runs: that ends by itself
                self._begin_load(turn.model, now)

    def on_loaded(self) -> None:
        """Who came for this model while it loaded is part of this turn."""
        if self._turn is not None:
            self._turn = _Turn(self._turn.model, self._board.seq)

    def end(self) -> None:
        self._turn = None

    def adopt(self) -> None:
        """A model that was taken out, or is served by another unit now, has no turn any more."""
        if self._turn is not None and self._board.models.get(self._turn.model.spec.id) is not self._turn.model:
            self._turn = None

    def _contenders(self, now: float) -> list[ModelState]:
        """Models that wait and could go, the longest waiting first."""
        models = self._board.models.values()
        waiting = [m for m in models if (m.waiting or m.loads) and self._loading.can_go(m.unit, now)]
        return waiting if len(waiting) < 2 else sorted(waiting, key=lambda model: model.oldest)


def _right_of_way(turn: _Turn, contenders: list[ModelState]) -> float:
    """Requests of the turn's model that arrived before this number go ahead of the others."""
    others = [model.oldest for model in contenders if model is not turn.model]
    # The number `start` itself had already arrived when the turn began.
    return max(turn.start + 1, min(others)) if others else inf
