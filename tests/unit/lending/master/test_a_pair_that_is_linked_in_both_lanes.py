"""Which link a lease is of: two models may be linked in both lanes, with other flags in each."""

from dataclasses import replace

import pytest

from turnout_api.lending import Fit, LinkedModel
from turnout_api.vocabulary import Lane
from turnout_router.lending.effects import Admitted, RelayRefused

IMAGE = {"lane": Lane.IMAGE, "link": "images"}


@pytest.fixture
def both(words):
    text = words.link()
    return words.make([text, replace(text, name="images", lane=Lane.IMAGE, may_load=False)])


def test_a_lent_request_goes_by_the_link_of_its_lease(both, words):
    text = both.core.admit(both.lease(), "o", "r1", 0.1)
    image = both.core.admit(both.lease(1.0, 2, words.grant(**IMAGE)), "o", "r2", 1.1)
    assert isinstance(text, Admitted)
    assert isinstance(image, Admitted)
    assert (text.link.lane, text.link.may_load) == (Lane.TEXT, True)
    assert (image.link.lane, image.link.may_load) == (Lane.IMAGE, False)


def test_a_lease_of_the_other_lane_is_another_lease_and_says_its_lane(both, words):
    first = both.lease()
    both.granted = [words.grant(**IMAGE)]
    (answer,) = words.answers(both.ask(words.event(2, lane=Lane.IMAGE), 1.0))
    (lease,) = answer.answer.leases
    assert lease.id != first
    assert lease.lane is Lane.IMAGE


def test_a_link_that_is_removed_takes_the_lease_of_its_lane_away(both, words):
    lease = both.lease(granted=words.grant(**IMAGE))
    both.settle(both.core.configure(both.settings, [words.link()], 1.0), 1.0)
    admission = both.core.admit(lease, "o", "r1", 1.1)
    assert isinstance(admission, RelayRefused)
    assert admission.row.lane is Lane.IMAGE


def test_an_owner_is_priced_by_its_fit_of_the_lane_that_it_asks_for(both, words):
    models = tuple(
        LinkedModel("big", lane, True, fit=Fit(seconds)) for lane, seconds in ((Lane.TEXT, 1.0), (Lane.IMAGE, 4.0))
    )
    both.states["o"] = words.state("o", models=models, queues=(words.event(1, lane=Lane.IMAGE),))
    both.ask(words.event(1, lane=Lane.IMAGE), 0.0)
    (view,) = both.plans[-1].owners.values()
    assert view.fit == Fit(4.0)
