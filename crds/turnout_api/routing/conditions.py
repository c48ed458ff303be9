"""The conditions of a rule, made ready: each one is a function of the facts, and words for when it does not hold.

Everything that can be prepared is (regular expressions, sets, time zones), so that deciding only compares. A condition
for which a request has no value does not hold: losing it would let its rule match more than it should.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from typing import Protocol
from zoneinfo import ZoneInfo

import re2

from turnout_api.resources.rules import camel
from turnout_api.resources.when import HeaderMatch, TimeWindow, When
from turnout_api.routing import body as bodies
from turnout_api.routing.cost import Cost
from turnout_api.routing.facts import Facts

INFLIGHT = "maxInflightPerBackend"
COST_CONDITIONS = frozenset({"minRequestCostMicros", "maxRequestCostMicros"})
_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


class Inflight(Protocol):
    """Live counters: how busy the serving backends of a model are."""

    def __call__(self, model: str, /) -> Sequence[int]:
        """Requests in flight at each backend that serves the model; empty = none serves it."""
        ...


@dataclass(slots=True)
class Given:
    """What a decision needs beside the facts; made for one request, each value when it is first asked for."""

    facts: Facts
    price: Callable[[], Cost]
    inflight: Inflight | None = None
    """None = a dry-run: `maxInflightPerBackend` holds."""
    _cost: Cost | None = None
    _fingerprint: bytes = b""

    def cost(self) -> Cost:
        """What the request costs."""
        if self._cost is None:
            self._cost = self.price()
        return self._cost

    def fingerprint(self) -> bytes:
        """What makes a repeated request the same one: its content; of a form, its ID."""
        if not self._fingerprint:
            body = self.facts.body
            self._fingerprint = bodies.fingerprint(body) if body is not None else self.facts.request_id.encode()
        return self._fingerprint


Holds = Callable[[Facts, Given], bool]
Why = Callable[[Facts, Given], str]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of one rule."""

    name: str
    """As it is written in YAML."""
    holds: Holds
    why: Why = field(repr=False)
    """Why it does not hold, in words; asked only then."""


def compiled(when: When, *, rule: str, models: Sequence[str]) -> tuple[Condition, ...]:
    """The conditions of `when` in the order of its fields, which is the order in which they are looked at.

    `rule` is `FRONTEND/RULE`: it makes the draws of two rules with `percent` independent. `models` are those that the
    rule may route to.
    """
    return (
        *_of_the_request(when),
        *_tokens(when),
        *_costs(when),
        *_budget(when),
        *_of_backends(when, models),
        *_of_the_sender(when),
        *_of_the_moment(when, rule),
    )


def _of_the_request(when: When) -> Iterator[Condition]:
    if when.endpoints is not None:
        yield _one_of("endpoints", when.endpoints, lambda f: f.path, "the path is {}")
    for name, wanted, read in (
        ("stream", when.stream, lambda f: f.stream),
        ("hasImages", when.has_images, lambda f: f.has_images),
        ("hasTools", when.has_tools, lambda f: f.has_tools),
        ("hasAudio", when.has_audio, lambda f: f.has_audio),
    ):
        if wanted is not None:
            yield _flag(name, read, wanted=wanted)


def _of_backends(when: When, models: Sequence[str]) -> Iterator[Condition]:
    if when.max_inflight_per_backend is not None:
        yield _inflight(when.max_inflight_per_backend, tuple(models))


def _of_the_sender(when: When) -> Iterator[Condition]:
    for header, match in (when.headers or {}).items():
        yield _header(header, match)
    if when.clients is not None:
        yield _client(when.clients)
    if when.roles is not None:
        yield _roles(when.roles)
    if when.users is not None:
        yield _one_of("users", when.users, lambda f: f.user, "the field user is {}", missing="the body has no user")
    for key, value in (when.metadata or {}).items():
        yield _metadata(key, value)


def _of_the_moment(when: When, rule: str) -> Iterator[Condition]:
    if when.time_window is not None:
        yield _time_window(when.time_window)
    if when.percent is not None:
        yield _percent(when.percent, rule)


