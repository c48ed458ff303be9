"""How much work the requests of a log were. Pure.

Problem: a router's `requests` tell bytes, and what a client gets is mostly envelope: 40 tokens are 160 bytes of text in 530
bytes of JSON, or in 9,500 bytes of events. Dividing that by four makes of every answer a longer one.

Idea: take what was measured, the best that there is for each request:

1. the tokens that the backend told and the row holds;
2. the sample of the very job. Its node wrote it when the job ended, and nothing names the request, so it is the sample
   nearest to the end of the request, of the same model, whose body is as long but for a model's name;
3. for the rest, bytes less the envelope, which is what the requests of 1 and 2 with the same model, path and kind of
   answer had; else those of any model; else what a llama.cpp server writes.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

from turnout_api.lending import Work
from turnout_api.vocabulary import Lane
from turnout_cli.simulating.traffic import BYTES_PER_TOKEN
from turnout_router.families import paths
from turnout_router.families.errors import GatewayError
from turnout_router.families.paths import Operation
from turnout_router.lending.job import Job

ENVELOPE_BYTES: Final = 350.0
"""Of a whole answer."""
STREAM_BYTES_PER_TOKEN: Final = 220.0
"""An event for each token."""
ENDS_WITHIN_S: Final = 1.0
"""Between the end of a job on its node and on the node that has its client: milliseconds, and how far clocks are apart."""
NAME_BYTES: Final = 128
"""The body that a backend gets has another model's name."""
PICTURE_PIXEL_STEPS: Final = 1024.0 * 1024.0 * 20.0
CHAT: Final = "/v1/chat/completions"
GENERATES: Final = frozenset({Operation.CHAT, Operation.COMPLETION})


@dataclass(frozen=True, slots=True)
class Row:
    """A request that was served."""

    ts: float
    """When it came, seconds since the epoch."""
    node: str
    model: str
    """Local ID of the model that it asked for."""
    stream: bool
    bytes_in: int
    bytes_out: int
    path: str = CHAT
    total_s: float = 0.0
    lent_to: str = ""
    input_tokens: float | None = None
    output_tokens: float | None = None
    request_id: str = ""


@dataclass(frozen=True, slots=True)
class Measured:
    """A sample of a job."""

    node: str
    """That ran it; empty = whoever wrote the log."""
    model: str
    ts: float
    """When it ended."""
    work: Work
    body_bytes: int
    max_tokens: int | None = None


_Kind = tuple[str, str, bool]
"""Model (empty = any), path, and whether it was a stream: answers of one kind have one envelope."""


def sized(rows: Sequence[Row], samples: Iterable[Measured]) -> list[tuple[Work, Job]]:
    """For each row what it asked of a backend, and what its router could know of it."""
    known = list(samples)
    found = _matched(rows, known)
    exact = [_exact(row, found.get(index)) for index, row in enumerate(rows)]
    envelopes = _Envelopes([(row, work) for row, work in zip(rows, exact, strict=True) if work is not None])
    per_token = _bytes_per_token(known)
    pictures = [sample.work.pixel_steps for sample in known if sample.work.pixel_steps]
    picture = fmean(pictures) if pictures else PICTURE_PIXEL_STEPS
    return [
        (work := exact[index] or _estimated(row, per_token, envelopes, picture), _job(row, work, found.get(index)))
        for index, row in enumerate(rows)
    ]


def node_name(node: str) -> str:
    """Of an instance, `NAME.POD`, its node."""
    return node.split(".", 1)[0]


def _exact(row: Row, sample: Measured | None) -> Work | None:
    if row.input_tokens is not None and row.output_tokens is not None:
        return Work(row.input_tokens, row.output_tokens)
    return None if sample is None else sample.work


