"""The API server of the cluster, as the master asks it for what people change. A small client: five verbs on four kinds.

Invariants: whatever keeps it from answering, or from meeting a request for reasons that the caller cannot mend (no permission,
no such kind, overload), is `NotHere` and names what to do; `Answer` is what the caller has to judge himself.
"""

import asyncio
import re
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from turnout_api.config import AdminConfig
from turnout_api.resolve.reasons import Reason
from turnout_router.admin.errors import NotHere

CALL_S = 10.0
"""One request. The API server answers writes of small objects in some milliseconds; a webhook may add seconds."""
AWAY_RETRY_S = 5.0
FIELD_MANAGER = "turnout-admin"
"""Who owns the fields that people change here, for those who use server-side apply."""
_CALLER_JUDGES = frozenset({400, 404, 409, 413, 422})
_WEBHOOK = "admission webhook"
_DENIED = "denied the request: "
_NAMED = re.compile(r" \((\w+)\)(?=; |$)")
"""In the words of a refusal, why: `FIELD: what is the matter (JumpLoop); FIELD: …`."""
_REASONS = frozenset(reason.value for reason in Reason)


@dataclass(frozen=True, slots=True)
class Answer:
    """Of the API server: the object, or a `Status` that says why not."""

    status: int
    document: Mapping[str, Any]

    @property
    def ok(self) -> bool:
        """The request was met."""
        return self.status < 400

    @property
    def message(self) -> str:
        """Why not; of a webhook's refusal what the webhook said, without who asked it."""
        said = str(self.document.get("message") or f"HTTP {self.status}")
        return said.partition(_DENIED)[2] or said

    @property
    def reason(self) -> str:
        """A word for programs: the first that Turnout's webhook names, whose `reason` is the API server's `Invalid` for kubectl's sake."""
        named = _NAMED.findall(self.message) if self.is_of_a_webhook else []
        return next((name for name in named if name in _REASONS), str(self.document.get("reason") or ""))

    @property
    def is_of_a_webhook(self) -> bool:
        """Somebody judged the object, and not the right to write it."""
        said = str(self.document.get("message"))
        return said.startswith(_WEBHOOK) and _DENIED in said


class ApiServer:
    """One conversation; `async with ApiServer.talk(…)` opens and closes it."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self._session, self._url = session, url

    @classmethod
    @asynccontextmanager
    async def talk(cls, config: AdminConfig) -> AsyncIterator["ApiServer"]:
        """With the token and the authority of the pod's service account, read anew: the token is replaced every hour."""
        try:
            token, context = await asyncio.to_thread(_credentials, Path(config.service_account_dir))
        except (OSError, ssl.SSLError) as error:
            raise NotHere(f"this router has no service account to write with: {error}", retry_after_s=60) from error
        async with aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=context),
            timeout=aiohttp.ClientTimeout(total=CALL_S),
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
        ) as session:
            yield cls(session, config.api_server_url)

    async def ask(self, method: str, path: str, body: object = None) -> Answer:
        """One request. Raises NotHere."""
        data = None if body is None else orjson.dumps(body)
        try:
            async with self._session.request(
                method, self._url + path, data=data, headers={"Content-Type": "application/json"}
            ) as response:
                document = orjson.loads(await response.read())
                answer = Answer(response.status, document if isinstance(document, dict) else {})
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            message = "the API server does not answer: what is served goes on, and nothing can be changed now"
            raise NotHere(message, retry_after_s=AWAY_RETRY_S) from error
        if answer.ok or answer.status in _CALLER_JUDGES or answer.is_of_a_webhook:
            return answer
        raise _kept_from(answer)


def _kept_from(answer: Answer) -> NotHere:
    """What to do about an answer that no caller can do anything with."""
    match answer.status:
        case 401 | 403:
            return NotHere(
                f"the master's service account may not do this ({answer.message}): give it the chart's role for changes "
                "of people",
                retry_after_s=60,
            )
        case _:
            return NotHere(f"the API server could not do it: {answer.message}", retry_after_s=AWAY_RETRY_S)


def _credentials(folder: Path) -> tuple[str, ssl.SSLContext]:
    token = (folder / "token").read_text(encoding="ascii").strip()
    return token, ssl.create_default_context(cafile=str(folder / "ca.crt"))
