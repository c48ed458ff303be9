"""The manifests of a local cluster, as text."""

from collections.abc import Sequence
from pathlib import Path

from turnout_cli.local.desired import Unreadable
from turnout_cli.sources import SUFFIXES, expand, text_of


def texts(files: Sequence[Path], *, without: Path) -> dict[str, str]:
    """File name → text, of files and of the manifests in folders, but for what is in `without`. Raises Unreadable."""
    try:
        found = {str(path): text_of(path) for given in files for path in _outside(given, without)}
    except (OSError, UnicodeDecodeError) as error:
        raise Unreadable(f"a manifest cannot be read: {error}") from error
    if not found:
        raise Unreadable(f"no manifest ({', '.join(sorted(SUFFIXES))}) in {', '.join(map(str, files))}")
    return found


def _outside(given: Path, without: Path) -> list[Path]:
    """What the folder holds of manifests; the state folder may be in it. A file that is named is meant."""
    if not given.is_dir():
        return [given]
    return [path for path in expand(given) if not path.absolute().is_relative_to(without)]
