"""The closed set of reasons that a verdict gives. `docs/reasons.md` says for each what to do; a test holds the two together.

A reason is what programs compare and what stands in the condition `Accepted` and in events; the message beside it is for
people and may be worded better at any time.
"""

from enum import StrEnum
from typing import Self


class Reason(StrEnum):
    """Why an object is accepted, refused or warned about."""

    meaning: str

    def __new__(cls, value: str, meaning: str) -> Self:
        """A member is its word; the sentence beside it says what the word means."""
        member = str.__new__(cls, value)
        member._value_ = value
        member.meaning = meaning
        return member

    ACCEPTED = "Accepted", "The object is valid, and routers are given it."

    # Refused: what one object can know about itself.
    INVALID = "Invalid", "The schema refuses the object: a missing, misspelt or ill-typed field, or a broken rule."
    UNKNOWN_FIELD = "UnknownField", "A condition under `when` does not exist. Losing it would make its rule match more."
    INVALID_REGEX = "InvalidRegex", "A regular expression is not one of RE2."
    DUPLICATE_ID = (
        "DuplicateID",
        "Two entries of one list have one name, such as two models of a node with one local ID.",
    )
    DUPLICATE_OBJECT = "DuplicateObject", "The manifests declare an object of this kind and name twice."
    ROLE_MISMATCH = "RoleMismatch", "The node's role and its fields do not fit, such as a Slave without masterRef."
    UNKNOWN_BACKEND = "UnknownBackend", "A model names a backend that its node does not list."
    STARTUP_MODEL_UNKNOWN = "StartupModelUnknown", "`runtime.startupModel` is not a model of the node."
    FAMILY_NOT_SUPPORTED = "FamilyNotSupported", "This version has no driver for that backend family."
    SELF_LINK = "SelfLink", "Owner and helper of a link are on one node."

    # Refused: what needs other objects, or to know where the node runs.
    MASTER_EXISTS = "MasterExists", "The namespace has a Master or Standalone already."
    MASTER_NOT_FOUND = "MasterNotFound", "`masterRef` names a RouterNode that does not exist or is not accepted."
    NOT_A_MASTER = "NotAMaster", "`masterRef` names a RouterNode whose role is not Master."
    UNREACHABLE_NODE = "UnreachableNode", "Nothing says under which URL the other routers reach this node."
    TOKEN_MISSING = "TokenMissing", "A Master or Slave in a cluster names no Secret with the cluster token."
    BACKEND_WITHOUT_URL = "BackendWithoutURL", "In a cluster only family Process is started; other backends need a url."
    NAME_CONFLICT = (
        "NameConflict",
        "Another object has that public name: models, frontend models and recipes share one.",
    )
    JUMP_LOOP = "JumpLoop", "The jumps of frontend models lead back to where they began."
    DUPLICATE_LINK = "DuplicateLink", "Another link has this lane, owner and helper."
    INELIGIBLE_LINK = "IneligibleLink", "Owner and helper may not be linked; the message says which rule forbids it."
    DUPLICATE_GUARDIAN = "DuplicateGuardian", "Another guardian has this scope."
    GUARDIAN_NOT_MULTIMODAL = "GuardianNotMultimodal", "The guardian's model does not read images."
    CAPABILITY_MISMATCH = "CapabilityMismatch", "A component's model does not have the capability it is named for."

    ROUTE_TEST_FAILS = "RouteTestFails", "The request of the test is not decided as expected."
    BREAKS_ROUTE_TEST = "BreaksRouteTest", "The change makes a RouteTest fail that is required and passed before."

    # Refused in links and guardians, warned about elsewhere.
    UNKNOWN_NODE = "UnknownNode", "No accepted RouterNode has that name."
    UNKNOWN_MODEL = "UnknownModel", "No model has that local ID on its node, or that public ID in the namespace."

    # Warnings only.
    UNKNOWN_POOL = "UnknownPool", "A target names a ModelPool that does not exist; the target is passed over."
    UNKNOWN_FRONTEND = (
        "UnknownFrontend",
        "A jump's destination does not exist: the rule is no match, and falls through.",
    )
    UNKNOWN_RULE = "UnknownRule", "A RouteTest expects a rule that its frontend model does not have."
    SHADOWED_RULES = (
        "ShadowedRules",
        "A rule without conditions stands before others, which are therefore never reached.",
    )
    UNREACHABLE_RULE = "UnreachableRule", "A rule never holds, or whenever it does, one before it holds too."
    DENY_NEVER_REACHED = (
        "DenyNeverReached",
        "A rule that denies stands after one that always decides, so it refuses nothing.",
    )
    OVERLAPPING_RULES = "OverlappingRules", "Conditions of two rules overlap in part: there the earlier rule decides."
    UNPRICED_TARGETS = (
        "UnpricedTargets",
        "A rule asks what a request costs, and models that it can reach have no price.",
    )
    NAME_SUFFIXED = "NameSuffixed", "A different model had the public ID first, so this one is served with a suffix."
    WEIGHTS_UNKNOWN = (
        "WeightsUnknown",
        "Neither end of the link says which weights it holds: they are taken for the same.",
    )
    GUARDIAN_NOT_NEEDED = "GuardianNotNeeded", "The model in the guardian's scope reads images itself."
    NO_MASTER = "NoMaster", "The namespace has no accepted Master or Standalone, so nothing serves the object."
    NOT_SERVED_YET = "NotServedYet", "This version judges the object but does not act by it."


WAITING = frozenset({Reason.UNKNOWN_NODE, Reason.UNKNOWN_MODEL, Reason.MASTER_NOT_FOUND, Reason.ROUTE_TEST_FAILS})
"""Refusals that the arrival of another object heals. Admission lets such an object in with a warning, so that the order in
which manifests are applied does not matter; until then no router is given it."""
YIELDING = frozenset({Reason.NAME_CONFLICT, Reason.DUPLICATE_LINK, Reason.DUPLICATE_GUARDIAN})
"""Refusals that the departure of another object heals. Admission lets these in with a warning too: what renames an object
(helm, kubectl with pruning) makes the new one before it deletes the old one, and would never come to an end."""
