"""`GET /admin/usage`: what was used, by whom, of what; JSON or CSV."""

import asyncio
import time

from aiohttp import web

from turnout_router.admin import usage
from turnout_router.admin.errors import BadInput, answer
from turnout_router.admin.guard import PREFIX, Handler
from turnout_router.admin.people import Person
from turnout_router.store.database import Store

CSV = "text/csv"


class UsageApi:
    """Reads the records of requests."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def table(self) -> dict[str, dict[str, Handler]]:
        """Path → method → handler."""
        return {f"{PREFIX}/usage": {"GET": self._usage}}

    async def _usage(self, request: web.Request, _person: Person) -> web.Response:
        try:
            question = usage.question_of(request.query.items(), time.time())
        except usage.NoSuchQuestion as error:
            raise BadInput(str(error)) from None
        wanted = request.query.get("format") or ("csv" if CSV in request.headers.get("Accept", "") else "json")
        if wanted not in {"csv", "json"}:
            raise BadInput("format is json or csv", field="format")
        rows = await asyncio.to_thread(self._store.query, *usage.select(question))
        if wanted == "json":
            return answer(200, usage.answer_of(question, rows))
        headers = {"Cache-Control": "no-store", "Content-Disposition": 'attachment; filename="usage.csv"'}
        return web.Response(text=usage.csv_of(question, rows), content_type=CSV, charset="utf-8", headers=headers)
