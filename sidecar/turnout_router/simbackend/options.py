"""What can be set on a sim-backend. A rate or a duration of 0 means: takes no time."""

from dataclasses import dataclass
from pathlib import Path

from turnout_api.vocabulary import Family


@dataclass(frozen=True, slots=True)
class SimOptions:
    """Rates are those of one slot: slots do not slow each other down."""

    models: tuple[str, ...] = ("sim",)
    """IDs. One model = a server that was started with it; several = a server that loads and unloads (router mode)."""
    family: Family = Family.LLAMA_CPP
    """Ollama adds `/api/…`; LlamaCpp with one model answers whatever the request calls it, as llama.cpp does."""
    host: str = "127.0.0.1"
    port: int = 0
    """0 = any free port."""
    prefill_tokens_per_second: float = 2000.0
    decode_tokens_per_second: float = 100.0
    image_seconds: float = 2.0
    """One picture of 1024 by 1024 pixels and 20 steps; others in proportion to pixels times steps."""
    load_seconds: float = 0.0
    """Above 0 and with several models, at most one is loaded at a time."""
    concurrency: int = 1
    """Slots. What finds none free waits in order of arrival."""
    vision: bool = False
    context_window: int = 8192
    """Tokens, of prompt and answer together."""
    seed: int = 0
    log: Path | None = None
    """Gets one JSON line for each request."""
    serve_messages: bool = False
    """Also `/v1/messages` and `/v1/responses`."""
    deaf: bool = False
    """As llama.cpp's server really does: a non-streaming request whose client left runs to its end."""

    def __post_init__(self) -> None:
        """Raises ValueError that names the option."""
        if not self.models or len(set(self.models)) != len(self.models) or not all(self.models):
            raise ValueError("models: name at least one, each once")
        if self.concurrency < 1:
            raise ValueError("concurrency: at least 1")
        if self.context_window < 1:
            raise ValueError("context_window: at least 1")
        for name in ("prefill_tokens_per_second", "decode_tokens_per_second", "image_seconds", "load_seconds"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise ValueError(f"{name}: 0 or more")

    @property
    def switches(self) -> bool:
        """Whether this is a server that loads and unloads models (llama.cpp's router mode; Ollama always)."""
        return len(self.models) > 1 or self.family is Family.OLLAMA

    @property
    def exclusive(self) -> bool:
        """At most one model is loaded at a time."""
        return len(self.models) > 1 and self.load_seconds > 0
