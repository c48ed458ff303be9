"""Frontend models at work: a request and the configuration → which rule decides, and which models are tried. Pure.

    routing = offline(resolution.configs)                     # or the master's own snapshot and catalog
    facts = read("/v1/chat/completions", {"model": "assistant", "messages": [...]}, at=now)
    explain(routing, facts).as_data()                         # the dry-run
    decide(routing.snapshot, chain, facts).outcome            # the request path

`resolve` (route tests), the router and the command line run the same code. There is no clock, no I/O, no lock, and no
regular expression is compiled while a request is decided: everything is in a `Snapshot`, which is replaced whole.

| module | what |
|---|---|
| `body`, `paths`, `facts` | what a rule may look at in a request |
| `conditions` | each condition: does it hold, and if not, why |
| `cost` | one price a request |
| `snapshot`, `compile` | configuration, made ready |
| `decide` | the first rule that holds |
| `balance`, `pools` | policies, and a chain of targets expanded |
| `catalog`, `explain` | what runs where, and the dry-run |
"""

from turnout_api.routing.catalog import Catalog, Place, Routing, named_models, offline
from turnout_api.routing.compile import CannotCompile, compile_snapshot
from turnout_api.routing.decide import Decision, Declined, decide, declined
from turnout_api.routing.explain import Explanation, explain
from turnout_api.routing.facts import Facts, UnreadableRequest, read
from turnout_api.routing.snapshot import Chain, Deny, Route, Snapshot

__all__ = [
    "CannotCompile",
    "Catalog",
    "Chain",
    "Decision",
    "Declined",
    "Deny",
    "Explanation",
    "Facts",
    "Place",
    "Route",
    "Routing",
    "Snapshot",
    "UnreadableRequest",
    "compile_snapshot",
    "decide",
    "declined",
    "explain",
    "named_models",
    "offline",
    "read",
]
