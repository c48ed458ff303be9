"""One test for each reason that a pair can have by itself, and for their order."""

import pytest

from turnout_api.lending import Fit, Work
from turnout_api.vocabulary import Lane

LARGE = Work(input_tokens=9000.0, output_tokens=100.0)


def uniform(job_s: float, work: Work) -> Fit:
    return Fit(base_s=job_s, samples=20, uniform=work)


@pytest.fixture
def busy(cluster):
    """An owner whose backlog a loaded, idle helper would shorten."""
    cluster.set(probe_idle_s=1000.0)  # no probes here
    cluster.owner(held=8)
    cluster.helper()
    return cluster


def test_a_helper_that_pays_is_granted(busy):
    assert busy.plan().said() == ("granted", "")


def test_a_node_that_could_not_be_polled_does_not_accept(busy):
    busy.link()
    busy.helpers.clear()
    decided = busy.plan()
    assert decided.said() == ("skipped", "helper_not_accepting")
    assert decided.price() == (None, None, None, None)
    assert decided.row().owner_drain_s == 90.0


def test_a_node_without_the_linked_model_does_not_accept(busy):
    busy.link()
    busy.helper("other")
    busy.helpers["helper"] = busy.helpers["other"]
    assert busy.plan().said() == ("skipped", "helper_not_accepting")


def test_a_helper_with_own_work_does_not_accept_and_its_row_shows_the_price_all_the_same(busy):
    busy.helper(accepting=False, idle_s=0.0)
    decided = busy.plan()
    assert decided.said() == ("skipped", "helper_not_accepting")
    assert decided.price() == (0.0, 0.0, 0.0, 8.0)
    assert decided.row().helper_idle_s == 0.0
    assert decided.row().service_source == "helper"


@pytest.mark.parametrize("loading_s", [None, 5.0], ids=["absent", "loading"])
def test_a_link_that_may_not_load_needs_the_model_loaded(busy, loading_s):
    busy.link(may_load=False)
    busy.helper(loaded=False, loading_s=loading_s)
    assert busy.plan().said() == ("skipped", "load_forbidden")
    busy.helper(loaded=True)
    assert busy.plan().said() == ("granted", "")


@pytest.mark.parametrize(("tokens", "said"), [(8192.0, "granted"), (8193.0, "skipped"), (None, "skipped")])
def test_the_mean_size_must_fit_the_window(busy, tokens, said):
    busy.owner(held=8, tokens=tokens)
    outcome, reason = busy.plan().said()
    assert outcome == said
    assert reason == ("" if said == "granted" else "context_too_small")


def test_the_image_lane_has_no_window(busy):
    busy.owner(held=8, tokens=None, lane=Lane.IMAGE)
    busy.helper(window=None, lane=Lane.IMAGE)
    busy.link(lane=Lane.IMAGE)
    assert busy.plan().said() == ("granted", "")


def test_a_link_of_the_other_lane_is_not_judged(busy):
    busy.link(lane=Lane.IMAGE)
    assert busy.plan().result.rows == ()


def test_an_owner_without_a_fit_is_unpriced(busy):
    busy.owner(held=8, job_s=None)
    decided = busy.plan()
    assert decided.said() == ("skipped", "owner_unpriced")
    assert decided.row().owner_drain_s is None


@pytest.mark.parametrize("loading_s", [None, 5.0], ids=["absent", "loading"])
def test_a_load_that_was_never_measured_leaves_the_switch_unpriced(busy, loading_s):
    busy.helper(loaded=False, load_s=None, loading_s=loading_s)
    assert busy.plan().said() == ("skipped", "switch_unpriced")


def test_a_way_back_that_was_never_measured_leaves_the_restore_unpriced(busy):
    busy.helper(loaded=False, displaces_load_s=None)
    assert busy.plan().said() == ("skipped", "restore_unpriced")


def test_the_way_back_is_priced_although_the_link_does_not_restore(busy):
    busy.link(restore=False)
    busy.helper(loaded=False)
    assert busy.plan().price() == (0.0, 40.0, 25.0, 8.0)


@pytest.mark.parametrize(
    ("state", "restore_s"),
    [
        ({"loaded": False, "displaces": ""}, 0.0),
        ({"loaded": False, "loading_s": 1.0, "displaces": "own"}, 0.0),
        ({"loaded": True, "displaces": "own"}, 0.0),
        ({"loaded": False, "displaces": "own"}, 25.0),
    ],
    ids=["nothing displaced", "loading", "loaded", "absent"],
)
def test_the_way_back_costs_only_what_a_switch_would_push_out(busy, state, restore_s):
    busy.helper(**state)
    assert busy.plan().row().restore_s == restore_s


