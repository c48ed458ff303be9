"""Links, guardians, nodes and decisions, as people see and change them.

    /router/v1/site/text-routing-groups        links of the text lane      GET POST, and GET PUT PATCH DELETE of /{id}
    /router/v1/site/routing-groups             those of the image lane     likewise
    /router/v1/site/guardians                                              likewise
    /router/v1/site/nodes                      what the master knows of its nodes
    /router/v1/site/decisions                  the decision log of all nodes

The paths are older than links: what they name is a link, one owner and one helper, and not a group. A link that is made without
a name is named after its ends.
"""

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from turnout_api.vocabulary import Lane
from turnout_api.wire import NodeHealth
from turnout_router.admin.documents import Document
from turnout_router.admin.editing import Editor
from turnout_router.admin.errors import answer
from turnout_router.admin.guard import SITE_PREFIX, Handler
from turnout_router.admin.kind_api import KindApi, Section
from turnout_router.admin.people import Person
from turnout_router.cluster.messages import written
from turnout_router.gateway.offload_api import decisions_asked

if TYPE_CHECKING:
    from turnout_router.router import Router

TEXT_LINKS, IMAGE_LINKS = f"{SITE_PREFIX}/text-routing-groups", f"{SITE_PREFIX}/routing-groups"
GUARDIANS, NODES, DECISIONS = f"{SITE_PREFIX}/guardians", f"{SITE_PREFIX}/nodes", f"{SITE_PREFIX}/decisions"
MAX_NAME = 63
"""Of an object that a person names; a link may well have two long ends."""
_NO_NAME = re.compile(r"[^a-z0-9]+")


class SiteApi:
    """Handlers over the master, and over whoever keeps the objects."""

    def __init__(self, router: "Router", editor: Editor) -> None:
        self._router, self._editor = router, editor

    def table(self) -> dict[str, dict[str, Handler]]:
        """Path → method → handler."""
        links = {TEXT_LINKS: Lane.TEXT, IMAGE_LINKS: Lane.IMAGE}
        kinds = {path: Section("RoutingLink", {"lane": str(lane)}, name_of_link) for path, lane in links.items()}
        kinds[GUARDIANS] = Section("Guardian")
        found: dict[str, dict[str, Handler]] = {NODES: {"GET": self._nodes}, DECISIONS: {"GET": self._decisions}}
        for path, section in kinds.items():
            found |= KindApi(self._editor, path, section).table()
        return found

    async def _nodes(self, _request: web.Request, _person: Person) -> web.Response:
        said = self._router.status()
        own = NodeHealth(
            node_id=said.node_id,
            node=self._router.node,
            url="",
            healthy=True,
            last_seen_s=0.0,
            version=said.version,
            generation=said.generation,
        )
        status = _plain(said.model_copy(update={"nodes": [own, *said.nodes]}))
        models = status["models"]
        nodes = [
            {**node, "models": [model for model in models if model["node_id"] == node["node_id"]]}
            for node in status["nodes"]
        ]
        return answer(200, {"data": nodes, "suspended_links": status["suspended_links"] or {}})

    async def _decisions(self, request: web.Request, _person: Person) -> web.Response:
        found = _plain(await decisions_asked(self._router, request.query, everywhere=True))
        return answer(200, {"data": found["rows"], "missing": found["missing"]})


def _plain(message: object) -> dict[str, Any]:
    """A message of the cluster as the JSON that nodes get."""
    found: dict[str, Any] = orjson.loads(written(message))
    return found


def name_of_link(given: Document) -> str:
    """The name that was given, else one of the ends: equal for equal ends, other for others."""
    name = given.get("name") or given.get("id")
    if isinstance(name, str):
        return name
    ends = [given.get(end) for end in ("owner", "helper")]
    parts = [str(end.get(part, "")) for end in ends if isinstance(end, dict) for part in ("node", "model")]
    made = _NO_NAME.sub("-", "-".join([*parts, str(given.get("lane") or "")]).lower()).strip("-")
    digest = sha256("\0".join(parts).encode()).hexdigest()[:8]
    return f"{made[: MAX_NAME - 9].rstrip('-')}-{digest}" if made else "link"
