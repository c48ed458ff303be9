"""Pod templates in manifests: where each kind has its own. Pure.

Model servers are also run by kinds of others (Rollout, LeaderWorkerSet), some with two templates. In a kind that is not known here, what is
labelled with a node and has containers is a template, wherever it stands.
"""

from collections.abc import Callable, Mapping
from copy import deepcopy
from typing import Any

from turnout_operator.names import NODE_LABEL

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
    """The manifest with its pod templates changed; a copy as it is, when it has none."""
    done: Json = deepcopy(dict(manifest))
    group = str(done.get("apiVersion") or "").rpartition("/")[0]
    path = TEMPLATES.get((group, str(done.get("kind"))))
    if path is None:
        return {name: _changed(value, change) for name, value in done.items()}
    if not path:
        return change(done)
    parent: Any = done
    for name in path[:-1]:
        parent = parent.get(name) if isinstance(parent, dict) else None
    if isinstance(parent, dict) and isinstance(parent.get(path[-1]), dict):
        parent[path[-1]] = change(parent[path[-1]])
    return done


def _changed(value: object, change: Callable[[Json], Json]) -> object:
    match value:
        case dict():
            if _is_labelled(value):
                return change(value)
            return {name: _changed(part, change) for name, part in value.items()}
        case list():
            return [_changed(part, change) for part in value]
        case _:
            return value


def _is_labelled(found: Json) -> bool:
    match found:
        case {"metadata": {"labels": {**labels}}, "spec": {"containers": [*_]}}:
            return NODE_LABEL in labels
        case _:
            return False
