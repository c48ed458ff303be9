"""Telling that a manifest may have changed.

Editors replace a file instead of writing it, so folders are watched, not files. What is reported is only a reason to read
again: whoever reads compares.
"""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from watchfiles import Change, awatch

from turnout_cli.sources import SUFFIXES

SETTLE_MS, STEP_MS = 200, 50
"""Changes that come closer together than SETTLE_MS are one."""
ANYWAY_MS = 5000
"""Read again this often in any case: some file systems report nothing, and an edit may come before the watch begins."""


async def edits(files: Sequence[Path]) -> AsyncIterator[None]:
    """Yields after each change of one of these files, or of a manifest in one of these folders, and now and then."""
    named = {path.resolve() for path in files}
    folders = {path if path.is_dir() else path.parent for path in named}

    def concerns(_change: Change, changed: str) -> bool:
        path = Path(changed)
        return path in named or (path.suffix in SUFFIXES and not named.isdisjoint(path.parents))

    async for _ in awatch(
        *folders,
        watch_filter=concerns,
        debounce=SETTLE_MS,
        step=STEP_MS,
        rust_timeout=ANYWAY_MS,
        yield_on_timeout=True,
        recursive=any(path.is_dir() for path in named),
    ):
        yield
