"""What models cost under their public names, for statuses. Pure."""

from collections.abc import Iterable, Mapping

from turnout_api.config import RouterConfig
from turnout_api.routing import named_models


class Prices:
    """Of all models and recipes of a cluster."""

    def __init__(self, configs: Mapping[str, RouterConfig], master: str) -> None:
        """`master`: its name; empty = there is none, and so no model has a name."""
        inputs: dict[str, list[int]] = {}
        by_place: dict[tuple[str, str], list[int]] = {}
        whole = configs.get(master)
        for name, place, price in named_models(configs, whole.names) if whole else ():
            cost = [price.input_micros_per_million_tokens] if price else []
            inputs.setdefault(name, []).extend(cost)
            by_place[place.node, place.model] = cost
        for recipe in whole.recipes if whole else ():
            inputs[recipe.public_id] = [
                c for part in recipe.components for c in by_place.get((part.node, part.model), [])
            ]
        self._inputs = inputs

    @property
    def models(self) -> frozenset[str]:
        """Names that there are."""
        return frozenset(self._inputs)

    def cheapest(self, models: Iterable[str]) -> int | None:
        """The lowest price of a million input tokens; None = none of them is priced."""
        return min((cost for model in models for cost in self._inputs.get(model, [])), default=None)
