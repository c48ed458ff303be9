"""The link of a borrowed request says whose it is, and whether it may load and restore."""

from turnout_api.config import LinkConfig
from turnout_api.lending import ModelRef
from turnout_api.vocabulary import Lane
from turnout_router.gateway.borrowed import borrow_of

HERE = frozenset({"h"})


def link(name: str, owner: str, *, load: bool = True) -> LinkConfig:
    return LinkConfig(
        name=name,
        lane=Lane.TEXT,
        owner_node=owner,
        owner_model="big",
        helper_node="h",
        helper_model="small",
        load_if_unloaded=load,
    )


def test_the_named_link_says_whose_it_is_and_what_it_may():
    links = [link("one", "o"), link("two", "p", load=False)]
    borrow = borrow_of("lease", "two", "small", links, HERE)
    assert (borrow.owner, borrow.may_load, borrow.restore) == (ModelRef("p", "big"), False, True)


def test_without_a_name_nobody_knows_whose_it_is_and_it_may_what_each_link_allows():
    links = [link("one", "o"), link("two", "p", load=False)]
    borrow = borrow_of("lease", "", "small", links, HERE)
    assert (borrow.owner, borrow.may_load, borrow.restore) == (None, False, True)


def test_a_model_that_is_in_no_link_may_nothing():
    borrow = borrow_of("lease", "one", "other", [link("one", "o")], HERE)
    assert (borrow.owner, borrow.may_load, borrow.restore) == (None, False, False)
