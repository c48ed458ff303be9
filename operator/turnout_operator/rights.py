"""What the operator may not do: said once, with what to do, and once more when it may.

Problem: a right that is missing is met by every round, every watch and every task that asks, and each would complain in words of
its own. Idea: whoever asks the API server tells one ledger what it answered; what it has complained of is `said`, and others leave it at that.

Invariants: a right is complained of once until it was used with success; of an operator that serves every namespace, once for all of them.
Watches ask from a thread of their own.
"""

import logging
import re
import threading
from dataclasses import dataclass

_REFUSED = re.compile(r'cannot (\S+) resource "([^"]+)" in API group "([^"]*)"')
_RBAC = "rbac.authorization.k8s.io"
_GIVES = "is attempting to grant RBAC permissions not currently held"
"""Of a RoleBinding: the operator gives a role that it has not itself, for which it needs `bind` on that role."""
_PATH = re.compile(
    r"/(?:api|apis/(?P<group>[^/]+))/[^/]+(?:/namespaces/(?P<namespace>[^/]+))?/(?P<plural>[^/]+)(?P<name>/[^/]+)?(?P<sub>/[^/]+)?$"
)
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Right:
    """A verb on a resource."""

    verb: str
    resource: str
    """With its subresource: `routernodes/status`."""
    group: str
    """Of the API; empty = the core's."""
    namespace: str
    """Empty = all of them, or none as with objects of the cluster."""

    def __str__(self) -> str:
        where = f"in namespace {self.namespace}" if self.namespace else "in the whole cluster"
        return f"{self.verb} {self.resource}{f' of {self.group}' if self.group else ''} {where}"


def missing(message: str, path: str) -> Right | None:
    """What right the API server missed when it refused (403) a request to that path; None = it refused for another reason."""
    asked = _PATH.search(path)
    namespace = (asked["namespace"] or "") if asked else ""
    if _GIVES in message:
        return Right("bind", "the role that it gives to masters", _RBAC, namespace)
    found = _REFUSED.search(message)
    return None if found is None else Right(found[1], found[2], found[3], namespace)


def used(method: str, path: str, status: int, *, watch: bool = False) -> set[Right]:
    """What rights a request took that was met."""
    asked = _PATH.search(path)
    if asked is None:
        return set()
    verbs = {_VERBS.get(method) or ("get" if asked["name"] else "watch" if watch else "list")}
    group, namespace = asked["group"] or "", asked["namespace"] or ""
    if status == 201:
        verbs.add("create")  # an apply makes what is not there
    found = {Right(verb, asked["plural"] + (asked["sub"] or ""), group, namespace) for verb in verbs}
    if status == 201 and asked["plural"] == "rolebindings":
        found.add(Right("bind", "the role that it gives to masters", _RBAC, namespace))
    return found


class Rights:
    """What is missing now."""

    def __init__(self, *, everywhere: bool = False) -> None:
        """`everywhere`: its rights are the same in every namespace, and one that is missing is missing in all."""
        self._everywhere = everywhere
        self._missing: set[Right] = set()
        self._lock = threading.Lock()

    def lacks(self, right: Right) -> None:
        """It was refused."""
        with self._lock:
            new = self._key(right) not in self._missing
            self._missing.add(self._key(right))
        if new:
            log.warning(
                "may not %s: what takes it waits, and all else goes on; give the operator's service account that right, as "
                "the chart's roles do (`helm upgrade` puts them back)",
                right,
            )

    def has(self, rights: set[Right]) -> None:
        """They were used."""
        if not self._missing:
            return
        with self._lock:
            given = {right for right in rights if self._key(right) in self._missing}
            self._missing -= {self._key(right) for right in given}
        for right in given:
            log.info("may %s again", right)

    def _key(self, right: Right) -> Right:
        return Right(right.verb, right.resource, right.group, "") if self._everywhere else right
