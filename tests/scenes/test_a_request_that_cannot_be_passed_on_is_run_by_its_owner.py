"""relay_refused: a helper's router is killed with lent requests in it, and cannot be reached for the next ones."""

from staging.setting import pair
from staging.stage import Stage
from staging.story import How

from turnout_api.lending import Outcome


async def test_what_a_killed_helper_had_and_what_no_longer_reaches_it(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 400, "b": 400, "c": 30, "d": 6, "e": 4, "f": 4})
    await stage.node("h", lambda state: {job.id for job in state.borrowed} == {"c", "d"}, "it has c and d")
    await stage.row(Outcome.GRANTED, held=2, out=2)  # the last event is decided
    await stage.crash("h")
    await stage.row(Outcome.RETURNED, request_id="c")
    await stage.row(Outcome.RETURNED, request_id="d")
    await stage.dismiss("a", "b")
    story = await stage.finish()

    assert {story.how(name) for name in "cdef"} == {How.SERVED}
    refused = {row.request_id: row.reason for row in story.rows(Outcome.RELAY_REFUSED)}
    assert {line.node for line in story.lines if line.row.outcome is Outcome.RELAY_REFUSED} == {"master"}
    assert (refused.pop("c"), refused.pop("d")) == ("forward_failed", "forward_failed")
    assert story.servers("cd") == "oo"
    # whether e and f get the slots of c and d depends on who is faster: their owner, or the master's word that h is gone
    assert set(refused.values()) <= {"helper_unreachable"}
    assert refused.keys() <= {"e", "f"}
    assert story.returned.keys() == {"c", "d", *refused}
    assert all(story.server(name) == "o" for name in refused)
    if stage.exact:
        assert refused.keys() == {"e", "f"}
