"""The chart in one namespace, its operator serving another, and rights that a test takes away and gives back while it runs.

All that is there serves one module: an operator, a master with a store and people, two slaves. What a test makes, it removes.
There are two such stages, one after the other: a release that watches that namespace, and one with `clusterWide`.
"""

import base64
import itertools
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

ACCOUNT = "turnout"
EVERYWHERE = "everywhere"
"""The stage of a release with `clusterWide`; the other is called `watched`."""
CORE = {"services", "serviceaccounts", "persistentvolumeclaims", "secrets", "pods"}
GROUPS = {
    "deployments": "apps",
    "poddisruptionbudgets": "policy",
    "roles": "rbac.authorization.k8s.io",
    "clusterroles": "rbac.authorization.k8s.io",
    "rolebindings": "rbac.authorization.k8s.io",
    "leases": "coordination.k8s.io",
    "events": "events.k8s.io",
    "mutatingwebhookconfigurations": "admissionregistration.k8s.io",
    "validatingwebhookconfigurations": "admissionregistration.k8s.io",
}
CHILDREN = {
    "services": "Service",
    "serviceaccounts": "ServiceAccount",
    "persistentvolumeclaims": "PersistentVolumeClaim",
    "deployments": "Deployment",
    "poddisruptionbudgets": "PodDisruptionBudget",
    "rolebindings": "RoleBinding",
}
VERSIONS = {"turnout.dev": "v1alpha1"}


@dataclass(frozen=True)
class Taken:
    """A right: the role in which it stands, the verb, the resource."""

    role: str
    verb: str
    resource: str

    @property
    def group(self) -> str:
        plural = self.resource.partition("/")[0]
        return "" if plural in CORE else GROUPS.get(plural, "turnout.dev")

    def __str__(self) -> str:
        return f"{self.role}: {self.verb} {self.resource}"


