"""What is said about the kinds that name models: frontend models, pools, recipes, guardians, route tests. Pure.

Whether something serves is the master's word; which models there are to reach follows from the objects alone.
"""

from collections.abc import Iterable, Iterator, Sequence

from turnout_api.resolve import TestOutcome, Verdict
from turnout_api.resources import FrontendModel, Guardian, ModelPool, Resource, SplitRecipe, Target
from turnout_api.resources.guardian import GuardianSpec
from turnout_operator import conditions
from turnout_operator.conditions import KEEP, READY, Fact, Unchanged, Why
from turnout_operator.picture import Picture, share, some
from turnout_operator.prices import Prices


def facts(verdict: Verdict, picture: Picture) -> Iterator[Fact | Unchanged]:
    """Whether it serves, of an object that routers were given; of a RouteTest that was run, whether it passes."""
    if verdict.kind == "RouteTest":
        outcome = picture.resolution.tests[verdict.key]
        yield conditions.ready(Why.PASSES if outcome.passed else Why.FAILS, outcome.message)
        return
    resource = picture.served(verdict.kind, verdict.name)
    if resource is not None:
        yield _ready(resource, picture)


def fields(verdict: Verdict, picture: Picture, prices: Prices) -> dict[str, object]:
    """Beside the conditions."""
    if verdict.kind == "RouteTest":
        return _tested(picture.resolution.tests.get(verdict.key))
    match picture.served(verdict.kind, verdict.name):
        case FrontendModel() as frontend:
            reachable = sorted(set(_reachable(frontend, picture)) & prices.models)
            cheapest = prices.cheapest(reachable)
            found: dict[str, object] = {"modelName": frontend.model_name, "reachableModels": len(reachable)}
            return found | {"cheapestMicrosPerMillionTokens": cheapest}
        case ModelPool() as pool:
            return {"serving": _shared(picture.serves(member.model) for member in pool.spec.members)}
        case SplitRecipe() as recipe:
            return {"serving": _shared(_components(recipe, picture))}
        case Guardian() as guardian:
            scope = guardian.spec.scope
            model = f"{scope.model.node}/{scope.model.model}" if scope.model else ""
            return {"scope": model or scope.node or "cluster"}
        case _:
            return {}


def _ready(resource: Resource, picture: Picture) -> Fact | Unchanged:
    """Whether a request for it finds a model that serves."""
    if picture.master is None:
        return Unchanged(READY)
    lacking = ""
    match resource:
        case FrontendModel() as frontend if _routes(frontend):  # one that only denies serves what it is there for
            lacking = _none_of(list(_reachable(frontend, picture)), picture)
        case ModelPool() as pool:
            lacking = _none_of([member.model for member in pool.spec.members], picture)
        case SplitRecipe() as recipe:
            parts = zip(recipe.spec.components, _components(recipe, picture), strict=True)
            lacking = some(f"{part.capability} ({part.node}/{part.model})" for part, serves in parts if not serves)
        case Guardian(spec=GuardianSpec(guardian=end)):
            found = picture.available(end.node, end.model)
            lacking = f"{end.node}/{end.model}: {found.reason}" if found is not None and not found.yes else ""
        case _:
            pass
    return conditions.ready(Why.NOTHING_SERVES, lacking) if lacking else conditions.ready(Why.READY)


def _none_of(models: Sequence[str], picture: Picture) -> str:
    """What is said when none of them serves; empty = one does."""
    if any(picture.serves(model) for model in models):
        return ""
    return some(models) or "it reaches no model"


def _components(recipe: SplitRecipe, picture: Picture) -> list[bool | None]:
    found = [picture.available(part.node, part.model) for part in recipe.spec.components]
    return [None if answer is None else answer.yes for answer in found]


def _shared(answers: Iterable[bool | None]) -> object:
    """`2/3`; kept as it is while the master was not read."""
    known = list(answers)
    return KEEP if None in known else share(bool(answer) for answer in known)


def _routes(frontend: FrontendModel) -> bool:
    return frontend.spec.defaults is not None or any(rule.targets or rule.jump_to for rule in frontend.spec.rules)


def _reachable(start: FrontendModel, picture: Picture) -> Iterator[str]:
    """Public names of its targets, through pools and jumps; each once, without recursion."""
    seen, names = {start.name}, set[str]()
    todo = [start]
    for frontend in todo:  # grows as it is walked
        defaults = frontend.spec.defaults.targets if frontend.spec.defaults else []
        for target in (*defaults, *(target for rule in frontend.spec.rules for target in rule.targets)):
            for name in _names(target, picture):
                if name not in names:
                    names.add(name)
                    yield name
        for to in (rule.jump_to for rule in frontend.spec.rules):
            found = picture.served("FrontendModel", to) if to and to not in seen else None
            if isinstance(found, FrontendModel):
                seen.add(found.name)
                todo.append(found)


def _names(target: Target, picture: Picture) -> Iterable[str]:
    if target.model:
        return (target.model,)
    pool = picture.served("ModelPool", target.pool) if target.pool else None
    return [member.model for member in pool.spec.members] if isinstance(pool, ModelPool) else ()


def _tested(outcome: TestOutcome | None) -> dict[str, object]:
    """Of a RouteTest; all empty while nothing is served."""
    if outcome is None:
        return {"result": "", "rule": "", "model": "", "message": ""}
    result = "Pass" if outcome.passed else "Fail"
    return {"result": result, "rule": outcome.rule, "model": outcome.model, "message": outcome.message}
