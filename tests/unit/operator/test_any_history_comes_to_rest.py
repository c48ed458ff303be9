"""Whatever is created, edited, deleted and made anew, in whatever order: each round is followed by a quiet one, and what is mended is accepted."""

import random
from copy import deepcopy
from dataclasses import replace
from typing import Any

import pytest

SPECS = {
    ("FrontendModel", "assistant"): {"defaults": {"targets": [{"pool": "fast"}]}},
    ("FrontendModel", "cheap"): {"rules": [{"name": "on", "action": "Jump", "jumpTo": "assistant"}]},
    ("ModelPool", "fast"): {"members": [{"model": "cc11"}]},
    ("SplitRecipe", "studio"): {
        "publicID": "studio",
        "components": [{"capability": "Text", "node": "gpu-a", "model": "gpu-a-ff"}],
    },
}
STEPS = 40


class History:
    """A namespace, and somebody who works in it without a plan."""

    def __init__(self, namespace: Any, specs: Any, seed: int) -> None:
        self.space, self.dice = namespace, random.Random(seed)  # noqa: S311 - a history that can be repeated
        nodes = {"master": specs.master(), "other": specs.master()} | {n: specs.slave(n) for n in ("gpu-a", "gpu-b")}
        self.good = {("RouterNode", name): spec for name, spec in nodes.items()} | SPECS
        namespace.objects.clear()

    def step(self) -> None:
        key = self.dice.choice(sorted(self.good))
        if key not in self.space.objects or self.dice.random() < 0.25:
            self.space.put(*key, deepcopy(self.good[key]))
        elif self.dice.random() < 0.4:
            self.delete(key)
        elif self.dice.random() < 0.15:
            self.space.objects[key]["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
        else:
            self.space.put(*key, self.worse(key))

    def delete(self, key: tuple[str, str]) -> None:
        """With what belongs to it, of which the garbage collector may not have got hold of all yet."""
        uid = self.space.objects.pop(key)["metadata"]["uid"]

        def left(there: Any) -> Any:
            owners = {name: one["metadata"]["ownerReferences"][0]["uid"] for name, one in there.items()}
            return {name: one for name, one in there.items() if owners[name] != uid or self.dice.random() < 0.2}

        now = self.space.observed
        self.space.observed = replace(now, children=left(now.children), secrets=left(now.secrets))

    def worse(self, key: tuple[str, str]) -> Any:
        spec = deepcopy(self.space.objects[key]["spec"])
        node = {"role": ["Slave", "Master", "Standalone"], "publicURL": ["", "http://x:8900"], "models": [[]]}
        changes = node | {"masterRef": [{"name": "other"}, {"name": "master"}]} if key[0] == "RouterNode" else {}
        name = self.dice.choice([*changes, "unheardOf", *sorted(spec)])
        spec.pop(name, None)
        if name in changes and (value := self.dice.choice(changes[name])) != "":
            spec[name] = value
        return spec | ({"unheardOf": 1} if name == "unheardOf" else {})

    def mend(self) -> None:
        for key, spec in self.good.items():
            if key in self.space.objects and "deletionTimestamp" in self.space.objects[key]["metadata"]:
                self.delete(key)
            self.space.put(*key, deepcopy(spec))
        self.delete(("RouterNode", "other"))


def rest(namespace: Any) -> None:
    namespace.round()
    again = namespace.round()
    assert again.state is None
    assert (again.secrets, again.apply, again.delete, again.statuses) == ((), (), (), ())


@pytest.mark.parametrize("seed", range(12))
def test_it_comes_to_rest(namespace: Any, specs: Any, seed: int) -> None:
    history = History(namespace, specs, seed)
    for _ in range(STEPS):
        history.step()
        if history.dice.random() < 0.7:
            rest(namespace)

    history.mend()
    rest(namespace)

    refused = {key: namespace.condition(*key)["message"] for key in namespace.objects}
    assert {key: why for key, why in refused.items() if namespace.condition(*key)["status"] != "True"} == {}
