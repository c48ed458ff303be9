"""`offload_strategy` chooses a whole set of settings, and each that is given by hand wins over it."""

from dataclasses import fields
from math import inf

import pytest

from turnout_api.config import ClusterConfig
from turnout_api.resources import Settings
from turnout_api.strategy import ALL_LINKED, STRATEGIES, StrategySet
from turnout_api.vocabulary import OffloadStrategy
from turnout_router.lending.settings import LendingSettings

# name in the configuration, name in LendingSettings, Classic, Adaptive, by hand, by hand as lending sees it
ROWS = [
    ("scheduling_backend_depth", "backend_depth", 2, 1, 5, 5),
    ("offload_max_helpers", "max_helpers", 1, ALL_LINKED, 3, 3),
    ("offload_borrowed_beyond_recall", "borrowed_beyond_recall", None, 1, 4, 4),
    ("offload_order", "first_that_gains", False, True, "Oldest", False),
    ("offload_order", "first_that_gains", False, True, "FirstThatGains", True),
    ("offload_restore_pricing", "restore_by_harm", False, True, "Full", False),
    ("offload_restore_pricing", "restore_by_harm", False, True, "ExpectedHarm", True),
    ("offload_switch_hazard", "switch_hazard", inf, 0.25, 0.2, 0.2),
    ("offload_switch_hazard", "switch_hazard", inf, 0.25, 0, 0.0),
    ("offload_switch_hazard", "switch_hazard", inf, 0.25, 1, inf),
    ("offload_probe_until_fit", "probe_until_fit", False, True, False, False),
    ("offload_probe_until_fit", "probe_until_fit", False, True, True, True),
    ("offload_faster_tolerance", "faster_tolerance", 0.0, 0.1, 0, 0.0),
    ("offload_restore_delay", "restore_delay_s", 1.5, None, "20s", 20.0),
    ("offload_restore_delay", "restore_delay_s", 1.5, None, "0s", 0.0),
    ("offload_cut_off_counts_ahead", "cut_off_counts_ahead", False, True, False, False),
    ("offload_cut_off_counts_ahead", "cut_off_counts_ahead", False, True, True, True),
]


def in_force(**given: object) -> LendingSettings:
    return LendingSettings.of(ClusterConfig.model_validate({"node_id": "n", **given}))


def test_every_setting_of_a_strategy_has_a_row_here():
    assert {row[0] for row in ROWS} == {field.name for field in fields(StrategySet)}
    assert set(STRATEGIES) == set(OffloadStrategy)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}={row[4]}")
def test_the_strategy_decides_unless_a_person_does(row):
    name, seen, classic, adaptive, given, wins = row
    assert getattr(in_force(), seen) == classic
    assert getattr(in_force(offload_strategy="Classic"), seen) == classic
    assert getattr(in_force(offload_strategy="Adaptive"), seen) == adaptive
    for strategy in OffloadStrategy:
        assert getattr(in_force(offload_strategy=strategy, **{name: given}), seen) == wins


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]}={row[4]}")
def test_one_setting_given_by_hand_leaves_the_rest_of_the_set(row):
    name, seen, _, _, given, _ = row
    alone = in_force(offload_strategy="Adaptive", **{name: given})
    whole = in_force(offload_strategy="Adaptive")
    others = [field.name for field in fields(LendingSettings) if field.name != seen]
    assert {other: getattr(alone, other) for other in others} == {other: getattr(whole, other) for other in others}


def test_classic_is_what_holds_where_nothing_is_given():
    assert in_force() == LendingSettings()


@pytest.mark.parametrize(
    ("name", "seen", "given", "reads"),
    [
        ("scheduling_refresh_interval", "refresh_interval_s", "7s", 7.0),
        ("scheduling_min_samples", "min_samples", 5, 5),
        ("scheduling_sample_window", "sample_window_s", "1h", 3600.0),
        ("scheduling_lease_ttl", "lease_ttl_s", "45s", 45.0),
        ("scheduling_context_reserve", "context_reserve_tokens", 512, 512),
        ("analytics", "analytics", False, False),
        ("offload_probe_idle", "probe_idle_s", "9s", 9.0),
        ("offload_faster_helper_slots", "faster_slots", 3, 3),
        ("offload_slower_helper_slots", "slower_slots", 2, 2),
        ("offload_hold_for_faster_helper", "hold_for_faster", False, False),
        ("offload_lent_stall_timeout", "lent_stall_timeout_s", "1m", 60.0),
        ("offload_own_wait_limit", "own_wait_limit_s", "10s", 10.0),
        ("offload_own_wait_limit", "own_wait_limit_s", "0s", inf),
        ("offload_suspension", "suspension_s", "1h", 3600.0),
    ],
)
def test_the_other_settings_are_passed_on(name, seen, given, reads):
    assert getattr(in_force(**{name: given}), seen) == reads


def test_the_backend_depth_in_force_is_known_to_the_configuration():
    assert ClusterConfig(node_id="n").backend_depth == 2
    assert ClusterConfig(node_id="n", offload_strategy=OffloadStrategy.ADAPTIVE).backend_depth == 1
    assert (
        ClusterConfig(node_id="n", offload_strategy=OffloadStrategy.ADAPTIVE, scheduling_backend_depth=2).backend_depth
        == 2
    )


@pytest.mark.parametrize("name", sorted(field.name for field in fields(StrategySet)))
def test_kubectl_explain_says_what_each_strategy_chooses(name):
    described = " ".join((Settings.model_fields[name].description or "").split())
    assert ". Default: Classic " in described
    assert ", Adaptive " in described


@pytest.mark.parametrize(
    "given",
    [
        {"offload_strategy": "adaptive"},
        {"offload_order": "first-that-gains"},
        {"offload_restore_pricing": "expected_harm"},
    ],
)
def test_the_words_are_read_in_other_spellings_too(given):
    in_force(**given)


@pytest.mark.parametrize(
    "given",
    [
        {"offload_strategy": "Eager"},
        {"offload_faster_helper_slots": 4},
        {"offload_switch_hazard": 1.01},
        {"offload_switch_hazard": "nan"},
        {"offload_faster_tolerance": -0.1},
        {"offload_borrowed_beyond_recall": 0},
        {"scheduling_lease_ttl": "19s"},
    ],
)
def test_a_value_out_of_bounds_is_refused(given):
    with pytest.raises(ValueError, match=next(iter(given))):
        in_force(**given)
