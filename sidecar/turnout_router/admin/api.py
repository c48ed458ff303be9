"""Everything under `/login`, `/logout`, `/admin` and `/router/v1/site` of one router, put together."""

from typing import TYPE_CHECKING

from aiohttp import web

from turnout_router.admin.custom_resources import CustomResources
from turnout_router.admin.dry_run_api import DryRunApi
from turnout_router.admin.editing import Editor
from turnout_router.admin.guard import Guard
from turnout_router.admin.login_api import LoginApi
from turnout_router.admin.objects import KeptElsewhere, Objects, OnlyServed
from turnout_router.admin.people import People
from turnout_router.admin.routing_api import RoutingApi
from turnout_router.admin.sessions import Sessions
from turnout_router.admin.site_api import SiteApi
from turnout_router.admin.usage_api import UsageApi

if TYPE_CHECKING:
    from turnout_router.router import Router


class AdminApi:
    """The paths for people."""

    def __init__(self, router: "Router", people: People) -> None:
        self.people = people
        self._router = router
        self._guard = Guard(people, Sessions(), router.clock)
        self._login = LoginApi(self._guard, router.clock, lambda outcome: router.metrics.logins.labels(outcome).inc())

    def routes(self) -> list[web.RouteDef]:
        """To be added before those of clients, which take every path."""
        router, editor = self._router, Editor(self._objects)
        table = {
            **self._login.table(),
            **RoutingApi(editor).table(),
            **SiteApi(router, editor).table(),
            **DryRunApi(router).table(),
            **UsageApi(router.store).table(),
        }
        return [*self._login.routes(), *self._guard.routes(table)]

    def _objects(self) -> Objects:
        config = self._router.config
        keeper = config.admin
        if keeper.objects_url:
            return KeptElsewhere(self._router.client, keeper.objects_url, keeper.objects_token_file)
        if keeper.namespace:
            return CustomResources(lambda: self._router.config)
        return OnlyServed(config)

    async def stop(self) -> None:
        """End what runs for people."""
        await self._login.stop()
