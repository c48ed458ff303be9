"""Definitions that lose what the operator writes are complained of, once, with what to do; current ones are not."""

import yaml


def test_a_status_field_that_is_not_served_is_named_in_one_error(objects, start, manifests, until, pytestconfig):
    path = pytestconfig.rootpath / "crds" / "routernodes.yaml"
    current = path.read_text()
    old = yaml.safe_load(current)
    del old["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["instances"]
    objects.cluster.kubectl("replace", "-f", "-", stdin=yaml.safe_dump(old))
    try:
        objects.apply(*manifests.all())
        operator = start(kubeconfig=objects.cluster.kubeconfig)

        until(lambda: "lose RouterNode.status.instances" in operator.log(), "nobody complained")
    finally:
        objects.cluster.kubectl("replace", "-f", "-", stdin=current)

    errors = [line for line in operator.log().splitlines() if " ERROR " in line]
    assert len(errors) == 1
    assert "crds.enabled=true" in errors[0]


def test_current_definitions_are_not_complained_of(objects, start, manifests):
    objects.apply(*manifests.all())

    operator = start()

    objects.accepted("routinglink", "a-to-b")
    operator.more_rounds(12)
    assert "CustomResourceDefinitions are older" not in operator.log()