def _estimated(row: Row, per_token: Mapping[str, float], envelopes: "_Envelopes", picture: float) -> Work:
    try:
        endpoint = paths.find("POST", row.path).endpoint
    except GatewayError:  # a path of another version: as a chat
        endpoint = paths.find("POST", CHAT).endpoint
    if endpoint.lane is Lane.IMAGE:
        return Work(pixel_steps=picture)
    input_tokens = row.bytes_in / per_token.get(row.model, per_token.get("", BYTES_PER_TOKEN))
    return Work(input_tokens, envelopes.tokens(row) if endpoint.operation in GENERATES else 0.0)


def _job(row: Row, work: Work, sample: Measured | None) -> Job:
    return Job(
        Lane.IMAGE if work.pixel_steps else Lane.TEXT,
        body_bytes=row.bytes_in,
        max_tokens=None if sample is None else sample.max_tokens,
        pixel_steps=work.pixel_steps,
        lendable=not row.stream,
    )


def _bytes_per_token(samples: Iterable[Measured]) -> dict[str, float]:
    """Of bodies by model, and under "" of all."""
    ratios: dict[str, list[float]] = defaultdict(list)
    for sample in samples:
        if sample.work.input_tokens > 0 and sample.body_bytes > 0:
            for model in (sample.model, ""):
                ratios[model].append(sample.body_bytes / sample.work.input_tokens)
    return {model: fmean(values) for model, values in ratios.items()}


def _matched(rows: Sequence[Row], samples: Iterable[Measured]) -> dict[int, Measured]:
    """Each row's own sample, by the row's index; a sample is of one row at most."""
    by_node: dict[str, list[Measured]] = defaultdict(list)
    for sample in sorted(samples, key=lambda each: each.ts):
        by_node[node_name(sample.node)].append(sample)
    ends = {node: [sample.ts for sample in each] for node, each in by_node.items()}
    taken: set[int] = set()
    matched: dict[int, Measured] = {}
    for index in sorted(range(len(rows)), key=lambda index: rows[index].ts + rows[index].total_s):
        row = rows[index]
        end = row.ts + row.total_s
        near = [
            sample
            for node in (node_name(row.lent_to or row.node), "")
            for sample in by_node[node][_window(ends.get(node, []), end)]
            if id(sample) not in taken and _may_be(row, sample)
        ]
        if near:
            matched[index] = best = min(near, key=lambda sample: abs(sample.ts - end))
            taken.add(id(best))
    return matched


def _window(ends: Sequence[float], end: float) -> slice:
    return slice(bisect_left(ends, end - ENDS_WITHIN_S), bisect_left(ends, end + ENDS_WITHIN_S))


def _may_be(row: Row, sample: Measured) -> bool:
    # A helper's model has another name.
    return abs(sample.body_bytes - row.bytes_in) <= NAME_BYTES and (bool(row.lent_to) or sample.model == row.model)


class _Envelopes:
    """What answers have around their tokens, by kind."""

    def __init__(self, known: Sequence[tuple[Row, Work]]) -> None:
        kinds: dict[_Kind, list[tuple[int, float]]] = defaultdict(list)
        for row, work in known:
            if work.output_tokens > 0:
                for model in (row.model, ""):
                    kinds[model, row.path, row.stream].append((row.bytes_out, work.output_tokens))
        self._kinds = kinds

    def tokens(self, row: Row) -> float:
        """Of an answer whose size in bytes is all that is known."""
        known = self._kinds.get((row.model, row.path, row.stream)) or self._kinds.get(("", row.path, row.stream))
        if row.stream:
            per_token = STREAM_BYTES_PER_TOKEN
            if known:
                per_token = sum(size for size, _ in known) / sum(tokens for _, tokens in known)
            return max(1.0, row.bytes_out / per_token)
        envelope = ENVELOPE_BYTES
        if known:
            envelope = max(0.0, fmean(size - BYTES_PER_TOKEN * tokens for size, tokens in known))
        return max(1.0, (row.bytes_out - envelope) / BYTES_PER_TOKEN)
