"""Which streams are asked for their usage in the client's place, and which endpoints do not need or do not bear that.

A stream is asked where somebody counts it: a frontend model answers it, its model has a price, or its key has a limit of
tokens; and where it is translated for one of Ollama's clients, which are always told. Everything else passes as the client
wrote it.

Not asked are llama.cpp's, which tell `timings` unasked, and endpoints that were seen to refuse the option, or to tell
`timings` where they would have told them anyway. The first time an endpoint answers 400 or 422, or later with words about
the option, it gets the request once more as the client wrote it: nothing ran, and the client's request must not fail
because of what the router added.
"""

import asyncio
from typing import Final

from turnout_api.vocabulary import Family
from turnout_router.cluster.table import Endpoint, RoutingTable
from turnout_router.families import paths, stream_usage
from turnout_router.families.paths import Way
from turnout_router.families.request import RequestFacts
from turnout_router.gateway.attempt import ERROR_TIMEOUT_S, MAX_ERROR_BYTES, AttemptFailed
from turnout_router.gateway.endpoints import Key, key_of
from turnout_router.gateway.relay import broken_off
from turnout_router.upstream.interface import BodyTooLarge, UpstreamError, UpstreamResponse
from turnout_router.upstream.whole import WholeAnswer, whole

MAY_REFUSE: Final = frozenset({400, 422})
_TELL_UNASKED: Final = frozenset({Family.LLAMA_CPP})
_WORDS: Final = (b"stream_options", b"include_usage")


class UsageAsked:
    """What is known of endpoints. One owner: the gateway of this process."""

    def __init__(self) -> None:
        self._takes: dict[Key, bool] = {}
        """Whether it answered a stream that was asked; False = it is not asked any more."""

    def asks(self, path: paths.Endpoint, facts: RequestFacts, endpoint: Endpoint, *, counted: bool) -> bool:
        """Whether the endpoint is asked; `counted`: somebody wants to know what the answer uses."""
        if not facts.stream or facts.body is None or self._takes.get(key_of(endpoint)) is False:
            return False
        match paths.way(path, endpoint.family):
            case Way.TRANSLATE:
                return True  # Ollama's last line tells it to every client
            case _:
                return counted and endpoint.family not in _TELL_UNASKED and stream_usage.can_ask(path, facts.body)

    def may_refuse(self, endpoint: Endpoint, answer: WholeAnswer) -> bool:
        """Whether an error may mean the option and not what the client wrote."""
        said = answer.body.lower()
        return not self._takes.get(key_of(endpoint)) or any(word in said for word in _WORDS)

    def heard(self, endpoint: Endpoint, *, takes: bool) -> None:
        """It answered a stream: one that was asked and lost nothing by it, or only one that was not."""
        self._takes[key_of(endpoint)] = takes

    def keep(self, table: RoutingTable) -> None:
        """Forget what the table does not hold any more."""
        keys = {key_of(e) for model in table.models.values() for e in model.endpoints}
        self._takes = {key: takes for key, takes in self._takes.items() if key in keys}


async def read_refusal(response: UpstreamResponse) -> WholeAnswer:
    """A small error, to its end. Raises AttemptFailed."""
    try:
        async with asyncio.timeout(ERROR_TIMEOUT_S):
            return await whole(response, MAX_ERROR_BYTES)
    except (TimeoutError, BodyTooLarge, UpstreamError) as error:
        raise AttemptFailed(broken_off(), unsent=False) from error
