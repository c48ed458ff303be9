"""Makes routers' configurations of frontend models and pools, and requests to them."""

from collections.abc import Mapping
from typing import Any

import pytest

from turnout_api.config import FrontendConfig, PoolConfig, PoolMemberConfig, PriceConfig, RuleConfig, TargetConfig
from turnout_api.routing import Catalog, Decision, Explanation, Facts, Place, Routing, compile_snapshot, decide, read
from turnout_api.routing.explain import explain
from turnout_api.vocabulary import Capability, Policy

CHAT = "/v1/chat/completions"


def target(name: str) -> TargetConfig:
    """`@NAME` is a pool."""
    return TargetConfig(pool=name[1:]) if name.startswith("@") else TargetConfig(model=name)


def price(input_micros: int = 0, output_micros: int = 0, request: int = 0) -> PriceConfig:
    return PriceConfig(
        input_micros_per_million_tokens=input_micros,
        output_micros_per_million_tokens=output_micros,
        micros_per_request=request,
    )


class Rules:
    """Builders, short enough for a test to say what it is about."""

    price = staticmethod(price)

    @staticmethod
    def route(name: str, *targets: str, tag: str = "", **when: Any) -> RuleConfig:
        return RuleConfig(name=name, when=when, targets=[target(t) for t in targets or ("m",)], tag=tag)

    @staticmethod
    def deny(name: str, status: int = 403, message: str = "", tag: str = "", **when: Any) -> RuleConfig:
        return RuleConfig(name=name, when=when, action="Deny", deny_status=status, deny_message=message, tag=tag)

    @staticmethod
    def jump(name: str, to: str, tag: str = "", **when: Any) -> RuleConfig:
        return RuleConfig(name=name, when=when, action="Jump", jump_to=to, tag=tag)

    @staticmethod
    def frontend(name: str, *rules: RuleConfig, defaults: tuple[str, ...] = ()) -> FrontendConfig:
        return FrontendConfig(
            name=name, model_name=name, rules=list(rules), default_targets=[target(t) for t in defaults]
        )

    @staticmethod
    def pool(name: str, *members: str, policy: Policy | None = None, **weights: int) -> PoolConfig:
        return PoolConfig(
            name=name,
            policy=policy,
            members=[PoolMemberConfig(model=m, weight=weights.get(m, 1)) for m in (*members, *weights)],
        )

    @staticmethod
    def request(model: str = "f", *, path: str = CHAT, body: Mapping[str, Any] | None = None, **given: Any) -> Facts:
        return read(path, {"model": model, **(body or {})}, **given)

    @staticmethod
    def decided(
        *frontends: FrontendConfig,
        request: Facts | None = None,
        pools: tuple[PoolConfig, ...] = (),
        prices: Mapping[str, list[PriceConfig]] | None = None,
        **live: Any,
    ) -> Decision:
        """Of a request to the first frontend model."""
        snapshot = compile_snapshot(frontends, pools, prices)
        return decide(snapshot, snapshot.by_name[frontends[0].name], request or Rules.request(), **live)

    @staticmethod
    def routing(
        *frontends: FrontendConfig,
        pools: tuple[PoolConfig, ...] = (),
        prices: Mapping[str, list[PriceConfig]] | None = None,
        serving: Mapping[str, tuple[Capability, ...]] | None = None,
        **catalog: Any,
    ) -> Routing:
        """`serving`: models and what they can do, each on a node called after it."""
        places = {
            model: (Place(f"on-{model}", model, frozenset(can or {Capability.TEXT})),)
            for model, can in (serving or {}).items()
        }
        return Routing(compile_snapshot(frontends, pools, prices), Catalog(places, **catalog))

    def explained(self, routing: Routing, request: Facts | None = None, **live: Any) -> Explanation:
        return explain(routing, request or self.request(), **live)


@pytest.fixture
def rules() -> Rules:
    return Rules()
