"""A helper goes while one borrowed request runs in its pod and another one waits there: its pod is deleted, or its RouterNode is.

What runs is answered from there, what waits goes back to its owner, and no client hears of it. Lent requests take 20 s at the
helper, so that it goes while both are there.
"""

import pytest

WARM_UP = (100, 200, 300, 400, 500)
"""Long enough for their speed to show through what a busy machine adds."""
LONG = 1000
"""Tokens, 50 a second at both: the helper has 45 s to drain."""
ASKED = 5
"""The second one is lent only while the drain of those left, 80 s, is above its price, 40 s."""
SETTINGS = {"offloadBorrowedBeyondRecall": 1, "offloadSlowerHelperSlots": 2, "offloadProbeIdle": "1h"}
"""The helper gets two requests whichever of both seems faster; one is at its backend, one waits in its router. No probe comes first."""


@pytest.fixture(scope="module")
def pair(shop):
    """`lender` may lend to `borrower`, and the speeds of both are known."""
    before = shop.get("routernode", "master")["spec"]["settings"]
    shop.patch("routernode", "master", {"settings": SETTINGS})
    apply(shop)
    for tokens in WARM_UP:
        shop.ask(*({"model": name, "max_tokens": tokens} for name in ("lender", "borrower")))
    yield shop
    shop.kubectl("delete", "routinglink", "lender-to-borrower", "--ignore-not-found")
    shop.remove("lender", "borrower")
    shop.patch("routernode", "master", {"settings": dict.fromkeys(SETTINGS) | before})


def apply(shop) -> None:
    """Both nodes serve, be it again."""
    for name in ("lender", "borrower"):
        shop.apply(*shop.copy("gpu-b", name, {"id": name}, flags={}))
    ends = {end: {"node": name, "model": name} for end, name in (("owner", "lender"), ("helper", "borrower"))}
    link = {"apiVersion": "turnout.dev/v1alpha1", "kind": "RoutingLink", "metadata": {"name": "lender-to-borrower"}}
    shop.apply(link | {"spec": {"lane": "Text", **ends}})
    for name in ("lender", "borrower"):
        shop.rolled_out(name)
        shop.programmed(name)
        shop.until_served(name)


@pytest.fixture
def two_lent(pair):
    """(requests under way, the IDs of those that were lent until now): at least one runs at the helper, and one waits there."""
    apply(pair)
    before = lent(pair)
    asking = pair.asking(*[{"model": "lender", "max_tokens": LONG}] * ASKED)
    pair.until(lambda: len(lent(pair) - before) >= 2, lambda: f"lent: {lent(pair) - before}")
    return asking, lent(pair) - before


def test_a_deleted_pod_answers_what_runs_and_gives_back_what_waits(pair, two_lent):
    asking, out = two_lent
    [pod] = pair.pods("app=borrower")

    pair.kubectl("delete", "pod", pod, "--wait=false")

    some_were_answered_there_and_the_others_came_back(pair, asking.answers(), out)
    pair.gone([pod])


def test_a_deleted_node_answers_what_runs_and_gives_back_what_waits(pair, two_lent):
    asking, out = two_lent

    pair.kubectl("delete", "routernode", "borrower")

    some_were_answered_there_and_the_others_came_back(pair, asking.answers(), out)
    [answer] = pair.ask({"model": "borrower", "max_tokens": 4})
    assert answer["status"] == 404


def some_were_answered_there_and_the_others_came_back(shop, answers, out) -> None:
    assert [(one["status"], one.get("error")) for one in answers] == [(200, None)] * ASKED
    answered = {one["headers"]["x-request-id"] for one in answers if one["headers"].get("lent-to") == "borrower"} & out
    back = {request: reasons for request, reasons in returned(shop).items() if request in out}
    assert answered
    assert back == {request: ["offload_returned"] for request in out - answered}
    assert back


def lent(shop) -> set[str]:
    """Requests that the owner's decision log says were lent."""
    return {row["request_id"] for row in of_the_owner(shop, "lent")}


def returned(shop) -> dict[str, list[str]]:
    """Why each request that came back did."""
    found: dict[str, list[str]] = {}
    for row in of_the_owner(shop, "returned"):
        found.setdefault(row["request_id"], []).append(row["reason"])
    return found


def of_the_owner(shop, outcome):
    rows = shop.decisions(f"outcome={outcome}&limit=100")
    return [row for row in rows if row["owner_node"].startswith("lender.")]
