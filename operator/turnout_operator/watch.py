"""kopf as a watcher: it says that something changed, and nothing else. The only module that imports it.

kopf's change handlers would keep their own progress in annotations and finalizers. Rounds need neither, so there are
event handlers only, which never write; the operator's own writes of statuses do not wake it.
"""

import asyncio
from collections.abc import Callable, Collection

import kopf

from turnout_api.resources import GROUP, KINDS, VERSION
from turnout_operator.api import SERVICE_ACCOUNT
from turnout_operator.names import FIELD_MANAGER, MASTER_LABEL, NODE_LABEL
from turnout_operator.routers import routers_of

_Seen = dict[tuple[str, str, str], tuple[object, ...]]


async def watch(namespaces: Collection[str], on_change: Callable[[str], None], *, ready: asyncio.Event) -> None:
    """Watch until SIGTERM or Ctrl-C. `on_change` gets the namespace of an object that came, changed or went."""
    await kopf.operator(
        registry=_registry(on_change),
        settings=_settings(),
        namespaces=namespaces,
        # kopf's own has the user's name in it, and the user of an image has none; the type is a str that kopf keeps to itself
        identity=FIELD_MANAGER,  # type: ignore[arg-type]
        standalone=True,  # peering is no leader election; the state's resourceVersion keeps two operators apart
        ready_flag=ready,
    )


def _registry(on_change: Callable[[str], None]) -> kopf.OperatorRegistry:
    """An explicit one: kopf's default is global, and logs in with whatever client it finds."""
    registry = kopf.OperatorRegistry()
    seen: _Seen = {}

    def changed(event: kopf.RawEvent, **_: object) -> None:
        kind, namespace, news = _facts(event)
        if seen.get(kind) != news:
            seen[kind] = news
            on_change(namespace)
        if event["type"] == "DELETED":
            seen.pop(kind, None)

    for kind in KINDS.values():
        kopf.on.event(GROUP, VERSION, kind.plural, registry=registry, id="changed")(changed)
    kopf.on.event("", "v1", "pods", registry=registry, id="changed", when=_of_a_node)(changed)
    kopf.on.login(registry=registry, id="login")(_login)
    return registry


def _of_a_node(labels: kopf.Labels, **_: object) -> bool:
    return NODE_LABEL in labels or MASTER_LABEL in labels


def _facts(event: kopf.RawEvent) -> tuple[tuple[str, str, str], str, tuple[object, ...]]:
    """Which object, its namespace, and what a round would see differently. `generation` grows with the spec only."""
    body = event["object"]
    metadata = body["metadata"]
    namespace = metadata["namespace"]
    own = [item for item in (metadata.get("annotations") or {}).items() if item[0].startswith(f"{GROUP}/")]
    gone = (metadata.get("deletionTimestamp"), event["type"] == "DELETED")
    # the status of a pod is news, that of Turnout's kinds is the operator's own
    pod = tuple(routers_of([body]).items()) if body["kind"] == "Pod" else ()
    news = (metadata["uid"], metadata.get("generation"), *gone, *sorted(own), *pod)
    return (body["kind"], namespace, metadata["name"]), namespace, news


def _login(settings: kopf.OperatorSettings, **_: object) -> kopf.ConnectionInfo | None:
    """The same order as `Api.connect`."""
    if (SERVICE_ACCOUNT / "token").exists():
        return kopf.login_with_service_account(settings=settings)
    return kopf.login_with_kubeconfig(settings=settings)


def _settings() -> kopf.OperatorSettings:
    settings = kopf.OperatorSettings()
    settings.scanning.disabled = True  # listing namespaces and CRDs needs cluster-wide rights
    settings.posting.enabled = False  # no Events of kopf's own
    settings.watching.server_timeout = 600  # a watch is renewed every ten minutes, so that a dead one is never for long
    settings.watching.client_timeout = 660
    settings.watching.connect_timeout = 10
    settings.networking.request_timeout = 30
    # a task an object: handlers are short, and a list of thousands must not make as many
    settings.queueing.worker_limit = 32
    # not used by event handlers; named so that nothing of kopf's would ever stand in an object
    settings.persistence.finalizer = f"{GROUP}/operator"
    settings.persistence.progress_storage = kopf.AnnotationsProgressStorage(prefix=GROUP)
    settings.persistence.diffbase_storage = kopf.AnnotationsDiffBaseStorage(prefix=GROUP)
    return settings
