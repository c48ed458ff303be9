"""A setting as the manifests that a person would write."""

from collections.abc import Callable
from typing import Any

import yaml

from staging.setting import IN_BEATS, USUAL, Link, Node, Setting
from turnout_api.durations import format_duration
from turnout_api.resources.settings import Settings
from turnout_api.vocabulary import Lane

WEIGHTS = "sha256:" + "0" * 64
API_VERSION = "turnout.dev/v1alpha1"


def manifests(setting: Setting, beat_s: float, backend: Callable[[Node], dict[str, Any]]) -> str:
    """YAML. `backend` says where the server of a node is: its `url` or `command`."""
    objects = [_master(setting, beat_s)]
    objects += [_slave(setting, node, backend(node)) for node in setting.nodes]
    objects += [_link(setting, link) for link in setting.links]
    return yaml.safe_dump_all(objects, sort_keys=False)


def _object(kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}


def _master(setting: Setting, beat_s: float) -> dict[str, Any]:
    named = {name: _value(name, value, beat_s) for name, value in (USUAL | dict(setting.settings)).items()}
    settings = {Settings.model_fields[name].alias: value for name, value in named.items()}
    return _object("RouterNode", "master", {"role": "Master", "settings": settings | {"syncInterval": "1s"}})


def _value(name: str, value: Any, beat_s: float) -> Any:
    return format_duration(round(value * beat_s, 3)) if name in IN_BEATS else value


def _slave(setting: Setting, node: Node, backend: dict[str, Any]) -> dict[str, Any]:
    capability = "Image" if setting.lane is Lane.IMAGE else "Text"
    models = [
        {
            "id": model.id,
            "backend": "sim",
            "capabilities": [capability],
            "contextWindow": model.window,
            "parallel": 1,
            "weightsHash": WEIGHTS,
        }
        for model in node.models
    ]
    spec = {
        "role": "Slave",
        "masterRef": {"name": "master"},
        "backends": [{"name": "sim", **backend}],
        "models": models,
    }
    if node.exclusive:
        spec["runtime"] = {"exclusive": True}
    return _object("RouterNode", node.name, spec)


def _link(setting: Setting, link: Link) -> dict[str, Any]:
    (owner, mine), (helper, theirs) = link.owner.split("/"), link.helper.split("/")
    spec = {
        "lane": setting.lane.value,
        "owner": {"node": owner, "model": mine},
        "helper": {"node": helper, "model": theirs},
        "loadIfUnloaded": link.may_load,
        "restoreAfterBorrow": link.restore,
    }
    return _object("RoutingLink", link.name, spec)
