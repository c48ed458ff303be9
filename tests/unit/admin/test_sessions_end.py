"""A session ends: unused for a while, after a whole day of use, on request, and to make room."""

import pytest

from turnout_router.admin.sessions import ABSOLUTE_S, IDLE_S, MAX_SESSIONS, MAX_SESSIONS_OF_ONE, Sessions


def signed_in() -> Sessions:
    sessions = Sessions()
    sessions.open("t", "ann", "hash", 0.0)
    return sessions


def test_a_session_is_found_by_its_token_alone() -> None:
    sessions = signed_in()
    found = sessions.find("t", 1.0)
    assert found is not None
    assert found.name == "ann"
    assert sessions.find("another", 1.0) is None


def test_a_session_that_is_not_used_ends() -> None:
    assert signed_in().find("t", IDLE_S) is None


def test_each_use_prolongs_a_session_but_not_for_ever() -> None:
    sessions, now = signed_in(), 0.0
    while now + IDLE_S - 1 < ABSOLUTE_S:
        now += IDLE_S - 1
        assert sessions.find("t", now) is not None
    assert sessions.find("t", ABSOLUTE_S) is None


def test_a_closed_session_is_gone() -> None:
    sessions = signed_in()
    sessions.close("t")
    assert sessions.find("t", 1.0) is None


def test_the_memory_holds_no_token() -> None:
    sessions = Sessions()
    sessions.open("a-long-token", "ann", "hash", 0.0)
    assert "a-long-token" not in repr(vars(sessions))


@pytest.mark.parametrize(("names", "most"), [(1, MAX_SESSIONS_OF_ONE), (MAX_SESSIONS, MAX_SESSIONS)])
def test_the_session_that_was_idle_longest_makes_room(names: int, most: int) -> None:
    sessions = Sessions()
    for number in range(most):
        sessions.open(f"t{number}", f"p{number % names}", "hash", float(number) / most)
    sessions.find("t0", 2.0)
    sessions.open("new", "p0", "hash", 3.0)
    assert len(sessions) == most
    assert sessions.find("t0", 3.0) is not None
    assert sessions.find("new", 3.0) is not None
    assert sessions.find("t1", 3.0) is None


def test_ended_sessions_take_no_room() -> None:
    sessions = signed_in()
    sessions.open("later", "ann", "hash", IDLE_S)
    assert len(sessions) == 1
