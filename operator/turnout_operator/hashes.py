"""Short hashes for annotations: whether two things are the same, and nothing else. Pure."""

import hashlib
import json


def short_hash(value: object) -> str:
    """16 hexadecimal digits over a JSON value."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]
