"""`kubectl apply -f examples/kubernetes`, while the webhook is asked about each object in turn: nothing is named before it is there."""


def test_each_object_names_only_what_stands_before_it(objects, webhook, pytestconfig):
    webhook.start()
    webhook.is_asked()
    examples = pytestconfig.rootpath / "examples" / "kubernetes" / "cluster.yaml"

    done = objects.cluster.kubectl("apply", "-n", objects.namespace, "-f", str(examples))

    assert "assistant created" in done.stdout
    assert done.stderr == ""
