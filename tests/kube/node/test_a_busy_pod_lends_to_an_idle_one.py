"""Ten requests at once on the owner's pod: the helper's pod answers some of them, and the decision log says which."""

WARM_UP = (8, 16, 24, 32, 40)
"""As many as `schedulingMinSamples` of the example, of several sizes."""
TEN = (24, 32, 40, 48, 24, 32, 40, 48, 24, 32)


def test_ten_requests_at_once_are_shared_and_the_log_says_so(shop):
    for model in ("cc11-ff", "cc11"):
        for tokens in WARM_UP:
            shop.ask({"model": model, "max_tokens": tokens})

    answers = shop.ask(*({"model": "cc11-ff", "max_tokens": tokens} for tokens in TEN))

    lent = {one["headers"]["x-request-id"] for one in answers if one["headers"].get("lent-to") == "gpu-b"}
    assert [one["status"] for one in answers] == [200] * 10
    assert {one["headers"]["model"] for one in answers} == {"cc11-ff"}
    assert lent
    assert len(lent) < 10
    rows = shop.decisions("outcome=lent&limit=100")
    assert lent <= {row["request_id"] for row in rows}
    assert {tuple(node_of(row[end]) for end in ("owner_node", "helper_node")) for row in rows} == {("gpu-a", "gpu-b")}
    granted = shop.decisions("outcome=granted&limit=100")
    assert granted
    assert all(row["owner_drain_s"] > row["service_s"] for row in granted)


def node_of(instance: str) -> str:
    """Its pods are instances NODE.POD."""
    return instance.split(".", maxsplit=1)[0]
