"""A cluster of a chosen number of resources: a master, slaves, links between them, frontend models and pools."""

from typing import Any

API = "turnout.dev/v1alpha1"
Manifest = dict[str, Any]
TOKEN = "0123456789abcdef" * 2
_SLAVES_IN_100, _LINKS_IN_100, _POOLS_IN_100 = 3, 6, 5


def fleet(count: int, master_url: str, probe_target: str) -> list[Manifest]:
    """`count` resources. The frontend model `probe` has one rule, which leads to the public name `probe_target` of the slave `gpu-0`."""
    slaves, links, pools = (count * share // 100 for share in (_SLAVES_IN_100, _LINKS_IN_100, _POOLS_IN_100))
    frontends = count - 1 - slaves - links - pools
    found = [master(master_url), *(slave(number) for number in range(slaves))]
    found += [link(number, slaves) for number in range(links)]
    found += [_object("ModelPool", f"pool-{n}", _pool(n, slaves)) for n in range(pools)]
    found += [_object("FrontendModel", f"app-{n}", _rules(n, slaves, pools)) for n in range(frontends - 1)]
    return [*found, probe(probe_target)]


def master(url: str) -> Manifest:
    """The one master."""
    clients = {"secretRef": {"name": "clients"}}
    return _object("RouterNode", "master", {"role": "Master", "publicURL": url, "clients": clients, **_TOKEN_REF})


def slave(number: int, url: str = "", backend: str = "http://127.0.0.1:9") -> Manifest:
    """With two models, of which `m-NUMBER-0` and `m-NUMBER-1` are the public names."""
    models = [
        {"id": f"m-{number}-{n}", "backend": "b", "contextWindow": 8192, "weightsHash": f"sha256:{n:064x}"}
        for n in (0, 1)
    ]
    spec = {
        "role": "Slave",
        "masterRef": {"name": "master"},
        "publicURL": url or f"http://127.0.0.1:{10000 + number}",
        "backends": [{"name": "b", "family": "OpenAI", "url": backend}],
        "models": models,
    }
    return _object("RouterNode", f"gpu-{number}", spec | _TOKEN_REF)


def link(number: int, slaves: int) -> Manifest:
    """Of one slave to another, around."""
    owner, hop = number % slaves, 1 + (number // slaves) % (slaves - 1)
    ends = [{"node": f"gpu-{n % slaves}", "model": f"m-{n % slaves}-0"} for n in (owner, owner + hop)]
    return _object("RoutingLink", f"link-{number}", {"lane": "Text", "owner": ends[0], "helper": ends[1]})


def probe(target: str) -> Manifest:
    """What a client asks for while rules change."""
    rule = {"name": "only", "targets": [{"model": target}]}
    return _object("FrontendModel", "probe", {"rules": [rule]})


def _pool(number: int, slaves: int) -> dict[str, Any]:
    return {
        "policy": "LeastLoaded",
        "members": [{"model": f"m-{(number + n) % slaves}-1"} for n in range(min(4, slaves))],
    }


def _rules(number: int, slaves: int, pools: int) -> dict[str, Any]:
    long = {"name": "long", "when": {"minInputTokens": 4000}, "targets": [{"pool": f"pool-{number % pools}"}]}
    return {"rules": [long], "defaults": {"targets": [{"model": f"m-{number % slaves}-0"}]}}


_TOKEN_REF = {"tokenSecretRef": {"name": "token", "key": "token"}}


def _object(kind: str, name: str, spec: dict[str, Any]) -> Manifest:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name}, "spec": spec}
