"""What was used: the records of requests, summed by any of what they say. Pure: from a question to SQL, from rows to an answer.

Every request that ended is one row, refused ones too (`outcome`). Tokens and costs are what the rows say; how many rows say
nothing of them stands beside (`uncounted_requests`, `unpriced_requests`), so that a sum is never taken for more than it is.
"""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf, isfinite

from turnout_api.durations import parse_duration

GROUPS: Mapping[str, str] = {
    "client": "caller",
    "frontend_model": "frontend",
    "rule": "rule",
    "tag": "tag",
    "model": "model",
    "node": "node",
    "outcome": "outcome",
    "status": "status",
    "path": "path",
    "lent_to": "lent_to",
    "day": "strftime('%Y-%m-%d', ts, 'unixepoch')",
    "hour": "strftime('%Y-%m-%dT%H:00Z', ts, 'unixepoch')",
}
"""What one may group by → the column. Days and hours are those of UTC."""
SUMS: Mapping[str, str] = {
    "requests": "count(*)",
    "input_tokens": "coalesce(sum(input_tokens), 0)",
    "output_tokens": "coalesce(sum(output_tokens), 0)",
    "cost_micros": "coalesce(sum(cost_micros), 0)",
    "uncounted_requests": "count(*) - count(output_tokens)",
    "unpriced_requests": "count(*) - count(cost_micros)",
    "mean_seconds": "round(avg(total_s), 4)",
    "max_seconds": "round(max(total_s), 4)",
    "mean_first_byte_seconds": "round(avg(first_byte_s), 4)",
    "mean_queued_seconds": "round(avg(queued_s), 4)",
}
_OTHERS = frozenset({"group_by", "since", "until", "format"})
DEFAULT_SINCE_S = 86_400.0
MAX_GROUPS = 10_000
MAX_VALUES = 100
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a spreadsheet takes for the beginning of a formula."""


class NoSuchQuestion(ValueError):
    """The message says what may be asked."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked: requests that began from `since` until before `until`, seconds since 1970."""

    group_by: tuple[str, ...]
    since: float
    until: float
    only: tuple[tuple[str, tuple[str, ...]], ...] = ()
    """Group → the values that count."""


def question_of(query: Iterable[tuple[str, str]], now: float) -> Question:
    """What a query string asks: `group_by=client,model`, `since=24h` or a date, `until`, and `client=ann` for only that.

    Groups may be given one by one, and several values of one: any of them counts. Raises NoSuchQuestion.
    """
    given: dict[str, list[str]] = {}
    for name, value in query:
        given.setdefault(name, []).append(value)
    group_by = tuple(dict.fromkeys(name for names in given.get("group_by", ()) for name in names.split(",") if name))
    only = tuple((name, tuple(values)) for name, values in given.items() if name in GROUPS)
    unknown = [name for name in group_by if name not in GROUPS]
    unknown += [name for name in given if name not in GROUPS and name not in _OTHERS]
    if unknown:
        raise NoSuchQuestion(f"{unknown[0][:64]!r} is none of {', '.join(GROUPS)}")
    if any(len(values) > MAX_VALUES for _, values in only):
        raise NoSuchQuestion(f"more than {MAX_VALUES} values of one group")
    if twice := next((name for name in ("since", "until", "format") if len(given.get(name, ())) > 1), None):
        raise NoSuchQuestion(f"{twice} is given twice")
    since = _moment(given.get("since", [""])[0], now, DEFAULT_SINCE_S)
    return Question(group_by, since, _moment(given.get("until", [""])[0], now, 0.0), only)


def select(question: Question) -> tuple[str, tuple[object, ...]]:
    """The SQL, and its parameters. Every name in it stands in this module."""
    shown = [*(GROUPS[name] for name in question.group_by), *SUMS.values()]
    where = ["ts >= ?", "ts < ?", *(_any_of(name, values) for name, values in question.only)]
    sql = f"SELECT {', '.join(shown)} FROM requests WHERE {' AND '.join(where)}"  # noqa: S608 - see the docstring
    if question.group_by:
        numbers = ", ".join(str(number) for number in range(1, len(question.group_by) + 1))
        sql += f" GROUP BY {numbers} ORDER BY sum(cost_micros) DESC, count(*) DESC, {numbers}"
    values = tuple(value for _, several in question.only for value in several)
    return f"{sql} LIMIT {MAX_GROUPS + 1}", (question.since, question.until, *values)


def _any_of(name: str, values: Sequence[str]) -> str:
    return "(" + " OR ".join([f"{GROUPS[name]} = ?"] * len(values)) + ")"  # not IN: that compares a number to no text


def answer_of(question: Question, rows: Sequence[Sequence[object]]) -> dict[str, object]:
    """JSON values."""
    names = [*question.group_by, *SUMS]
    return {
        "since": question.since,
        "until": question.until,
        "group_by": list(question.group_by),
        "data": [dict(zip(names, row, strict=True)) for row in rows[:MAX_GROUPS]],
        "truncated": len(rows) > MAX_GROUPS,
    }


def csv_of(question: Question, rows: Sequence[Sequence[object]]) -> str:
    """The same as a table with a head, for a spreadsheet: no cell of it is a formula."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow([*question.group_by, *SUMS])
    writer.writerows([_cell(value) for value in row] for row in rows[:MAX_GROUPS])
    return text.getvalue()


def _cell(value: object) -> object:
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value


def _moment(text: str, now: float, default_ago_s: float) -> float:
    """A duration ago, a date, or seconds since 1970."""
    if not text:
        return now - default_ago_s
    try:
        seconds = _seconds(text, now)
    except ValueError:
        seconds = inf
    if not isfinite(seconds):  # so many digits that no float holds them, too
        raise NoSuchQuestion(f"{text[:64]!r} is no duration (24h), date (2026-01-31) or seconds since 1970")
    return seconds


def _seconds(text: str, now: float) -> float:
    if not text.isascii():
        raise ValueError(text)
    if text.replace(".", "", 1).isdecimal():
        return float(text)
    if text[:1].isdecimal() and "-" not in text:
        return now - parse_duration(text)
    moment = datetime.fromisoformat(text)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