_FLAG_WORDS = {
    "stream": ("the request asks for a stream", "the request asks for no stream"),
    "hasImages": ("the request carries images", "the request carries no images"),
    "hasTools": ("the request offers tools", "the request offers no tools"),
    "hasAudio": ("the request carries audio", "the request carries no audio"),
}


def _flag(name: str, read: Callable[[Facts], bool], *, wanted: bool) -> Condition:
    words = _FLAG_WORDS[name][wanted]
    if wanted:
        return Condition(name, lambda f, _g: read(f), lambda _f, _g: words)
    return Condition(name, lambda f, _g: not read(f), lambda _f, _g: words)


def _one_of(
    name: str, wanted: Sequence[str], read: Callable[[Facts], str | None], words: str, *, missing: str = ""
) -> Condition:
    known = frozenset(wanted)

    def why(facts: Facts, _given: Given) -> str:
        value = read(facts)
        return missing if value is None else f"{words.format(value)}, not {_or(wanted)}"

    return Condition(name, lambda f, _g: read(f) in known, why)


def _tokens(when: When) -> Iterator[Condition]:
    no_input = "the request has no estimate of its input tokens"
    no_output = "the client does not say how many output tokens it wants (max_tokens)"
    said = "the input is about {} tokens"
    yield from _range(
        when, "input_tokens", lambda f, _g: f.input_tokens, lambda f, _g: said.format(f.input_tokens), no_input
    )
    asked = "the client asks for {} output tokens"
    yield from _range(
        when, "output_tokens", lambda f, _g: f.output_tokens, lambda f, _g: asked.format(f.output_tokens), no_output
    )


def _costs(when: When) -> Iterator[Condition]:
    def words(_facts: Facts, given: Given) -> str:
        return f"the request costs {given.cost().micros} millionths"

    yield from _range(when, "request_cost_micros", lambda _f, g: g.cost().micros, words, lambda g: g.cost().why)


def _budget(when: When) -> Iterator[Condition]:
    def words(facts: Facts, _given: Given) -> str:
        return f"{facts.budget_used_percent:g}% of the budget are used"

    missing = "the caller's key has no budget, or it is not known here"
    yield from _range(when, "budget_used_percent", lambda f, _g: f.budget_used_percent, words, missing)


def _range(
    when: When,
    field: str,
    read: Callable[[Facts, Given], float | None],
    words: Why,
    missing: str | Callable[[Given], str],
) -> Iterator[Condition]:
    """`min…` and `max…` of one value, both ends included."""

    def why(end: str) -> Why:
        def say(facts: Facts, given: Given) -> str:
            if read(facts, given) is None:
                return missing if isinstance(missing, str) else missing(given)
            return f"{words(facts, given)}, {end}"

        return say

    low, high = getattr(when, f"min_{field}"), getattr(when, f"max_{field}")
    if low is not None:
        yield Condition(
            camel(f"min_{field}"), lambda f, g: (v := read(f, g)) is not None and v >= low, why(f"fewer than {low}")
        )
    if high is not None:
        yield Condition(
            camel(f"max_{field}"), lambda f, g: (v := read(f, g)) is not None and v <= high, why(f"more than {high}")
        )


def _inflight(limit: int, models: tuple[str, ...]) -> Condition:
    def holds(_facts: Facts, given: Given) -> bool:
        inflight = given.inflight
        return inflight is None or any(count < limit for model in models for count in inflight(model))

    def why(_facts: Facts, given: Given) -> str:
        counts = [count for model in models for count in given.inflight(model)] if given.inflight else []
        if not counts:
            return "no backend serves a target of the rule"
        return f"the least busy backend of the rule has {min(counts)} requests in flight, not fewer than {limit}"

    return Condition(INFLIGHT, holds, why)


