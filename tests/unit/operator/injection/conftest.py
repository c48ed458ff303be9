"""Pods labelled with a node."""

from typing import Any

import pytest


@pytest.fixture(scope="session")
def pod() -> Any:
    """`pod(**spec)`: a template with one container `llama`, labelled gpu-a; `pod.labelled(NAME)` with another node."""

    class Pod:
        def __call__(self, *, node: str = "gpu-a", **spec: Any) -> dict[str, Any]:
            containers = [{"name": "llama", "image": "llama:1", "ports": [{"containerPort": 8081}]}]
            labels = {"app": "llama", "turnout.dev/node": node}
            return {"metadata": {"labels": labels}, "spec": {"containers": containers} | spec}

        def labelled(self, node: str) -> dict[str, Any]:
            return self(node=node)

    return Pod()
