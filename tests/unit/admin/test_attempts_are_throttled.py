"""Tries to sign in are counted by name and by address; a right one costs nothing."""

import pytest

from turnout_router.admin.throttle import (
    ADDRESS_REFILL_S,
    MAX_TRACKED,
    NAME_REFILL_S,
    TRIES_OF_A_NAME,
    TRIES_OF_AN_ADDRESS,
    Throttle,
    Tries,
)


def test_a_name_has_so_many_tries_from_any_address_and_gets_one_back_at_a_time() -> None:
    throttle = Throttle()
    for number in range(TRIES_OF_A_NAME):
        assert throttle.take("ann", f"10.0.0.{number}", 0.0) == 0
    assert throttle.take("ann", "10.1.0.0", 0.0) == NAME_REFILL_S
    assert throttle.take("bob", "10.1.0.0", 0.0) == 0
    assert throttle.take("ann", "10.2.0.0", NAME_REFILL_S) == 0
    assert throttle.take("ann", "10.3.0.0", NAME_REFILL_S) == NAME_REFILL_S


def test_an_address_has_so_many_tries_for_any_name() -> None:
    throttle = Throttle()
    for number in range(TRIES_OF_AN_ADDRESS):
        assert throttle.take(f"p{number}", "10.0.0.1", 0.0) == 0
    assert throttle.take("another", "10.0.0.1", 0.0) == ADDRESS_REFILL_S
    assert throttle.take("another", "10.0.0.2", 0.0) == 0


def test_a_refused_try_does_not_prolong_the_wait() -> None:
    tries = Tries(1, 10.0)
    assert tries.take("a", 0.0) == 0
    assert [tries.take("a", now) for now in (1.0, 2.0, 9.0)] == [9.0, 8.0, 1.0]
    assert tries.take("a", 10.0) == 0


def test_a_right_password_costs_no_try() -> None:
    throttle = Throttle()
    for _ in range(3 * TRIES_OF_AN_ADDRESS):
        assert throttle.take("ann", "10.0.0.1", 0.0) == 0
        throttle.right("ann", "10.0.0.1")


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2001:db8::1", "2001:db8::ffff", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("", "", True),
    ],
)
def test_addresses_that_one_host_can_choose_among_count_as_one(one: str, other: str, *, same: bool) -> None:
    throttle = Throttle(addresses=Tries(1, 10.0))
    assert throttle.take("a", one, 0.0) == 0
    assert (throttle.take("b", other, 0.0) > 0) is same


def test_made_up_names_cannot_push_out_one_that_was_tried_often() -> None:
    tries = Tries(2, 1000.0)
    tries.take("ann", 0.0)
    tries.take("ann", 0.0)
    for number in range(6):
        tries.take(f"x{number}", 1.0)
    for number in range(MAX_TRACKED):
        tries.take(f"y{number}", 1.0)
    assert tries.take("ann", 1.0) > 0
    assert len(tries._full_at) == MAX_TRACKED
