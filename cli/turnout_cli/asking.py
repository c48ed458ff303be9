"""A dry-run asked of a gateway that runs: signing in, asking, signing out."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson
from pydantic import BaseModel, ValidationError

from turnout_api.routing import Deny, Explanation
from turnout_api.routing.decide import Declined
from turnout_api.routing.explain import Tried

TIMEOUT_S = 60.0
PATH = "/admin/routing/dry-run"


class CannotAsk(Exception):
    """The gateway gave no answer; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Login:
    """Who asks."""

    name: str
    password: str


class _Admin(BaseModel):
    name: str
    password: str


class _Credentials(BaseModel):
    admin: _Admin


def login_of(user: str, password_file: Path | None, state: Path) -> Login:
    """By name and file, else the admin of a cluster of `turnout up`. Raises CannotAsk."""
    if bool(user) != bool(password_file):
        raise CannotAsk("--user and --password-file go together")
    try:
        if password_file:
            return Login(user, password_file.read_text(encoding="utf-8").rstrip("\r\n"))
        admin = _Credentials.model_validate_json((state / "credentials.json").read_bytes()).admin
    except (OSError, UnicodeDecodeError) as error:
        raise CannotAsk(f"nobody to sign in as: {error}; give --user and --password-file, or --state") from error
    except ValidationError:
        raise CannotAsk(f"{state / 'credentials.json'} names no admin") from None
    return Login(admin.name, admin.password)


def ask(url: str, login: Login, request: dict[str, Any]) -> dict[str, Any]:
    """The answer of the gateway. Raises CannotAsk."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise CannotAsk(f"{url!r} is no URL of a gateway: write for example http://127.0.0.1:8900")
    try:
        return asyncio.run(_ask(url.rstrip("/").removesuffix("/v1"), login, request))
    except (aiohttp.ClientError, TimeoutError, orjson.JSONDecodeError) as error:
        raise CannotAsk(f"{url} cannot be asked: {str(error) or type(error).__name__}") from error


def explanation_of(found: dict[str, Any]) -> Explanation:
    """What a gateway answered, as a dry-run of our own would have it. Raises CannotAsk."""
    try:
        denied = found["denied"]
        return Explanation(
            frontend_model=found["frontend_model"],
            rule=found["rule"],
            action=found["action"],
            tag=found["tag"] or "",
            candidates=tuple(Tried(c["model"], tuple(c["nodes"]), c["pool"] or "") for c in found["candidates"]),
            denied=Deny(denied["status"], denied["message"]) if denied else None,
            cost_micros=found["cost_micros"],
            declined=tuple(
                Declined(d["frontend_model"], d["rule"], d["condition"], d["why"]) for d in found["declined"]
            ),
            unevaluated=tuple(found["unevaluated"]),
            guardian=found["guardian"],
            via=tuple(found["via"]),
            reason=found["reason"],
        )
    except (KeyError, TypeError) as error:
        raise CannotAsk(f"the gateway's answer is none of this version: {error}") from error


async def _ask(base: str, login: Login, request: dict[str, Any]) -> dict[str, Any]:
    jar, timeout = aiohttp.CookieJar(unsafe=True), aiohttp.ClientTimeout(TIMEOUT_S)  # unsafe: also of an address
    async with aiohttp.ClientSession(cookie_jar=jar, timeout=timeout) as session:
        await _post(session, f"{base}/login", {"name": login.name, "password": login.password})
        try:
            return await _post(session, f"{base}{PATH}", request)
        finally:
            await _post(session, f"{base}/logout", {})


async def _post(session: aiohttp.ClientSession, url: str, body: dict[str, Any]) -> dict[str, Any]:
    async with session.post(url, json=body) as response:
        answer = orjson.loads(await response.read())
        if response.status != 200 or not isinstance(answer, dict):
            error = answer.get("error") if isinstance(answer, dict) else None
            said = error.get("message") if isinstance(error, dict) else "no answer of a gateway"
            raise CannotAsk(f"{url} answered {response.status}: {said}")
        return answer
