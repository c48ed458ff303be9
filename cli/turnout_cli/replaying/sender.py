"""Sending the rows at their times and reading what comes back.

The open loop of a trace: a row is sent when it is due, whatever became of the rows before it, so a slow gateway sees the
queue that real clients would have made. One limit bounds how many are open at once; rows that had to wait for it are sent
late, and their entries say by how much. Nothing is ever sent twice.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import aiohttp
import orjson

from turnout_cli.replaying.account import Account, Entry, Outcome
from turnout_cli.replaying.answers import Answer
from turnout_cli.replaying.prompts import prompt, scaled, streams
from turnout_cli.replaying.trace import TraceRow

CONNECT_S = 10.0
SILENCE_S = 900.0
"""An answer that sends nothing for this long is given up; a gateway may keep a request in its queue for ten minutes."""
READ_BUFFER_BYTES = 1 << 18


class GatewayUnusable(Exception):
    """The gateway cannot be replayed against; the message says why."""


@dataclass(frozen=True, slots=True)
class Sending:
    """How rows become requests."""

    url: str
    key: str
    models: tuple[str, ...]
    """Rows take turns over them."""
    seed: int = 0
    stream_share: float = 0.5
    prompt_scale: float = 1.0
    max_tokens_scale: float = 1.0
    max_open: int = 256
    ignore_eos: bool = False
    """Ask for answers of exactly the trace's length, which llama.cpp and vLLM understand."""

    def body(self, row: TraceRow) -> dict[str, object]:
        """The request of a row."""
        body: dict[str, object] = {
            "model": self.models[row.number % len(self.models)],
            "messages": [{"role": "user", "content": prompt(row, seed=self.seed, scale=self.prompt_scale)}],
            "max_tokens": scaled(row.output_tokens, self.max_tokens_scale),
            "stream": streams(row, seed=self.seed, share=self.stream_share),
        }
        if body["stream"]:
            body["stream_options"] = {"include_usage": True}
        if self.ignore_eos:
            body["ignore_eos"] = True
        return body


@dataclass(slots=True)
class Clock:
    """Seconds since the epoch that never go back: the wall clock is read once."""

    epoch: float = field(default_factory=time.time)
    started: float = field(default_factory=time.monotonic)

    def now(self) -> float:
        """Now."""
        return self.epoch + time.monotonic() - self.started


async def served_models(session: aiohttp.ClientSession, url: str) -> list[str]:
    """The names that a gateway serves. Raises GatewayUnusable."""
    try:
        async with session.get(f"{url}/v1/models") as response:
            body = await response.read()
            if response.status != 200:
                raise GatewayUnusable(
                    f"{url}/v1/models answers {response.status}: {body[:300].decode(errors='replace')}"
                )
            return [str(model["id"]) for model in orjson.loads(body)["data"]]
    except (aiohttp.ClientError, OSError, TimeoutError) as error:
        raise GatewayUnusable(f"{url} cannot be reached: {str(error) or type(error).__name__}") from error
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise GatewayUnusable(f"{url}/v1/models gives no list of models") from error


def open_session(key: str) -> aiohttp.ClientSession:
    """A session that opens as many connections as it is asked to, and asks with this key."""
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        headers={"Authorization": f"Bearer {key}"},
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S, sock_read=SILENCE_S),
        read_bufsize=READ_BUFFER_BYTES,
    )


class Replay:
    """One run: all rows of an account against one gateway."""

    def __init__(
        self, session: aiohttp.ClientSession, sending: Sending, account: Account, now: Callable[[], float]
    ) -> None:
        self._session, self._sending, self._account, self._now = session, sending, account, now
        self._open = 0
        self.most_open = 0
        """Requests that were open at one time."""

    async def run(self, rows: Sequence[TraceRow]) -> None:
        """Send every row and read every answer; when cancelled, the account's entries stay as they are."""
        places = asyncio.Semaphore(self._sending.max_open)
        async with asyncio.TaskGroup() as group:
            for row, entry in zip(rows, self._account.entries, strict=True):
                body = self._sending.body(row)
                entry.model_asked, entry.stream = str(body["model"]), body["stream"] is True
                await asyncio.sleep(max(0.0, entry.scheduled - self._now()))
                await places.acquire()
                group.create_task(self._one(entry, orjson.dumps(body))).add_done_callback(lambda _: places.release())

    async def _one(self, entry: Entry, body: bytes) -> None:
        self._open += 1
        self.most_open = max(self.most_open, self._open)
        answer: Answer | None = None
        entry.sent = self._now()
        headers = {"Content-Type": "application/json", "x-request-id": entry.id}
        try:
            url = f"{self._sending.url}/v1/chat/completions"
            async with self._session.post(url, data=body, headers=headers, allow_redirects=False) as response:
                answer = _begin(entry, response)
                async for chunk in response.content.iter_any():
                    entry.first_byte = entry.first_byte or self._now()
                    answer.feed(chunk)
            outcome = answer.end()
            if response.headers.get("x-request-id", entry.id) != entry.id:
                answer.error = f"the answer to request {response.headers['x-request-id']}"
                outcome = Outcome.FOREIGN
        except (aiohttp.ClientError, OSError, TimeoutError) as error:
            entry.error = f"{type(error).__name__}: {error}"
            outcome = Outcome.CUT_OFF if answer else Outcome.UNREACHABLE
        finally:
            self._open -= 1
        if answer:
            _note(entry, answer)
        self._account.close(entry, outcome, self._now())


def _begin(entry: Entry, response: aiohttp.ClientResponse) -> Answer:
    entry.status = response.status
    entry.node = response.headers.get("x-turnout-node", "")
    entry.model = response.headers.get("x-turnout-model", "")
    return Answer(response.status, response.content_type == "text/event-stream")


def _note(entry: Entry, answer: Answer) -> None:
    entry.model = entry.model or answer.model
    entry.prompt_tokens, entry.completion_tokens = answer.prompt_tokens, answer.completion_tokens
    entry.complete = answer.complete
    entry.error = entry.error or answer.error