class Stage:
    """Two namespaces: that of the release, and that which is served."""

    def __init__(self, cluster: Any, until: Any, system: str, served: str, *, everywhere: bool) -> None:
        self.cluster, self.until, self.system, self.served = cluster, until, system, served
        self.everywhere = everywhere
        """The release serves all namespaces."""
        self.admin_role = f"turnout-{system}-admin" if everywhere else "turnout-admin"
        self.operator: Any = None
        self.start: Callable[..., Any]
        self._names = itertools.count()
        self._undo: list[Callable[[], Any]] = []
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        self._roles = {
            "leader": f"{rbac}/namespaces/{system}/roles/turnout-leader",
            "webhooks": f"{rbac}/clusterroles/turnout-{system}",
        }
        if everywhere:
            self._roles["served"] = f"{rbac}/clusterroles/turnout-{system}-namespaces"
        else:
            self._roles["served"] = f"{rbac}/namespaces/{served}/roles/turnout"
            self._roles["certificates"] = f"{rbac}/namespaces/{system}/roles/turnout-webhook"

    # what is there

    def path(self, resource: str, name: str = "", namespace: str | None = None) -> str:
        group = Taken("", "", resource).group
        root = f"/apis/{group}/{VERSIONS.get(group, 'v1')}" if group else "/api/v1"
        return f"{root}/namespaces/{namespace or self.served}/{resource}" + (f"/{name}" if name else "")

    def get(self, resource: str, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        status, found = self.cluster.request("GET", self.path(resource, name, namespace))
        return found if status == 200 else None

    def make(self, resource: str, manifest: dict[str, Any]) -> None:
        """It goes at the end of the test."""
        status, said = self.cluster.request("POST", self.path(resource), manifest)
        assert status == 201, said
        self._undo.append(lambda: self.delete(resource, manifest["metadata"]["name"]))

    def delete(self, resource: str, name: str, namespace: str | None = None) -> None:
        self.cluster.request("DELETE", self.path(resource, name, namespace))

    def edit(
        self, resource: str, name: str, change: Callable[[dict[str, Any]], Any], namespace: str | None = None
    ) -> None:
        self._put(self.path(resource, name, namespace), change)

    def _put(self, path: str, change: Callable[[dict[str, Any]], Any]) -> None:
        def put() -> bool:
            _, there = self.cluster.request("GET", path)
            change(there)
            status, said = self.cluster.request("PUT", path, there)
            assert status in {200, 409}, said
            return status == 200

        self.until(put, f"{path} is being changed all the time")

    def fresh(self, prefix: str) -> str:
        return f"{prefix}-{next(self._names)}"

    def spoil_certificates(self) -> None:
        """Somebody wrote something else into their Secret."""
        self.delete("secrets", "turnout-webhook", self.system)
        manifest = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "turnout-webhook"}}
        status, said = self.cluster.request("POST", self.path("secrets", "", self.system), manifest)
        assert status == 201, said

    def context(self, node: str) -> int:
        secret = self.get("secrets", f"turnout-router-{node}")
        assert secret is not None, f"{node} has nothing to run"
        return yaml.safe_load(base64.b64decode(secret["data"]["router.yaml"]))["models"]["local"][0]["context_window"]

    def change(self, node: str) -> int:
        """Something else of it is to be served: a context window, which comes back."""
        wanted = 1024 + next(self._names)
        self.edit("routernodes", node, lambda there: there["spec"]["models"][0].update(contextWindow=wanted))
        return wanted

    def master(self) -> dict[str, Any]:
        """The owner of what the operator makes for it."""
        found = self.get("routernodes", "master")
        assert found is not None
        names = {"apiVersion": "turnout.dev/v1alpha1", "kind": "RouterNode", "name": "master"}
        return names | {"uid": found["metadata"]["uid"], "controller": True}

    # rights

    def atoms(self) -> set[Taken]:
        """All that the chart gives."""
        return {
            Taken(role, verb, resource)
            for role in self._roles
            for rule in self._rules(role)
            for verb in rule["verbs"]
            for resource in rule["resources"]
        }

    def _rules(self, role: str) -> list[dict[str, Any]]:
        return self.cluster.request("GET", self._roles[role])[1]["rules"]

    def take(self, right: Taken) -> None:
        before = self._rules(right.role)
        left = [
            rule | {"resources": [resource], "verbs": [verb]}
            for rule in before
            for resource in rule["resources"]
            for verb in rule["verbs"]
            if (verb, resource) != (right.verb, right.resource)
        ]
        self._put(self._roles[right.role], lambda there: there.update(rules=left))
        self._undo.append(lambda: self._put(self._roles[right.role], lambda there: there.update(rules=before)))
        self.until(lambda: not self._may(right), f"{right} cannot be taken away")

    def give_back(self) -> None:
        """And undo all else, the last first; the right was taken first."""
        while self._undo:
            self._undo.pop()()

    def give(self, right: Taken) -> None:
        """Only the right."""
        self._undo.pop(0)()
        self.until(lambda: self._may(right), f"{right} cannot be given")

    def _may(self, right: Taken) -> bool:
        resource, _, sub = right.resource.partition("/")
        named = {
            "webhooks": f"turnout-{self.system}",
            "leader": "turnout",
            "certificates": "turnout-webhook",
            "served": self.admin_role if right.verb == "bind" else "",
        }
        asked = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": sub}
        asked |= {"name": "" if right.verb == "create" else named[right.role]}
        if right.role != "webhooks":
            asked["namespace"] = self.served if right.role == "served" else self.system
        user = f"system:serviceaccount:{self.system}:{ACCOUNT}"
        review = {"user": user, "groups": ["system:serviceaccounts", "system:authenticated"]}
        body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview"}
        body["spec"] = review | {"resourceAttributes": asked}
        _, answer = self.cluster.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
        return bool(answer["status"]["allowed"])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of one stage, then all of the other."""
    places = [place for place, item in enumerate(items) if Path(__file__).parent in item.path.parents]
    by_stage = sorted((items[place] for place in places), key=lambda item: item.callspec.params["stage"])  # type: ignore[attr-defined] # all are of a stage
    for place, item in zip(places, by_stage, strict=True):
        items[place] = item


@pytest.fixture
def stage(request, stages) -> Stage:
    """The operator has settled."""
    return stages(request.param)


@pytest.fixture(scope="module")
def stages(crds, release, processes, tmp_path_factory, until_of_the_session) -> Iterator[Callable[[str], Stage]]:
    """By name. Each stands until the other is asked for: an operator that serves all namespaces would serve the other's."""
    folders = (tmp_path_factory.mktemp("rights") for _ in itertools.count())
    standing: dict[str, Stage] = {}
    with ExitStack() as down:

        def stages(name: str) -> Stage:
            if name not in standing:
                down.pop_all().close()
                standing.clear()
                made = Making(crds, until_of_the_session, release, processes, next(folders))
                standing[name] = down.enter_context(made.stage(everywhere=name == EVERYWHERE))
            return standing[name]

        yield stages


