"""Objects as people send and get them here ↔ as manifests have them. Pure.

Here names are in snake case, as the texts have them, a policy is `cache-affinity`, an action `route`, and a target names a
`provider_model_id` or a `model_pool_id`. A manifest says `cacheAffinity…`-like camel case, `CacheAffinity`, `Route`, `model`
and `pool`. The types of the resources are the one list of fields for both.

Invariants: what is read here is judged by the types before anybody is asked to keep it; a field that nobody knows is
refused, never lost; null is the same as left out; what was sent out can be sent back.
"""

import re
from collections.abc import Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import ValidationError

from turnout_api.objects import StoredObject, Writable
from turnout_api.resources import API_VERSION, KINDS, FrontendModel
from turnout_api.resources.common import Resource
from turnout_api.resources.frontendmodel import Action, FrontendRule, Target
from turnout_api.resources.modelpool import Member
from turnout_api.resources.refusals import Path, nearest, refusals, shown
from turnout_api.resources.rules import Part
from turnout_api.resources.when import When
from turnout_api.vocabulary import Policy
from turnout_router.admin.errors import BadInput

Document = dict[str, Any]
READ_ONLY = frozenset({
    "id", "version", "changed_by", "changed_at", "accepted", "problems", "warnings", "frontend_model", "position",
})  # fmt: skip
"""Sent out, and let pass where they are sent back."""
DEFAULTS = "defaults"
_OTHER_NAMES: Mapping[type[Part], Mapping[str, str]] = {
    Target: {"model": "provider_model_id", "pool": "model_pool_id"},
    Member: {"model": "provider_model_id"},
}
_LISTED: Mapping[str, type[Part]] = {"targets": Target, "members": Member}
"""What the parts are that have other names."""
_LEFT_OUT: Mapping[Writable, Document] = {
    "FrontendModel": {"model_name": None, "rules": [], "defaults": None},
    "ModelPool": {"policy": None, "members": []},
    "RoutingLink": {"load_if_unloaded": True, "restore_after_borrow": True, "acknowledge_different_weights": None},
    "Guardian": {},
}
"""What a field is that nobody gave."""
_GONE = (
    "policy no longer exists on {what}: a rule's targets are an ordered failover chain. To balance, make a pool with that "
    "policy (POST /admin/model-pools) and point the rule at it (a target with model_pool_id)"
)
_CAMEL = re.compile(r"\b[a-z]+(?:[A-Z][a-z]*)+\b")


def spec_of(kind: Writable, name: str, given: Document) -> dict[str, Any]:
    """The spec of a manifest, of a whole object as people send it. Raises BadInput."""
    fields = {key: value for key, value in given.items() if key not in READ_ONLY | {"name"}}
    if kind == "FrontendModel":
        _refuse_policy(fields, "frontend models")
        rules = fields.get("rules")
        if isinstance(rules, list):
            fields["rules"] = [_rule_fields(rule) if isinstance(rule, dict) else rule for rule in rules]
        if rules is None or rules == []:
            fields.pop("rules", None)  # as it is shown where there is none
        if fields.get("model_name") == name:
            del fields["model_name"]  # likewise
    spec: dict[str, Any] = to_yaml(fields, _spec_type(kind), "")
    check(kind, name, spec)
    return spec


def rule_of(given: Document) -> dict[str, Any]:
    """A rule of a manifest. Its parts are judged with the whole. Raises BadInput."""
    return dict(to_yaml(_rule_fields(given), FrontendRule, ""))


def target_of(given: Document) -> dict[str, Any]:
    """A target of a manifest. Raises BadInput."""
    fields = {key: value for key, value in given.items() if key not in READ_ONLY and value is not None}
    if len(fields.keys() & {"provider_model_id", "model_pool_id"}) != 1:
        raise BadInput("a target is either a provider_model_id or a model_pool_id, never both and never neither")
    return dict(to_yaml(fields, Target, ""))


