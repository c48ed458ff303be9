"""Where `/sdapi` names a model if not in `model`: `override_settings.sd_model_checkpoint`."""

import orjson

_KEY = b'"sd_model_checkpoint"'


def with_checkpoint(body: bytes, name: str) -> bytes:
    """The body with another checkpoint; unchanged when it names none, and the backend's only model is meant."""
    if _KEY not in body:
        return body
    try:
        parsed = orjson.loads(body)
        overrides = parsed["override_settings"]
        if not isinstance(overrides["sd_model_checkpoint"], str):
            return body
        overrides["sd_model_checkpoint"] = name
        return orjson.dumps(parsed)
    except (orjson.JSONDecodeError, orjson.JSONEncodeError, KeyError, TypeError):
        return body