@dataclass(frozen=True)
class Making:
    """What it takes to make a stage."""

    cluster: Any
    until: Any
    release: Any
    processes: Any
    folder: Path

    @contextmanager
    def stage(self, *, everywhere: bool) -> Iterator[Stage]:
        """It is there until the end of the block."""
        system, served = (f"{name}-{uuid.uuid4().hex[:8]}" for name in ("system", "served"))
        for name in (system, served):
            self.cluster.kubectl("create", "namespace", name)
        if everywhere:  # of what is left of other tests it would speak too
            self.until(lambda: not _ending(self.cluster), "namespaces of other tests do not end")
        self.release.install(system, "clusterWide=true" if everywhere else f"watchNamespaces={{{served}}}")
        found = Stage(self.cluster, self.until, system, served, everywhere=everywhere)
        found.start = self._starting(found)
        objects = yaml.safe_dump_all(_cluster_of())
        self.cluster.kubectl("apply", "--server-side", "-n", served, "-f", "-", stdin=objects)
        role = f"{'ClusterRole/' if everywhere else ''}{found.admin_role}"
        found.operator = found.start("--lease-duration=4s", "--watch-renewal=2s", f"--admin-role={role}")
        self.until(lambda: found.get("rolebindings", "turnout-router-master"), "the operator does not deliver")
        self.until(lambda: found.get("poddisruptionbudgets", "turnout-router-master"), "it does not deliver")
        yield found
        found.operator.stop()
        self.release.uninstall(system)
        for name in (system, served):
            self.cluster.kubectl("delete", "namespace", name, "--wait=false")

    def _starting(self, stage: Stage) -> Callable[..., Any]:
        account = self.release.account(stage.system, self.folder)
        logs = (self.folder / f"operator-{number}.log" for number in itertools.count())
        wide = ("--all-namespaces",) if stage.everywhere else ()

        def start(*more: str) -> Any:
            options = ("--lease-namespace", stage.system, "--router-image=router:1", *wide, *more)
            return self.processes(self.cluster, stage.served, next(logs), *options, kubeconfig=account, resync="1s")

        return start


def _ending(cluster: Any) -> list[str]:
    _, found = cluster.request("GET", "/api/v1/namespaces")
    return [one["metadata"]["name"] for one in found["items"] if "deletionTimestamp" in one["metadata"]]


@pytest.fixture
def right(request, stage: Stage) -> Iterator[Taken]:
    """Taken away for the time of the test."""
    request.getfixturevalue("said")  # it listens from here on: that the right is missing is said once
    taken = Taken(*request.param)
    stage.take(taken)
    yield taken
    stage.give_back()


def _cluster_of() -> list[dict[str, Any]]:
    """A master in the cluster, with a store and people; two slaves at URLs where nobody listens."""
    token = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token"}, "stringData": {"token": "0" * 32}}
    secrets = {name: {"secretRef": {"name": name}} for name in ("clients", "admins")}
    master = _node(
        "master", {"role": "Master", "storeDir": "/var/lib/turnout", "tokenSecretRef": {"name": "token"}} | secrets
    )
    master["metadata"]["annotations"] = {"turnout.dev/store-size": "1Gi"}
    return [token, master, node("gpu-a", 1), node("gpu-b", 2)]


def node(name: str, port: int, **spec: Any) -> dict[str, Any]:
    """A slave."""
    model = {"id": f"{name}-ff", "publicID": "cc11", "backend": "llama", "contextWindow": 4096, "parallel": 1}
    shared = {
        "role": "Slave",
        "masterRef": {"name": "master"},
        "publicURL": f"http://127.0.0.1:{port}",
        "tokenSecretRef": {"name": "token"},
        "backends": [{"name": "llama", "family": "LlamaCpp", "url": "http://127.0.0.1:8081"}],
        "models": [model],
    }
    return _node(name, shared | spec)


def _node(name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "turnout.dev/v1alpha1", "kind": "RouterNode", "metadata": {"name": name}, "spec": spec}


