"""The same table of bad writes, twice: refused by the webhook, and without it not accepted by the operator, for one reason."""

import json
from concurrent.futures import ThreadPoolExecutor

CASES = (
    "a second master",
    "a slave of a slave",
    "a jump back",
    "a lost condition",
    "a link of unlike models",
    "a guardian without eyes",
    "a component that cannot",
    "a broken required test",
)


def test_the_webhook_refuses_what_the_operator_would_not_accept(objects, webhook, start, manifests):
    operator = webhook.start()
    webhook.is_asked()
    objects.apply(*manifests.good())
    objects.becomes_accepted("routetest", "stays")
    cases = manifests.bad_writes()
    assert tuple(cases) == CASES

    refusals = {}
    for case, (manifest, reason, field) in cases.items():
        done = objects.write(manifest)
        assert done.returncode, f"{case} was admitted"
        assert 'admission webhook "validate.turnout.dev" denied the request' in done.stderr, case
        assert f"({reason})" in done.stderr, case
        assert f"denied the request: {field}" in done.stderr, case
        refusals[case] = done.stderr
    operator.stop()

    start(resync=start.NEVER)  # it has no webhooks, and with failurePolicy Ignore writes pass without
    for case, (manifest, reason, _) in cases.items():
        objects.apply(manifest)
        condition = objects.accepted(manifest["kind"], manifest["metadata"]["name"])
        assert (condition["status"], condition["reason"]) == ("False", reason), case
        for said in condition["message"].partition(". What was accepted last")[0].split("; "):
            assert said in refusals[case], case
        put_back = next((m for m in manifests.good() if m["metadata"]["name"] == manifest["metadata"]["name"]), None)
        if put_back:
            objects.apply(put_back)
        else:
            objects.delete(manifest["kind"], manifest["metadata"]["name"])


def test_what_another_object_heals_passes_with_a_warning(objects, webhook, manifests, until):
    webhook.start()
    webhook.is_asked()
    token, master, *slaves, link = manifests.all()

    early = objects.write(link)
    assert early.returncode == 0
    assert "Warning: spec.owner.node: no RouterNode is called gpu-a (UnknownNode)" in early.stderr
    rest = objects.write(token, master, *slaves)
    assert "Unknown" not in rest.stderr
    until(lambda: objects.accepted("routinglink", "a-to-b")["status"] == "True", "the link did not heal")

    gone = objects.cluster.kubectl("delete", "routernode", "gpu-b", "-n", objects.namespace)
    assert "Warning: RoutingLink a-to-b: spec.helper.node: no RouterNode is called gpu-b" in gone.stderr


def test_one_file_in_order_brings_no_warning_of_what_is_in_it(objects, webhook, manifests):
    webhook.start()
    webhook.is_asked()

    done = objects.write(*manifests.all(), manifests.ruled("front", jump="policy"), manifests.ruled("policy"))

    assert done.returncode == 0
    warnings = [line for line in done.stderr.splitlines() if line.startswith("Warning:")]
    unknown, *more = [w for w in warnings if "(Unknown" in w]
    assert not more, done.stderr
    assert unknown.startswith("Warning: spec.rules[0].jumpTo: rule on jumps to policy, which does not exist")


def race(objects, manifests):
    """a>b and b>a, each by its own client at the same moment."""
    writes = [manifests.ruled("a", jump="b"), manifests.ruled("b", jump="a")]
    with ThreadPoolExecutor(2) as clients:
        return list(clients.map(objects.write, writes))


def test_of_two_jumps_that_race_into_a_loop_the_second_is_refused(objects, webhook, manifests):
    webhook.start()
    webhook.is_asked()
    objects.apply(*manifests.all(), manifests.ruled("a"), manifests.ruled("b"))

    ended = race(objects, manifests)

    assert sorted(done.returncode for done in ended) == [0, 1]
    assert any("jumps lead back to where they began" in done.stderr for done in ended)
    assert {objects.accepted("frontendmodel", name)["status"] for name in "ab"} == {"True"}


def test_two_that_race_past_the_webhook_are_not_both_accepted(objects, start, manifests):
    objects.apply(*manifests.all(), manifests.ruled("a"), manifests.ruled("b"))
    operator = start(resync=start.NEVER)
    objects.becomes_accepted("frontendmodel", "b")

    ended = race(objects, manifests)
    assert [done.returncode for done in ended] == [0, 0]

    verdicts = {name: objects.accepted("frontendmodel", name) for name in "ab"}
    assert sorted((c["status"], c["reason"]) for c in verdicts.values()) == [
        ("False", "JumpLoop"),
        ("True", "Accepted"),
    ]
    served = {f["name"]: [r.get("jump_to") for r in f["rules"]] for f in objects.config("master")["frontends"]}
    assert sorted(map(bool, served.values())) == [False, True]
    operator.more_rounds(0)


def test_without_the_operator_objects_are_written_and_judged_later(objects, webhook, manifests):
    operator = webhook.start()
    webhook.is_asked()
    objects.apply(*manifests.all())
    operator.stop()
    other = manifests.master() | {"metadata": {"name": "other"}}

    assert objects.write(other).returncode == 0
    assert objects.write(manifests.ruled("front", to="nobody")).stderr.count("Warning") == 0
    objects.delete("routinglink", "a-to-b")

    webhook.start()
    assert objects.accepted("routernode", "other")["reason"] == "MasterExists"


def test_with_failure_policy_fail_nothing_is_held_up_that_is_not_asked_about(objects, webhook, manifests, until):
    """The operator is away, and both webhooks must be asked."""
    objects.apply(*manifests.in_cluster())
    webhook.must_be_asked()
    operator = webhook.start()
    webhook.is_asked()
    objects.condition("master", "Programmed", "NoPods")
    operator.stop()

    def refused(*written):
        done = objects.write(*written)
        return done.stderr if done.returncode else ""

    until(lambda: refused(manifests.ruled("front")), "a frontend model was written")
    assert 'failed calling webhook "validate.turnout.dev"' in refused(manifests.ruled("front"))
    assert 'failed calling webhook "inject.turnout.dev"' in refused(manifests.pod("llama-0", "gpu-a"))

    namespace = ("-n", objects.namespace)
    kubectl = objects.cluster.kubectl
    for deployment, pods in (
        ("turnout", "app.kubernetes.io/component=operator"),
        ("turnout-router-master", "turnout.dev/router=master"),
    ):
        kubectl("rollout", "restart", "deployment", deployment, *namespace)
        made = ("get", "pods", *namespace, "-l", pods, "-o", "json")
        before = {p["metadata"]["uid"] for p in json.loads(kubectl(*made).stdout)["items"]}
        kubectl("delete", "pods", *namespace, "-l", pods, "--wait=false")
        until(
            lambda made=made, before=before: (
                {p["metadata"]["uid"] for p in json.loads(kubectl(*made).stdout)["items"]} - before
            ),
            f"no pod of {deployment} came again",
        )
    # what is there can be labelled and deleted
    kubectl("label", "routernode", "gpu-a", "team=a", *namespace)
    kubectl("delete", "routernode", "gpu-b", *namespace)