def shown_object(stored: StoredObject) -> Document:
    """A whole object as people get it."""
    given: Document = from_yaml(stored.spec, _spec_type(stored.kind))
    body: Document = {"id": stored.name, "name": stored.name} | _LEFT_OUT[stored.kind] | given
    if stored.kind == "FrontendModel":
        body["model_name"] = stored.spec.get("modelName") or stored.name
        body["rules"] = [shown_rule(stored, index) for index in range(len(rules_in(stored.spec)))]
    return body | {
        "version": stored.version,
        "changed_by": stored.changed_by or None,
        "changed_at": stored.changed_at,
        "accepted": stored.accepted,
        "problems": stored.problems,
        "warnings": stored.warnings,
    }


def shown_rule(stored: StoredObject, index: int) -> Document:
    """A rule as people get it: every field that a rule has."""
    rule: Document = from_yaml(rules_in(stored.spec)[index], FrontendRule)
    empty: Document = {"name": None, "action": "route", "when": {}, "targets": []}
    empty |= {"deny_status": None, "deny_message": None, "jump_to": None, "tag": None}
    where = {"id": f"{stored.name}:{rule.get('name')}", "frontend_model": stored.name, "position": index}
    return where | empty | rule


def shown_target(target: Any) -> Any:  # noqa: ANN401 - any JSON value
    """A target as people get it."""
    return from_yaml(target, Target)