def _header(name: str, match: HeaderMatch) -> Condition:
    holds: Callable[[str | None], bool]
    if match.exact is not None:
        exact = match.exact
        holds, wanted = (lambda value: value == exact), f"not {exact!r}"
    elif match.prefix is not None:
        prefix = match.prefix
        holds, wanted = (
            (lambda value: value is not None and value.startswith(prefix)),
            f"does not begin with {prefix!r}",
        )
    elif match.regex is not None:
        search = re2.compile(match.regex).search
        holds, wanted = (
            (lambda value: value is not None and bool(search(_utf8(value)))),
            f"does not match {match.regex}",
        )
    elif match.present:
        holds, wanted = (lambda value: value is not None), ""
    else:
        holds, wanted = (lambda value: value is None), "must not be there"

    def why(facts: Facts, _given: Given) -> str:
        value = facts.headers.get(name)
        return (
            f"the request has no header {name}" if value is None else f"the header {name} is {_cut(value)!r}: {wanted}"
        )

    return Condition("headers", lambda f, _g: holds(f.headers.get(name)), why)


def _client(wanted: Sequence[str]) -> Condition:
    known = frozenset(wanted)

    def why(facts: Facts, _given: Given) -> str:
        if not facts.client:
            return "the request came with the gateway master key, which is none of the clients"
        return f"the client is {facts.client}, not {_or(wanted)}"

    return Condition("clients", lambda f, _g: f.client in known, why)


def _roles(wanted: Sequence[str]) -> Condition:
    known = frozenset(wanted)

    def why(facts: Facts, _given: Given) -> str:
        if facts.roles is None:
            return "the roles of the caller's key are not known here"
        has = f"the roles {', '.join(sorted(facts.roles))}" if facts.roles else "no role"
        return f"the caller's key has {has}, not {_or(wanted)}"

    return Condition("roles", lambda f, _g: f.roles is not None and not known.isdisjoint(f.roles), why)


def _metadata(key: str, wanted: str) -> Condition:
    def why(facts: Facts, _given: Given) -> str:
        value = facts.metadata.get(key)
        if value is None:
            return f"the metadata of the body has no text {key}"
        return f"{key} in the metadata is {_cut(value)!r}, not {wanted!r}"

    return Condition("metadata", lambda f, _g: f.metadata.get(key) == wanted, why)


def _time_window(window: TimeWindow) -> Condition:
    zone = ZoneInfo(window.zone)
    begin, end = _minute(window.from_), _minute(window.to)
    days = frozenset(_DAYS.index(day) for day in window.days) if window.days else frozenset(range(7))

    def holds(facts: Facts, _given: Given) -> bool:
        if facts.at is None:
            return False
        now = datetime.fromtimestamp(facts.at, UTC).astimezone(zone)
        minute, today = now.hour * 60 + now.minute, now.weekday()
        if begin < end:
            return begin <= minute < end and today in days
        # over midnight: the day is that on which the window began
        return (minute >= begin and today in days) or (minute < end and (today - 1) % 7 in days)

    def why(facts: Facts, _given: Given) -> str:
        if facts.at is None:
            return "there is no clock here: a time window holds only for a request that arrives"
        now = datetime.fromtimestamp(facts.at, UTC).astimezone(zone)
        on = f" on {', '.join(window.days)}" if window.days else ""
        return f"it is {_DAYS[now.weekday()]} {now:%H:%M} in {window.zone}, not {window.from_} to {window.to}{on}"

    return Condition("timeWindow", holds, why)


def _percent(share: int, rule: str) -> Condition:
    key = blake2b(rule.encode(), digest_size=32).digest()

    def draw(facts: Facts, given: Given) -> int:
        digest = blake2b(given.fingerprint(), digest_size=8, key=key)
        digest.update(facts.client.encode(errors="surrogatepass"))
        return int.from_bytes(digest.digest(), "big") * 100 >> 64

    def why(facts: Facts, given: Given) -> str:
        return f"the hash of client and request is {draw(facts, given)} of 100, not below {share}"

    return Condition("percent", lambda f, g: draw(f, g) < share, why)


def _minute(text: str) -> int:
    hours, minutes = text.split(":")
    return int(hours) * 60 + int(minutes)


def _or(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"


def _utf8(value: str) -> str:
    """A header's bytes that are no UTF-8 stand as lone surrogates, which RE2 does not take."""
    return value if value.isascii() else value.encode(errors="replace").decode()


def _cut(value: str) -> str:
    return value if len(value) <= 80 else value[:79] + "…"
