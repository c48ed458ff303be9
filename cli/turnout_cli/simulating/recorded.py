"""Arrivals as a router recorded them: the `requests` of a `router.db`, with the sizes that its samples saw.

The table has no token counts, on purpose. Sizes are reconstructed from what the same node measured: bytes a token over
all samples of a model give the prompt, and bytes a token of answers (by default 4) the answer.
"""

import sqlite3
from collections import defaultdict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from statistics import fmean

from turnout_api.lending import ModelRef, Work
from turnout_cli.simulating.requests import Arrival
from turnout_cli.simulating.traffic import BYTES_PER_TOKEN
from turnout_cli.simulating.variants import NotSimulated
from turnout_router.lending.job import Job

ANSWER_BYTES_PER_TOKEN = 4.0
_QUERY = (
    "SELECT ts, node, local_id, stream, bytes_in, bytes_out FROM requests WHERE node != '' AND status < 400 ORDER BY ts"
)


def read_log(path: Path, *, limit: int | None = None, time_scale: float = 1.0) -> list[Arrival]:
    """The requests of a router's database as they came, from 0. Raises NotSimulated."""
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            rows = database.execute(f"{_QUERY} LIMIT ?", (-1 if limit is None else limit,)).fetchall()
            ratios = _bytes_per_token(database)
    except sqlite3.Error as error:
        raise NotSimulated(f"{path} is no database of a router: {error}") from error
    if not rows:
        raise NotSimulated(f"{path} holds no request that was served")
    return _arrivals(rows, ratios, time_scale)


def _arrivals(
    rows: Sequence[tuple[float, str, str, int, int, int]], ratios: dict[str, float], time_scale: float
) -> list[Arrival]:
    first = rows[0][0]
    arrivals = []
    for ts, node, model, stream, bytes_in, bytes_out in rows:
        work = Work(bytes_in / ratios.get(model, BYTES_PER_TOKEN), bytes_out / ANSWER_BYTES_PER_TOKEN)
        job = Job(body_bytes=bytes_in, lendable=not stream)
        arrivals.append(Arrival((ts - first) / time_scale, ModelRef(node, model), work, job))
    return arrivals


def _bytes_per_token(database: sqlite3.Connection) -> dict[str, float]:
    """By local ID; empty where nothing was measured."""
    ratios: dict[str, list[float]] = defaultdict(list)
    query = "SELECT model, body_bytes, input_tokens FROM samples WHERE input_tokens > 0 AND body_bytes > 0"
    for model, body_bytes, tokens in database.execute(query):
        ratios[model].append(body_bytes / tokens)
    return {model: fmean(values) for model, values in ratios.items()}
