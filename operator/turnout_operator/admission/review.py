"""AdmissionReview → its answer. Pure."""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from turnout_api.resolve import Problem
from turnout_api.resources.refusals import shown
from turnout_operator.injection import Injected, InjectionRefused

Json = dict[str, Any]
_MAX_WARNING = 256
"""Characters of a warning that the API server passes on whole."""
MAX_WARNINGS = 12
"""More are counted: beyond 4096 characters in all it passes on none."""
_FIELDS = ("initContainers", "containers", "volumes", "terminationGracePeriodSeconds")
"""Of a pod's spec, what an injection may change."""


class NoReview(Exception):
    """What was sent is no AdmissionReview of a pod, or of one of Turnout's objects."""


def request_of(document: object, *wanted: str) -> Json:
    """The request in a review, with the first of `wanted` that is an object. Raises NoReview."""
    request = document.get("request") if isinstance(document, dict) else None
    if not isinstance(request, dict) or not request.get("uid"):
        raise NoReview("no AdmissionReview")
    if not any(isinstance(request.get(name), dict) for name in wanted or ("object",)):
        raise NoReview("no AdmissionReview with an object")
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


def refused(request: Mapping[str, Any], problems: Sequence[Problem], warnings: Sequence[str]) -> Json:
    """Not at all, and what to change where."""
    # no `details`: kubectl would show them instead of the message, and with it of who refused
    message = "; ".join(f"{said(problem)} ({problem.reason})" for problem in problems)
    status = {"code": 422, "reason": "Invalid", "message": message}
    return _answer(request, {"allowed": False, "status": status} | _warnings(warnings))


def said(problem: Problem) -> str:
    """The field, and what is the matter with it; messages of the types begin with their field already."""
    field = shown(problem.path)
    return problem.message if not field or problem.message.startswith(field) else f"{field}: {problem.message}"


def _answer(request: Mapping[str, Any], response: Json) -> Json:
    return {
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {"uid": request["uid"], **response},
    }


def _warnings(warnings: Sequence[str]) -> Json:
    told = [w if len(w) <= _MAX_WARNING else f"{w[: _MAX_WARNING - 1]}…" for w in warnings[:MAX_WARNINGS]]
    if len(warnings) > MAX_WARNINGS:
        told.append(f"and {len(warnings) - MAX_WARNINGS} more: `kubectl get turnout -o wide` tells them")
    return {"warnings": told} if told else {}


def _patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> Json:
    """`add` replaces what is there."""
    changed = [name for name in _FIELDS if before["spec"].get(name) != after["spec"].get(name)]
    if not changed:
        return {}
    operations = [{"op": "add", "path": f"/spec/{name}", "value": after["spec"][name]} for name in changed]
    return {"patchType": "JSONPatch", "patch": base64.b64encode(json.dumps(operations).encode()).decode()}
