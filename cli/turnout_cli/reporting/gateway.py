"""The decision log of a cluster that runs, asked of its master: `GET /router/v1/node/decisions?all=1`.

The master gathers the rows of every node. What requests took is in the databases only, so a log from here has no nodes.
"""

from pathlib import Path
from urllib.parse import urlsplit

import aiohttp
from pydantic import TypeAdapter, ValidationError

from turnout_api.lending import DecisionRow
from turnout_api.wire import NODE_PREFIX, Decisions
from turnout_cli.reporting.databases import LogUnusable
from turnout_cli.reporting.log import ClusterLog
from turnout_cli.sources import why_unread
from turnout_router.store.decisions import MAX_ROWS as PAGE_ROWS

MAX_PAGES = 30
TIMEOUT_S = 60.0
_ANSWER = TypeAdapter(Decisions)


async def of_gateway(url: str, token_file: Path, since: float) -> ClusterLog:
    """Every row since then, page by page. Raises LogUnusable."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise LogUnusable(f"{url!r} is no URL of a gateway: write for example http://127.0.0.1:8900")
    headers = {"Authorization": f"Bearer {_token(token_file)}"}
    rows: list[DecisionRow] = []
    missing: dict[str, str] = {}
    until: float | None = None
    try:
        async with aiohttp.ClientSession(headers=headers, timeout=aiohttp.ClientTimeout(TIMEOUT_S)) as session:
            for _ in range(MAX_PAGES):
                page = await _page(session, url.rstrip("/").removesuffix("/v1"), since, until)
                missing |= page.missing
                rows += page.rows
                if len(page.rows) < PAGE_ROWS:
                    break
                until = page.rows[-1].ts
    except (aiohttp.ClientError, TimeoutError) as error:
        raise LogUnusable(f"{url} cannot be asked: {str(error) or type(error).__name__}") from error
    notes = [f"the rows of {node} are missing: {why}" for node, why in sorted(missing.items())]
    if len(rows) >= MAX_PAGES * PAGE_ROWS:
        notes.append(f"only the newest {len(rows)} rows were read: ask for less with --since")
    notes.append("requests and loads are not known over --url: what waits and loads cost is told from the rows alone")
    return ClusterLog(rows, notes=notes)


def _token(file: Path) -> str:
    try:
        token = file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise LogUnusable(f"the token file {file} cannot be read: {why_unread(error)}") from error
    if not token or any(character.isspace() or not character.isprintable() for character in token):
        raise LogUnusable(f"the token file {file} holds no cluster token, which is one word")
    return token


async def _page(session: aiohttp.ClientSession, base: str, since: float, until: float | None) -> Decisions:
    """The newest rows before `until`; those that share the very microsecond of a page's last row are lost."""
    asked = {"all": "1", "since": repr(since), "limit": str(PAGE_ROWS)}
    if until is not None:
        asked["until"] = repr(until)
    async with session.get(f"{base}{NODE_PREFIX}/decisions", params=asked) as response:
        body = await response.read()
        if response.status in {401, 403}:
            raise LogUnusable(f"{base} does not take this token: it wants the cluster token, no API key")
        if response.status != 200:
            said = body[:200].decode("utf-8", "replace")
            raise LogUnusable(f"{base} answered {response.status}, not with a decision log: {said}")
    try:
        return _ANSWER.validate_json(body)
    except ValidationError as error:
        raise LogUnusable(
            f"{base} answered with something else than a decision log: {error.errors()[0]['msg']}"
        ) from error
