"""The closed sets of words that resources, configuration, wire and metrics share. One spelling each."""

from enum import StrEnum


class Role(StrEnum):
    """What a router is in its cluster."""

    STANDALONE = "Standalone"
    MASTER = "Master"
    SLAVE = "Slave"


class Family(StrEnum):
    """What kind of server a backend is."""

    OPENAI = "OpenAI"
    LLAMA_CPP = "LlamaCpp"
    VLLM = "VLLM"
    OLLAMA = "Ollama"
    SD_CPP = "SdCpp"
    KOBOLD = "Kobold"
    WHISPER = "Whisper"
    PROCESS = "Process"


SUPPORTED_FAMILIES = frozenset({Family.OPENAI, Family.LLAMA_CPP, Family.PROCESS})
"""Families whose readiness, list, load, unload, stream, cancel and refusal ran against the real server."""

SWITCHING_FAMILIES = frozenset({Family.LLAMA_CPP, Family.PROCESS})
"""Families of which one started process may load and unload several models: llama.cpp's router mode. Whether it does is
seen when it runs."""

DEAF_FAMILIES = frozenset({Family.LLAMA_CPP})
"""Families that do not notice the client of a whole answer leaving: they write on to the end, and their slot is busy all
that time. A stream they end at once. (llama.cpp issues 9273 and 24496; pinned by `tests/http/llama`.)"""


class Capability(StrEnum):
    """What a model can answer."""

    TEXT = "Text"
    VISION = "Vision"
    EMBEDDING = "Embedding"
    TRANSCRIPTION = "Transcription"
    SPEECH = "Speech"
    MUSIC = "Music"
    IMAGE = "Image"
    VIDEO = "Video"


class Lane(StrEnum):
    """The two lanes of lending; each has its own links, queue and cost model."""

    TEXT = "Text"
    IMAGE = "Image"


class Side(StrEnum):
    """Which readiness of a local node a model needs (spec: Registration and health)."""

    TEXT = "text"
    IMAGE = "image"
    WHISPER = "whisper"


class BackendMode(StrEnum):
    """When the local backends of a node are started."""

    EAGER = "Eager"
    LLAMA_SD_CPP = "LlamaSdCpp"  # lazy: a backend starts with the first request that needs it


class Policy(StrEnum):
    """How requests are shared over the endpoints of one model or the members of a pool."""

    ROUND_ROBIN = "RoundRobin"
    LEAST_LOADED = "LeastLoaded"
    LOWEST_LATENCY = "LowestLatency"
    CACHE_AFFINITY = "CacheAffinity"


class OffloadStrategy(StrEnum):
    """Which set of lending settings holds where none is given by hand (`turnout_api.strategy`)."""

    CLASSIC = "Classic"
    ADAPTIVE = "Adaptive"


class OffloadOrder(StrEnum):
    """Which waiting request is lent."""

    OLDEST = "Oldest"
    FIRST_THAT_GAINS = "FirstThatGains"


class RestorePricing(StrEnum):
    """What a helper's displaced model costs in the price of a lease."""

    FULL = "Full"
    EXPECTED_HARM = "ExpectedHarm"


class Weights(StrEnum):
    """Whether two models hold one checkpoint, by the hashes that they state."""

    SAME = "Same"
    DIFFERENT = "Different"
    UNKNOWN = "Unknown"