def test_a_load_that_takes_longer_than_it_did_costs_nothing_more(busy):
    busy.helper(loaded=False, loading_s=45.0)
    assert busy.plan().row().switch_s == 0.0


def test_a_helper_without_a_fit_is_priced_with_the_owners(busy):
    busy.helper(job_s=None)
    decided = busy.plan()
    assert decided.said() == ("granted", "")
    assert (decided.row().service_s, decided.row().service_source) == (10.0, "owner_fallback")
    assert decided.lease().helper_fit is None


def test_a_helper_that_only_ever_did_other_work_is_unpriced(busy):
    busy.helper(fit=uniform(8.0, LARGE))
    decided = busy.plan()
    assert decided.said() == ("skipped", "service_unpriced")
    assert decided.row().service_source == ""


def test_a_switch_waits_for_as_much_idle_time_as_the_detour_takes(busy):
    busy.helper(loaded=False, idle_s=64.9)
    assert busy.plan().said() == ("skipped", "helper_recently_busy")
    busy.helper(loaded=False, idle_s=65.0)
    assert busy.plan().said() == ("granted", "")


def test_a_load_that_is_under_way_is_no_new_detour(busy):
    busy.helper(loaded=False, loading_s=1.0, idle_s=2.0)
    assert busy.plan().said() == ("granted", "")


def test_a_loaded_helper_was_never_too_recently_busy(busy):
    busy.helper(idle_s=0.0)
    assert busy.plan().said() == ("granted", "")


@pytest.mark.parametrize(("drain_s", "said"), [(8.1, "granted"), (8.0, "skipped")])
def test_the_price_must_be_below_the_drain(busy, drain_s, said):
    busy.owner(held=1, pipe=(), drain_s=drain_s)
    outcome, reason = busy.plan().said()
    assert (outcome, reason) == (said, "" if said == "granted" else "cost_rejected")


@pytest.mark.parametrize(
    "state", [{"window": None}, {"parallel": 4}, {"vision": True}], ids=["no window", "parallel", "multimodal"]
)
def test_a_link_that_became_ineligible_is_skipped_before_anything_else(busy, state):
    busy.helper("owner")  # the owner's node answers too: one at a time, text only
    busy.helper(accepting=False, **state)
    busy.link()
    assert busy.plan().said() == ("skipped", "link_ineligible")


def test_a_link_that_the_registry_calls_ineligible_is_skipped(busy):
    busy.more["ineligible"] = {"owner-helper": "helper states no context window"}
    assert busy.plan().said() == ("skipped", "link_ineligible")


def test_requests_with_images_need_a_helper_that_sees(busy):
    busy.owner(held=8, needs_vision=True)
    assert busy.plan().said() == ("skipped", "link_ineligible")
    busy.helper(vision=True)
    assert busy.plan().said() == ("granted", "")


def test_a_suspended_link_is_skipped(busy):
    busy.more["suspended"] = frozenset({"owner-helper"})
    busy.helper(accepting=False)
    assert busy.plan().said() == ("skipped", "lending_suspended")


def test_the_first_reason_in_the_designs_order_is_the_one_that_is_given(busy):
    """Everything speaks against this pair; each step takes the first reason away."""
    wrong = {
        "accepting": False,
        "loaded": False,
        "window": 100,
        "load_s": None,
        "displaces_load_s": None,
        "fit": uniform(8.0, LARGE),
        "idle_s": 0.0,
    }
    busy.owner(held=1, pipe=(), job_s=None)
    busy.link(may_load=False)
    heard = []

    def hear() -> None:
        busy.helper(**wrong)
        heard.append(busy.plan().row().reason)

    busy.more = {"ineligible": {"owner-helper": "why"}, "suspended": frozenset({"owner-helper"})}
    hear()
    busy.more.pop("ineligible")
    hear()
    busy.more.pop("suspended")
    hear()
    wrong.pop("accepting")
    hear()
    busy.links.clear()
    hear()
    wrong.pop("window")
    hear()
    busy.owner(held=1, pipe=())
    hear()
    wrong.pop("load_s")
    hear()
    wrong.pop("displaces_load_s")
    hear()
    wrong.pop("fit")
    hear()
    wrong.pop("idle_s")
    hear()
    assert heard == [
        "link_ineligible",
        "lending_suspended",
        "helper_not_accepting",
        "load_forbidden",
        "context_too_small",
        "owner_unpriced",
        "switch_unpriced",
        "restore_unpriced",
        "service_unpriced",
        "helper_recently_busy",
        "cost_rejected",
    ]


def test_an_owner_with_nothing_lendable_is_not_planned(busy):
    busy.owner(held=8, lendable=0)
    assert busy.plan().result.rows == ()
