"""`turnout sim-backend`: an honest stand-in for a GPU server, for examples, tests and benches.

    async with SimBackend(SimOptions(models=("cc11",), decode_tokens_per_second=50)) as sim:
        ...  # sim.url, sim.requests, await sim.until(lambda: ...)

It spends time as a GPU server does (prefill, decode, load, a slot for each running request) and answers in the shapes
of the real ones. Tests hold the same assertions against it and against a real llama.cpp server.

| module | what | decides (pure) |
|---|---|---|
| `options` | what can be set | |
| `timing` | the time model: how much work a request is, and when each token is due | yes |
| `text` | answers, from seed and prompt alone | yes |
| `desk` | slots, the queue in front of them, loading and unloading | yes |
| `openai_shapes`, `llama_shapes`, `messages_shapes` | bodies, as each family of servers writes them | yes |
| `ollama_shapes` | the same for Ollama, whose bodies tell the time | |
| `media` | a picture and a sound | yes |
| `ledger` | one record for each request | |
| `server`, `generation`, `routes…` | aiohttp around all that | |
"""

from turnout_router.simbackend.ledger import Outcome, Record
from turnout_router.simbackend.options import SimOptions
from turnout_router.simbackend.server import SimBackend

__all__ = ["Outcome", "Record", "SimBackend", "SimOptions"]
