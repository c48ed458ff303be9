"""Resources → one configuration per router, and a verdict per resource. Pure: no clock, no I/O.

    declared = [declare(manifest) for manifest in manifests]          # in the order of creation
    resolution = resolve(declared, placement=placement, generation=n,
                         last_accepted=before.last_accepted, ledger=before.ledger)
    resolution.configs["gpu-a"]                                       # RouterConfig of that node
    resolution.verdicts                                               # one for each declared object, in that order
    dump_accepted(resolution.last_accepted), resolution.ledger        # keep both for the next time

One call takes the objects of one namespace (`by_namespace` splits): a namespace is a cluster. `placement` says what only
the caller knows about a node: addresses and files.

**Last good wins.** A declared object that is not acceptable keeps what was accepted of it last. One that was acceptable
and is no longer, because others changed, is not served. A deleted object is one that is not given any more.

Same input, same output; the order of objects matters only where two exclude each other, and there the later one loses,
or, once one of them is served, the other.
"""

from turnout_api.resolve.core import by_namespace, resolve
from turnout_api.resolve.declare import declare
from turnout_api.resolve.interface import (
    Declared,
    Key,
    NodePlacement,
    PlacedAnywhere,
    Placement,
    Problem,
    Resolution,
    TestOutcome,
    Verdict,
    Where,
)
from turnout_api.resolve.keep import dump_accepted, load_accepted
from turnout_api.resolve.linkable import Candidate, candidates
from turnout_api.resolve.links import needed_acknowledgement, pair_problems, weights_of
from turnout_api.resolve.reasons import WAITING, YIELDING, Reason
from turnout_api.resolve.standing import Standing, Trial

__all__ = [
    "WAITING",
    "YIELDING",
    "Candidate",
    "Declared",
    "Key",
    "NodePlacement",
    "PlacedAnywhere",
    "Placement",
    "Problem",
    "Reason",
    "Resolution",
    "Standing",
    "TestOutcome",
    "Trial",
    "Verdict",
    "Where",
    "by_namespace",
    "candidates",
    "declare",
    "dump_accepted",
    "load_accepted",
    "needed_acknowledgement",
    "pair_problems",
    "resolve",
    "weights_of",
]
