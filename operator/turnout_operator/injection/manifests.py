"""Pod templates in manifests: where each kind has its own. Pure."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

Json = dict[str, Any]
_TEMPLATE = ("spec", "template")
TEMPLATES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("", "Pod"): (),
    ("", "PodTemplate"): ("template",),
    ("", "ReplicationController"): _TEMPLATE,
    ("apps", "Deployment"): _TEMPLATE,
    ("apps", "StatefulSet"): _TEMPLATE,
    ("apps", "DaemonSet"): _TEMPLATE,
    ("apps", "ReplicaSet"): _TEMPLATE,
    ("batch", "Job"): _TEMPLATE,
    ("batch", "CronJob"): ("spec", "jobTemplate", "spec", "template"),
}
"""(API group, kind) → path of the template."""


def with_template(manifest: Mapping[str, Any], change: Callable[[Json], Json]) -> Json:
    """The manifest with its pod template changed; a copy as it is, when it has none."""
    done: Json = deepcopy(dict(manifest))
    group = str(done.get("apiVersion") or "").rpartition("/")[0]
    path = TEMPLATES.get((group, str(done.get("kind"))))
    if path is None:
        return done
    if not path:
        return change(done)
    parent: Any = done
    for name in path[:-1]:
        parent = parent.get(name) if isinstance(parent, dict) else None
    if isinstance(parent, dict) and isinstance(parent.get(path[-1]), dict):
        parent[path[-1]] = change(parent[path[-1]])
    return done
