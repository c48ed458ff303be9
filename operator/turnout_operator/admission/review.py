"""AdmissionReview → its answer. Pure."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turnout_operator.injection import Injected, InjectionRefused

Json = dict[str, Any]
_MAX_WARNING = 256
"""Characters of a warning that the API server passes on whole."""
_FIELDS = ("initContainers", "containers", "volumes", "terminationGracePeriodSeconds")
"""Of a pod's spec, what an injection may change."""


class NoReview(Exception):
    """What was sent is no AdmissionReview of a pod."""


def request_of(document: object) -> Json:
    """The request in a review. Raises NoReview."""
    request = document.get("request") if isinstance(document, dict) else None
    if not isinstance(request, dict) or not isinstance(request.get("object"), dict) or not request.get("uid"):
        raise NoReview("no AdmissionReview with the object of a pod")
    return request


def admitted(request: Mapping[str, Any], inject: Callable[[Mapping[str, Any]], Injected]) -> Json:
    """With a patch that puts the sidecar in, or refused with what to change."""
    try:
        done = inject(request["object"])
    except InjectionRefused as refused:
        return _answer(
            request, {"allowed": False, "status": {"code": 422, "reason": "Invalid", "message": str(refused)}}
        )
    return _answer(request, {"allowed": True} | _warnings(done.warnings) | _patch(request["object"], done.template))


def passed(request: Mapping[str, Any], *warnings: str) -> Json:
    """As it is."""
    return _answer(request, {"allowed": True} | _warnings(warnings))


def _answer(request: Mapping[str, Any], response: Json) -> Json:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], **response},
    }


def _warnings(warnings: Sequence[str]) -> Json:
    return {"warnings": [warning[:_MAX_WARNING] for warning in warnings]} if warnings else {}


def _patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """`add` replaces what is there."""
    changed = [name for name in _FIELDS if before["spec"].get(name) != after["spec"].get(name)]
    if not changed:
        return {}
    operations = [{"op": "add", "path": f"/spec/{name}", "value": after["spec"][name]} for name in changed]
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}
