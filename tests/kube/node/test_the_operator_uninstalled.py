"""The last file of the folder: the operator goes while everything serves, and the namespace goes at once although objects are left."""

import time

GONE_S = 60


def test_no_container_has_logged_a_traceback(shop):
    for pod in shop.get("pods")["items"]:
        name = pod["metadata"]["name"]
        assert "Traceback" not in shop.kubectl("logs", name, "--all-containers"), name


def test_routers_go_on_serving(shop):
    load = shop.load("cc11", 250)

    operator = shop.pods("app.kubernetes.io/component=operator")
    shop.helm("uninstall", "turnout", "--wait")
    shop.gone(operator)
    [pod] = shop.pods("app=gpu-a")

    counts = load.stop()
    assert (counts["errors"], counts["stream"]) == ([], "")
    [short] = shop.ask({"model": "assistant", "max_tokens": 12})
    assert (short["status"], short["headers"]["rule"]) == (200, "assistant/short")
    assert shop.pods("app=gpu-a") == [pod]


def test_the_namespace_is_gone_within_a_minute(shop):
    assert len(shop.get("turnout")["items"]) >= 8
    began = time.monotonic()

    shop.kubectl("delete", "namespace", "turnout", "--timeout=120s")

    assert time.monotonic() - began < GONE_S
