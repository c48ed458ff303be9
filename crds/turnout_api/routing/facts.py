"""What a rule may look at in a request.

`read` makes facts out of a request as a person writes it (a dry-run, a RouteTest); the router, which has parsed its
request already, makes `Facts` directly. Both use `body`, so both see the same.

Estimates:

* `input_tokens`: UTF-8 bytes of the keys and texts that a model reads, divided by `BYTES_PER_TOKEN` until a ratio was
  measured, and one for each number (token IDs); media do not count. A form (an upload) has no estimate.
* `output_tokens`: what the client asks for at most; None where it does not say.

None means that the request has no such value: a condition on it does not hold, and the explanation says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from turnout_api.routing import body as bodies
from turnout_api.routing.paths import PATHS, Media, PathFacts, did_you_mean
from turnout_api.vocabulary import Capability

BYTES_PER_TOKEN = 4.0
"""English text with the tokenizers of common models; code and other languages have fewer."""
_NOTHING: Mapping[str, str] = MappingProxyType({})


class UnreadableRequest(ValueError):
    """A request that a router would refuse before it asks a rule; the message says why."""

    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status = status
        """Of the router's answer."""

    @property
    def said(self) -> str:
        """For a person."""
        return f"a router answers this request with {self.status}: {self}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """One request, as rules see it."""

    path: str = ""
    model: str = ""
    """The name that the client asks for."""
    capability: Capability | None = None
    """What the path needs of a model; None = not known."""
    headers: Mapping[str, str] = field(default_factory=dict)
    """By name in lower case; several of one name are joined by `, `."""
    client: str = ""
    """Name of the API key; empty = the gateway master key."""
    roles: frozenset[str] | None = frozenset()
    """Of the API key; None = not known here."""
    stream: bool = False
    has_images: bool = False
    has_tools: bool = False
    has_audio: bool = False
    input_tokens: int | None = None
    """Estimated; None = no estimate."""
    output_tokens: int | None = None
    """Asked for at most; None = the client does not say."""
    user: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    budget_used_percent: float | None = None
    """Of the day's budget of the caller's key; None = it has none, or it is not known here."""
    at: float | None = None
    """Seconds since 1970; None = no clock here."""
    request_id: str = ""
    body: Mapping[str, object] | None = field(default=None, repr=False, compare=False)
    """The parsed JSON body; None = a form."""


def estimated_tokens(body: Mapping[str, object], bytes_per_token: float = BYTES_PER_TOKEN) -> int:
    """Input tokens of a JSON body, rounded up."""
    size, numbers = bodies.prompt_size(body)
    return -int(-size // bytes_per_token) + numbers


def read(
    path: str,
    body: Mapping[str, object],
    *,
    headers: Mapping[str, str] = _NOTHING,
    client: str = "",
    roles: frozenset[str] | None = None,
    budget_used_percent: float | None = None,
    at: float | None = None,
    request_id: str = "",
    bytes_per_token: float = BYTES_PER_TOKEN,
) -> Facts:
    """The facts of a request that a person wrote. Raises UnreadableRequest."""
    path, _, _ = path.partition("?")  # a router takes the query for no part of it either
    row = _row(path)
    has_images, has_audio = _media(body, row)
    is_form = row.media is Media.AUDIO
    return Facts(
        path=path,
        model=model_of(body, row),
        capability=row.capability,
        headers=lower_case(headers),
        client=client,
        roles=roles,
        stream=_stream(body, row),
        has_images=has_images,
        has_tools=bodies.offers_tools(body),
        has_audio=has_audio,
        input_tokens=None if is_form else estimated_tokens(body, bytes_per_token),
        output_tokens=None if is_form else bodies.asked_output_tokens(body, ollama=row.ollama),
        user=bodies.user_of(body),
        metadata=bodies.metadata_of(body),
        budget_used_percent=budget_used_percent,
        at=at,
        request_id=request_id,
        body=body,
    )


def _row(path: str) -> PathFacts:
    """Of a path that a model may be asked on. Raises UnreadableRequest."""
    row = PATHS.get(path)
    if row is None:
        raise UnreadableRequest(f"no model is asked on the path {path!r}{did_you_mean(path)}", status=404)
    return row


def lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    """By name in lower case, as rules name them; names that then are the same are joined."""
    named: dict[str, str] = {}
    for name, value in headers.items():
        low = name.lower()
        named[low] = f"{named[low]}, {value}" if low in named else value
    return named


def model_of(body: Mapping[str, object], row: PathFacts) -> str:
    """The model that the body names. Raises UnreadableRequest."""
    model = body.get("model")
    if model is None and row.sdapi:
        overrides = body.get("override_settings")
        model = overrides.get("sd_model_checkpoint") if isinstance(overrides, dict) else None
    if not model:
        return ""
    if not isinstance(model, str):
        raise UnreadableRequest("'model' must be a text")
    return model


def _media(body: Mapping[str, object], row: PathFacts) -> tuple[bool, bool]:
    if row.media is Media.ASKED:
        return bodies.asked_media(body)
    return row.media is Media.IMAGE, row.media is Media.AUDIO


def _stream(body: Mapping[str, object], row: PathFacts) -> bool:
    if row.speech:
        return body.get("stream_format") == "sse"
    stream = body.get("stream")
    if stream is None:
        return row.stream_default
    if isinstance(stream, bool):
        return stream
    raise UnreadableRequest("'stream' must be true or false")
