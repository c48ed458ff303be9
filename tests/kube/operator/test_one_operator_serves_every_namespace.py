"""`--all-namespaces`: each namespace in which something is declared is a cluster of its own, also one that comes later."""

from collections.abc import Iterator
from contextlib import contextmanager


def test_namespaces_are_served_as_they_come(objects, start, manifests):
    objects.apply(manifests.token, manifests.master())
    start("--all-namespaces", "--lease-namespace", objects.namespace)
    objects.becomes_accepted("routernode", "master")

    with another_namespace(objects) as later:
        later.apply(manifests.token, manifests.master())
        later.becomes_accepted("routernode", "master")
        assert later.config("master")["cluster"]["node"] == "master"


def test_an_operator_is_done_with_a_namespace_that_is_emptied_or_gone(objects, start, manifests, until):
    objects.apply(manifests.token, manifests.master())
    operator = start("--all-namespaces", "--lease-namespace", objects.namespace)
    objects.accepted("routernode", "master")
    with another_namespace(objects) as later:
        later.apply(manifests.token, manifests.master())
        later.accepted("routernode", "master")

        later.delete("routernode", "master")
        until(
            lambda: later.namespace not in operator.health()["namespaces"],
            "an emptied namespace has its rounds for ever",
        )

        later.apply(manifests.master())
        later.becomes_accepted("routernode", "master")
    until(
        lambda: later.namespace not in operator.health()["namespaces"],
        "a namespace that is gone has its rounds for ever",
    )
    assert f'namespace="{later.namespace}"' not in operator.ask("/metrics")
    assert operator.more_rounds(1)["trouble"] == ""


def test_the_rights_of_a_cluster_wide_release_suffice(objects, start, manifests, release, tmp_path):
    release.install(objects.namespace, "clusterWide=true", "webhook.enabled=false")
    objects.apply(*manifests.all())

    account = release.account(objects.namespace, tmp_path)
    # in a pod it would be that of the pod
    operator = start("--all-namespaces", "--lease-namespace", objects.namespace, kubeconfig=account)

    objects.becomes_accepted("routinglink", "a-to-b")
    assert operator.more_rounds(1)["trouble"] == ""
    release.uninstall(objects.namespace)


@contextmanager
def another_namespace(objects) -> Iterator:
    name = f"{objects.namespace}-later"
    objects.cluster.kubectl("create", "namespace", name)
    yield type(objects)(objects.cluster, name)
    objects.cluster.kubectl("delete", "namespace", name, "--wait=false")