class Needs:
    """Makes that happen which needs a right. What every round needs happens by itself."""

    def __init__(self, stage: Stage, manifests: Any) -> None:
        self._stage, self._manifests = stage, manifests

    def __call__(self, right: Taken) -> None:
        verb = getattr(self, f"_{right.verb}", None)
        if verb is not None:
            verb(right)

    def _get(self, right: Taken) -> None:
        """Who holds the Lease reads it when somebody else wrote it."""
        if right.resource == "leases":
            mark = {"somebody": "was here"}
            self._stage.edit(
                "leases", "turnout", lambda there: there["metadata"].update(annotations=mark), self._stage.system
            )

    def _update(self, right: Taken) -> None:
        if right.resource == "secrets":
            self._stage.change("gpu-a")

    def _bind(self, _right: Taken) -> None:
        self._stage.delete("rolebindings", "turnout-router-master")

    def _create(self, right: Taken) -> None:
        match right.resource:
            case "secrets":
                self._stage.make("routernodes", node(self._stage.fresh("late"), 7))
            case "events":
                wrong = node(self._stage.fresh("wrong"), 8, masterRef={"name": "nobody"})
                self._stage.make("routernodes", wrong)
            case "leases":
                self._stage.delete("leases", "turnout", self._stage.system)
            case made:
                self._stage.delete(made, _child(made))

    def _patch(self, right: Taken) -> None:
        kind, _, status = right.resource.partition("/")
        if status:
            self._stage.make(kind, self._one_of(kind, self._stage.fresh("new")))
        elif kind == "secrets":
            self._stage.change("gpu-a")
        else:
            spoil = {"turnout.dev/applied-hash": "somebody's"}
            self._stage.edit(kind, _child(kind), lambda there: there["metadata"]["annotations"].update(spoil))

    def _one_of(self, kind: str, name: str) -> dict[str, Any]:
        """That is not accepted, and so changes nothing that is served."""
        kinds: dict[str, Callable[[], dict[str, Any]]] = {
            "routernodes": lambda: node(name, 8, masterRef={"name": "nobody"}),
            "routinglinks": lambda: self._manifests.link(name, "gpu-a", "nobody"),
            "guardians": lambda: self._manifests.guardian(name, "nobody"),
            "frontendmodels": lambda: self._manifests.frontend(name, "nobody"),
            "modelpools": lambda: self._manifests.pool(name, "nobody"),
            "splitrecipes": lambda: self._manifests.recipe(name, "nobody"),
            "routetests": lambda: self._manifests.route_test(name, "nobody"),
        }
        return kinds[kind]()

    def _delete(self, right: Taken) -> None:
        """What nobody wants any more, and looks like the operator's."""
        labels = {"app.kubernetes.io/managed-by": "turnout-operator"}
        metadata = {"name": self._stage.fresh("stray"), "labels": labels, "ownerReferences": [self._stage.master()]}
        group = f"{right.group}/v1" if right.group else "v1"
        head = {"apiVersion": group, "kind": CHILDREN[right.resource], "metadata": metadata}
        selector = {"matchLabels": {"app": "stray"}}
        pod = {"metadata": {"labels": {"app": "stray"}}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}
        role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "turnout-admin"}
        rest: dict[str, dict[str, Any]] = {
            "services": {"spec": {"ports": [{"port": 80}]}},
            "serviceaccounts": {},
            "deployments": {"spec": {"replicas": 0, "selector": selector, "template": pod}},
            "poddisruptionbudgets": {"spec": {"maxUnavailable": 1, "selector": selector}},
            "rolebindings": {"roleRef": role},
        }
        self._stage.make(right.resource, head | rest[right.resource])


def _child(resource: str) -> str:
    """What the operator makes of it for the master."""
    return "master" if resource == "services" else "turnout-router-master"


@pytest.fixture
def admitting(stage: Stage) -> Iterator[Callable[[], Any]]:
    """Starts an operator that keeps certificates, and never has the Lease: its Lease is one that the chart gives no right to."""
    running = []

    def admitting() -> Any:
        webhook = f"turnout-{stage.system}"
        options = [f"--webhook={webhook}", f"--validating-webhook={webhook}", "--webhook-secret=turnout-webhook"]
        options += [f"--webhook-namespace={stage.system}", "--webhook-host=127.0.0.1", "--webhook-port=0"]
        running.append(stage.start(*options, "--lease=of-another"))
        return running[-1]

    yield admitting
    for operator in running:
        operator.stop()


@pytest.fixture
def needs(stage: Stage, manifests: Any) -> Needs:
    return Needs(stage, manifests)


def lines(log: str) -> list[str]:
    return log.splitlines()


@pytest.fixture
def said(stage: Stage) -> Callable[..., list[str]]:
    """What an operator has said since the test began, at a level or above."""
    began = len(lines(stage.operator.log()))

    def said(*words: str, operator: Any = None) -> list[str]:
        new = lines(stage.operator.log())[began:] if operator is None else lines(operator.log())
        return [line for line in new if all(word in line for word in words)]

    return said
