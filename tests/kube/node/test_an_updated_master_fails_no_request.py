"""The pod of the master is replaced under load: its successor is ready before it ends, and nobody who calls the Service notices."""

STREAM_TOKENS = 500


def test_an_updated_master_fails_no_request(shop, ended_quietly):
    before = shop.pods("turnout.dev/router=master")
    ended_quietly("turnout.dev/router=master", "router")
    load = shop.load("cc11", STREAM_TOKENS)

    shop.kubectl("rollout", "restart", "deployment/turnout-router-master")
    shop.rolled_out("turnout-router-master")
    shop.gone(before)

    counts = load.stop()
    assert (counts["errors"], counts["stream"]) == ([], "")
    assert counts["asked"] > 50
