"""Whoever asks for a cluster token while it is read, or a moment after, gets that answer; later it is read anew."""

import asyncio

import pytest

from turnout_api.resources.common import SecretKeyRef
from turnout_operator.api import ApiError
from turnout_operator.tokens import FOR_S, Tokens

TOKEN, OTHER = SecretKeyRef(name="token"), SecretKeyRef(name="other")


class Secrets:
    def __init__(self) -> None:
        self.reads: list[tuple[str, str]] = []
        self.failure: ApiError | None = None
        self.now = 0.0

    async def token_of(self, namespace: str, reference: SecretKeyRef) -> str:
        self.reads.append((namespace, reference.name))
        await asyncio.sleep(0)
        if self.failure:
            raise self.failure
        return f"{namespace}/{reference.name} {len(self.reads)}"


@pytest.fixture
def secrets() -> Secrets:
    return Secrets()


@pytest.fixture
def tokens(secrets: Secrets) -> Tokens:
    return Tokens(secrets.token_of, lambda: secrets.now)


async def test_many_who_ask_at_once_are_one_read(tokens: Tokens, secrets: Secrets) -> None:
    found = await asyncio.gather(*(tokens("test", TOKEN) for _ in range(100)))

    assert (set(found), secrets.reads) == ({"test/token 1"}, [("test", "token")])


async def test_each_secret_of_each_namespace_is_its_own(tokens: Tokens) -> None:
    found = await asyncio.gather(tokens("test", TOKEN), tokens("test", OTHER), tokens("else", TOKEN))

    assert found == ["test/token 3", "test/other 3", "else/token 3"]


async def test_a_token_that_changed_is_found_soon(tokens: Tokens, secrets: Secrets) -> None:
    assert await tokens("test", TOKEN) == await tokens("test", TOKEN)
    secrets.now = FOR_S

    assert await tokens("test", TOKEN) == "test/token 2"


async def test_a_failure_is_told_to_all_who_wait_and_not_to_those_who_ask_later(
    tokens: Tokens, secrets: Secrets
) -> None:
    secrets.failure = ApiError(503, "busy")
    found = await asyncio.gather(tokens("test", TOKEN), tokens("test", TOKEN), return_exceptions=True)
    assert found == [secrets.failure] * 2
    secrets.failure, secrets.now = None, FOR_S

    assert await tokens("test", TOKEN) == "test/token 2"


async def test_one_who_gives_up_does_not_take_the_answer_from_others(tokens: Tokens) -> None:
    first = asyncio.create_task(tokens("test", TOKEN))
    second = asyncio.create_task(tokens("test", TOKEN))
    await asyncio.sleep(0)
    first.cancel()

    assert await second == "test/token 1"
