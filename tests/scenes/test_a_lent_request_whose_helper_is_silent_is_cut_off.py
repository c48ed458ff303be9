"""Cut-off: no answer after three times the predicted switch and job time plus 30 s."""

from staging.setting import pair
from staging.stage import Stage
from staging.story import How

from turnout_api.lending import Outcome


async def test_the_owner_serves_it_and_the_helper_lets_it_go(stage: Stage) -> None:
    await stage.open(pair(helper_pace=0.5))
    await stage.measure("o/mine", "h/theirs")
    await stage.raise_curtain()
    await stage.send_all({"a": 20, "b": 20, "c": 4})
    await stage.tire("h")
    row = await stage.row(Outcome.RETURNED)
    await stage.gone("c", off="h")
    story = await stage.finish()

    assert (row.request_id, row.reason) == ("c", "cut_off")
    assert {end.how for end in story.ends.values()} == {How.SERVED}
    assert story.servers("abc") == "ooo"
    assert story.order("h") == ["c"]
    assert story.lent == ["c"]  # and never again
    if stage.exact:
        (lent,) = [line.at for line in story.lines if line.row.outcome is Outcome.LENT]
        (back,) = [line.at for line in story.lines if line.row.outcome is Outcome.RETURNED]
        assert back - lent == 3 * 2 + 30
