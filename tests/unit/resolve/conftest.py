"""Makes manifests and resolves them in a namespace of a master and slaves."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from turnout_api.resolve import NodePlacement, PlacedAnywhere, Resolution, Where, declare, resolve
from turnout_api.resources import RouterNode

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Placed:
    """Every node at `http://NAME:8900`, but for those that nobody can reach."""

    where: Where = Where.LOCAL
    unreachable: frozenset[str] = frozenset()

    def place(self, node: RouterNode) -> NodePlacement:
        url = "" if node.name in self.unreachable else f"http://{node.name}:8900"
        return NodePlacement(
            host="127.0.0.1",
            port=8900,
            url=url,
            slave_urls=(url,) if url else (),
            store_dir=f"/state/{node.name}",
            token_file="/state/token",
            gateway_key_file="/state/gateway-key",
            clients_file="/state/clients.yaml",
            admins_file="/state/users.yaml",
        )


class Make:
    """Manifests with what a test does not care about filled in."""

    Placed = Placed
    Where = Where

    @staticmethod
    def object(kind: str, name: str, spec: Mapping[str, Any], **metadata: Any) -> Manifest:
        return {
            "apiVersion": "turnout.dev/v1alpha1",
            "kind": kind,
            "metadata": {"name": name} | metadata,
            "spec": dict(spec),
        }

    def node(self, name: str, *models: Mapping[str, Any], **spec: Any) -> Manifest:
        """A Slave of `master`; models without a backend get the one that there is."""
        given = {"role": "Slave"} | spec
        if given["role"] == "Slave":
            given.setdefault("masterRef", {"name": "master"})
        if models:
            given.setdefault("backends", [{"name": "llama", "family": "LlamaCpp", "url": "http://127.0.0.1:8081"}])
            given["models"] = [{"backend": "llama"} | dict(model) for model in models]
        return self.object("RouterNode", name, given)

    def master(self, *models: Mapping[str, Any], **spec: Any) -> Manifest:
        return self.node("master", *models, **({"role": "Master"} | spec))

    def frontend(self, name: str, *rules: Mapping[str, Any], **spec: Any) -> Manifest:
        given = dict(spec) if rules or spec else {"defaults": {"targets": [{"model": "any"}]}}
        if rules:
            given["rules"] = [{"name": f"rule-{i}"} | dict(rule) for i, rule in enumerate(rules)]
        return self.object("FrontendModel", name, given)

    def jump(self, name: str, *destinations: str) -> Manifest:
        """A frontend model that jumps to each destination in turn."""
        rules = [{"when": {"stream": True}, "action": "Jump", "jumpTo": to} for to in destinations]
        return self.frontend(name, *rules, defaults={"targets": [{"model": "any"}]})

    def link(self, name: str, owner: str, helper: str, **spec: Any) -> Manifest:
        """Between `NODE/MODEL` and `NODE/MODEL`."""
        ends = {
            side: dict(zip(("node", "model"), end.split("/"), strict=True))
            for side, end in (("owner", owner), ("helper", helper))
        }
        return self.object("RoutingLink", name, {"lane": "Text"} | ends | spec)

    def guardian(self, name: str, scope: Mapping[str, Any], node: str, model: str) -> Manifest:
        return self.object("Guardian", name, {"scope": dict(scope), "guardian": {"node": node, "model": model}})

    def pool(self, name: str, *members: str) -> Manifest:
        return self.object("ModelPool", name, {"members": [{"model": member} for member in members]})

    def recipe(self, name: str, public_id: str, *components: Mapping[str, Any]) -> Manifest:
        return self.object("SplitRecipe", name, {"publicID": public_id, "components": [dict(c) for c in components]})

    @staticmethod
    def resolved(*manifests: Manifest, before: Resolution | None = None, placement: Any = None) -> Resolution:
        return resolve(
            [declare(manifest) for manifest in manifests],
            placement=placement or Placed(),
            generation=7,
            last_accepted=before.last_accepted if before else None,
            ledger=before.ledger if before else None,
        )

    def verdict(self, *manifests: Manifest, before: Resolution | None = None, placement: Any = None) -> Any:
        """Of the last manifest."""
        return self.resolved(*manifests, before=before, placement=placement).verdicts[-1]

    anywhere = PlacedAnywhere()


TEXT = {"contextWindow": 8192}


@pytest.fixture
def make() -> Make:
    return Make()
