"""Reading a chat completion, whole or as a stream, and judging whether it is one complete answer."""

from dataclasses import dataclass, field

import orjson

from turnout_cli.replaying.account import Outcome

MAX_ERROR_CHARS = 300


@dataclass(slots=True)
class Answer:
    """What an answer said so far. `feed` takes its bytes in any chunking, `end` judges it."""

    status: int
    stream: bool
    """It is `text/event-stream`."""
    model: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    complete: bool = False
    error: str = ""
    _pending: bytearray = field(default_factory=bytearray)
    _dones: int = 0
    _after_done: bool = False

    def feed(self, chunk: bytes) -> None:
        """Take some bytes of the body."""
        self._pending += chunk
        if self.stream:
            *lines, rest = bytes(self._pending).split(b"\n")
            self._pending = bytearray(rest)
            for line in lines:
                self._line(line.rstrip(b"\r"))

    def end(self) -> Outcome:
        """The body came to its end, as HTTP sees it."""
        if not self.stream:
            self.complete = True
            self._object(bytes(self._pending))
            if self.status < 400 and self.error:
                return Outcome.CUT_OFF
            return Outcome.OK if self.status < 400 else Outcome.ERROR
        if self._dones > 1 or self._after_done:
            self.error = "the stream went on after [DONE]"
            return Outcome.FOREIGN
        self.complete = self._dones == 1 and not self.error
        if not self.complete:
            self.error = self.error or "the stream ended without [DONE]"
            return Outcome.CUT_OFF
        return Outcome.OK

    def _line(self, line: bytes) -> None:
        if not line.startswith(b"data:"):
            return
        data = line[5:].strip()
        if data == b"[DONE]":
            self._dones += 1
            return
        self._after_done = self._after_done or self._dones > 0
        self._object(data)

    def _object(self, data: bytes) -> None:
        try:
            body = orjson.loads(data)
        except orjson.JSONDecodeError:
            self.error = f"no JSON: {data[:MAX_ERROR_CHARS].decode(errors='replace')}"
            return
        if not isinstance(body, dict):
            self.error = "no JSON object"
            return
        if isinstance(model := body.get("model"), str):
            self.model = model
        if isinstance(usage := body.get("usage"), dict):
            self.prompt_tokens, self.completion_tokens = usage.get("prompt_tokens"), usage.get("completion_tokens")
        if error := body.get("error"):
            message = error.get("message") if isinstance(error, dict) else error
            self.error = str(message or error)[:MAX_ERROR_CHARS]
