"""Bodies as llama.cpp's server writes them.

Seen from a real one (build of xllamacpp 2026.10.11549); `tests/http/llama` holds both to the same assertions. Router
mode, which that build does not have, is written after llama.cpp's `tools/server/README.md` and `server-models.cpp`.
"""

from collections.abc import Sequence

from turnout_router.simbackend.desk import Desk
from turnout_router.simbackend.openai_shapes import JSON
from turnout_router.simbackend.options import SimOptions

IMAGE_REFUSAL = "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj"


def error(status: int, message: str, kind: str, **more: object) -> JSON:
    """An error as the server's handlers write it."""
    return {"error": {"code": status, "message": message, "type": kind, **more}}


def image_refused() -> tuple[int, JSON]:
    """A picture for a model without a projector; a server error, though it is the client's."""
    return 500, error(500, IMAGE_REFUSAL, "server_error")


def too_long(prompt_tokens: int, context_window: int) -> tuple[int, JSON]:
    """A prompt that does not fit. It is found when the request has its slot, not before."""
    message = (
        f"request ({prompt_tokens} tokens) exceeds the available context size ({context_window} tokens), "
        "try increasing it"
    )
    kind = "exceed_context_size_error"
    return 400, error(400, message, kind, n_prompt_tokens=prompt_tokens, n_ctx=context_window)


def bad_request(message: str) -> tuple[int, JSON]:
    """What the caller can mend."""
    return 400, error(400, message, "invalid_request_error")


def loading() -> tuple[int, JSON]:
    """Every path of a single-model server, `/health` among them, until its model is loaded."""
    return 503, error(503, "Loading model", "unavailable_error")


def not_found() -> tuple[int, JSON]:
    """A path that this server does not have."""
    return 404, error(404, "File Not Found", "not_found_error")


def status_of(desk: Desk, model: str) -> str:
    """`unloaded`, `loading` or `loaded`."""
    if model in desk.loaded:
        return "loaded"
    return "loading" if desk.loading == model else "unloaded"


def model_list(options: SimOptions, desk: Desk, created: int) -> JSON:
    """`GET /models` and `GET /v1/models`: with a status each in router mode, without one in single mode."""
    inputs = ["text", "image"] if options.vision else ["text"]
    entries: list[JSON] = []
    for model in options.models:
        entry: JSON = {
            "id": model,
            "aliases": [model],
            "tags": [],
            "object": "model",
            "architecture": {"input_modalities": inputs, "output_modalities": ["text"]},
            "created": created,
            "owned_by": "llamacpp",
        }
        if options.switches:
            entry["status"] = {"value": status_of(desk, model), "args": []}
        if not options.switches or model in desk.loaded:
            entry["meta"] = {"n_ctx": options.context_window, "n_ctx_train": options.context_window}
        entries.append(entry)
    return {"object": "list", "data": entries}


def props(options: SimOptions) -> JSON:
    """`GET /props`."""
    if options.switches:
        return {"role": "router", "max_instances": 1 if options.exclusive else 0, "models_autoload": True}
    return {
        "default_generation_settings": {"n_ctx": options.context_window},
        "total_slots": options.concurrency,
        "model_alias": options.models[0],
        "model_path": "none",
        "modalities": {"vision": options.vision, "video": False, "audio": False},
        "build_info": "sim",
        "is_sleeping": False,
    }


def slots(options: SimOptions, busy: int) -> Sequence[JSON]:
    """`GET /slots`."""
    return [
        {"id": index, "n_ctx": options.context_window, "speculative": False, "is_processing": index < busy}
        for index in range(options.concurrency)
    ]