def rules_in(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rules of a spec as they are written, those that can be read at all."""
    rules = spec.get("rules")
    return [rule for rule in rules if isinstance(rule, dict)] if isinstance(rules, list) else []


def check(kind: Writable, name: str, spec: Mapping[str, Any]) -> None:
    """Judge a spec as the manifest of that name. Raises BadInput that says everything that is wrong."""
    known: type[Resource] = KINDS[kind]
    manifest = {"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec}
    try:
        resource = known.parse(manifest)
    except ValidationError as error:
        found = [_in_our_names(refusal.message, refusal.path) for refusal in refusals(known, error)]
        raise BadInput("; ".join(found), problems=found) from None
    if isinstance(resource, FrontendModel):
        _refuse_unknown_conditions(resource)


def to_yaml(value: Any, annotation: Any, at: str) -> Any:  # noqa: ANN401 - any JSON value, and what pydantic calls an annotation
    """The value in the names of manifests. Raises BadInput for a field that nobody knows."""
    part = _part_of(annotation)
    if isinstance(value, list):
        return [to_yaml(inner, _inner(annotation), f"{at}[{index}]") for index, inner in enumerate(value)]
    if isinstance(value, dict) and part is not None:
        names = {ours: (yaml, kind) for ours, yaml, kind in _fields(part)}
        found: dict[str, Any] = {}
        for key, inner in value.items():
            path = f"{at}.{key}" if at else str(key)
            if key not in names:
                near = nearest(str(key), names)
                raise BadInput(f"{path}: no such field{f'; did you mean {near}?' if near else ''}", field=path)
            yaml, kind = names[key]
            if inner is not None:
                found[yaml] = to_yaml(inner, kind, path)
        return found
    if isinstance(value, dict):
        kind = _inner(annotation)
        return {key: to_yaml(inner, kind, f"{at}.{key}") for key, inner in value.items() if inner is not None}
    return _pascal(value, annotation)


def from_yaml(value: Any, annotation: Any) -> Any:  # noqa: ANN401 - as `to_yaml`
    """The value in the names of the texts; what no type knows stays as it is."""
    part = _part_of(annotation)
    if isinstance(value, list):
        return [from_yaml(inner, _inner(annotation)) for inner in value]
    if isinstance(value, dict) and part is not None:
        names = {yaml: (ours, kind) for ours, yaml, kind in _fields(part)}
        return {names.get(k, (k, None))[0]: from_yaml(v, names.get(k, (k, None))[1]) for k, v in value.items()}
    if isinstance(value, dict):
        return {key: from_yaml(inner, _inner(annotation)) for key, inner in value.items()}
    kind = next((kind for kind in (Action, Policy) if kind in _leaves(annotation)), None)
    return _kebab(value) if kind and isinstance(value, str) else value


def _rule_fields(given: Document) -> Document:
    """The fields of a rule, with conditions that stand beside the others where they belong: under `when`."""
    fields = {key: value for key, value in given.items() if key not in READ_ONLY}
    for name, none in (("targets", []), ("when", {})):
        if fields.get(name) is None or fields[name] == none:
            fields.pop(name, None)  # as it is shown where there is none
    if fields.get("action") == _kebab(Action.ROUTE):
        del fields["action"]  # likewise
    _refuse_policy(fields, "rules")
    beside = {ours for ours, _, _ in _fields(When)} & fields.keys()
    when = fields.get("when")
    if not beside or not isinstance(when, dict | None):
        return fields
    if twice := sorted(beside & (when or {}).keys()):
        raise BadInput(f"{twice[0]} stands both under when and beside it", field=twice[0])
    conditions = {key: fields.pop(key) for key in sorted(beside)}
    return fields | {"when": (when or {}) | conditions}


def _refuse_policy(fields: Document, what: str) -> None:
    if "policy" in fields:
        raise BadInput(_GONE.format(what=what), field="policy")


def _refuse_unknown_conditions(frontend: FrontendModel) -> None:
    for rule in frontend.spec.rules:
        if rule.when.unknown_paths:
            raise BadInput(f"rule {rule.name}: no condition is called {rule.when.unknown_paths[0]}")


def _spec_type(kind: Writable) -> type[Part]:
    part = _part_of(KINDS[kind].model_fields["spec"].annotation)
    assert part is not None  # noqa: S101 - every resource has a spec
    return part


def _fields(part: type[Part]) -> Iterator[tuple[str, str, Any]]:
    """Our name, the manifest's, and the type of each field."""
    other = _OTHER_NAMES.get(part, {})
    for name, info in part.model_fields.items():
        yield other.get(name, name.rstrip("_")), info.alias or name, info.annotation


def _part_of(annotation: Any) -> type[Part] | None:  # noqa: ANN401 - of a type nothing more is known
    return next((leaf for leaf in _leaves(annotation) if isinstance(leaf, type) and issubclass(leaf, Part)), None)


def _leaves(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - of a type nothing more is known
    """The alternatives of a union, without what only annotates; a list or dict is one."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from _leaves(get_args(annotation)[0])
    elif origin in (Union, UnionType):
        for inner in get_args(annotation):
            yield from _leaves(inner)
    else:
        yield annotation


def _inner(annotation: Any) -> Any:  # noqa: ANN401 - of a type nothing more is known
    """The type of what a list or a map holds."""
    for leaf in _leaves(annotation):
        if get_origin(leaf) in (list, dict):
            return get_args(leaf)[-1]
    return None


def _pascal(value: Any, annotation: Any) -> Any:  # noqa: ANN401 - of a type nothing more is known
    """`cache-affinity` → `CacheAffinity`, where a word of ours is meant; `CacheAffinity` is taken too."""
    for kind in (Action, Policy):
        if kind in _leaves(annotation) and isinstance(value, str):
            known = {str(word).lower(): str(word) for word in kind}
            found = known.get(value.replace("-", "").replace("_", "").lower())
            if found is None:
                raise BadInput(f"{value[:64]!r} is none of {', '.join(map(_kebab, known.values()))}")
            return found
    return value


def _kebab(word: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "-", word).lower()


def _in_our_names(message: str, path: Path) -> str:
    """What the types say, with our names in it."""
    said = message.removeprefix(f"{shown(path)}: ")
    steps = tuple(_our_step(step, path[:index]) for index, step in enumerate(path))
    where = shown(steps).removeprefix("spec").removeprefix(".")
    said = _CAMEL.sub(lambda word: _snake(word.group()), said)
    return f"{where}: {said}" if where else said


def _our_step(step: str | int, before: Path) -> str | int:
    """`targets[0].model` is `targets[0].provider_model_id` here, and so on."""
    if not isinstance(step, str):
        return step
    part = _LISTED.get(next((name for name in reversed(before) if isinstance(name, str)), ""))
    return _OTHER_NAMES[part].get(step, step) if part else _snake(step)


def _snake(word: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", word).lower()
