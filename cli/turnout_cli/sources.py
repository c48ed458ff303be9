"""Manifests on disk. `turnout validate` and `turnout up` take the same files of a folder, in the same order.

The order counts as that of creation: of two objects that exclude each other, the earlier one keeps the name.
"""

import errno
from pathlib import Path

SUFFIXES = frozenset({".json", ".yaml", ".yml"})
"""What `kubectl apply -f FOLDER` takes."""
MAX_FILE_BYTES = 16 * 1024 * 1024


def expand(given: Path) -> list[Path]:
    """The file, or the manifests in the folder in the order in which `kubectl apply -R` takes them."""
    if not given.is_dir():
        return [given]
    return sorted(path for path in given.rglob("*") if path.suffix in SUFFIXES and path.is_file())


def text_of(path: Path) -> str:
    """A manifest's text. Raises OSError, also for a file that is too large to be one, and UnicodeDecodeError."""
    with path.open("rb") as file:
        content = file.read(MAX_FILE_BYTES + 1)
    if len(content) > MAX_FILE_BYTES:
        raise OSError(errno.EFBIG, f"larger than {MAX_FILE_BYTES} bytes: that is no manifest", str(path))
    return content.decode()


def why_unread(error: Exception) -> str:
    """For a message that names the file already: an OSError's own text would name it once more."""
    return getattr(error, "strerror", None) or str(error)
