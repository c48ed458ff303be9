"""A release with rights in namespaces only: nothing is asked that is refused, and it says once what it does not do."""


def test_nothing_is_refused_and_what_it_does_not_do_is_said_once(objects, release, manifests, start, tmp_path):
    release.install(objects.namespace, "webhook.enabled=false")
    objects.apply(*manifests.in_cluster())

    operator = start("--admin-role=turnout-admin", kubeconfig=release.account(objects.namespace, tmp_path))

    objects.becomes_accepted("routinglink", "a-to-b")
    objects.condition("master", "Ready", "PodsNotReady")
    operator.more_rounds(2)
    said = operator.log()
    assert 'code="403"' not in operator.ask("/metrics")
    assert "may not" not in said
    [line] = [line for line in said.splitlines() if "serves no webhooks" in line]
    assert " INFO " in line
    assert "turnout inject" in line
    release.uninstall(objects.namespace)
