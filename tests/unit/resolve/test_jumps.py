"""Jumps: a loop is refused with its path, a missing destination falls through."""


def test_the_jump_that_closes_a_loop_is_refused_with_the_path(make):
    resolution = make.resolved(make.jump("a", "b"), make.jump("b", "c"), make.jump("c", "a"))

    assert [v.reason for v in resolution.verdicts] == ["Accepted", "Accepted", "JumpLoop"]
    assert "c>a>b>c" in resolution.verdicts[2].message
    assert resolution.verdicts[2].path == ("spec", "rules", 0, "jumpTo")


def test_an_edit_that_closes_a_loop_is_refused_wherever_it_stands(make):
    """The object that is edited is the oldest of the three: the two others keep what they have."""
    b, c = make.jump("b", "c"), make.jump("c", "a")
    before = make.resolved(make.master(), make.jump("a"), b, c)

    after = make.resolved(make.master(), make.jump("a", "b"), b, c, before=before)

    assert [v.reason for v in after.verdicts] == ["Accepted", "JumpLoop", "Accepted", "Accepted"]
    assert "a>b>c>a" in after.verdicts[1].message
    assert after.verdicts[1].last_good
    assert after.configs == before.configs


def test_two_edits_at_once_that_close_a_loop_together_do_not_both_pass(make):
    before = make.resolved(make.master(), make.jump("a"), make.jump("b"))

    after = make.resolved(make.master(), make.jump("a", "b"), make.jump("b", "a"), before=before)

    assert [v.reason for v in after.verdicts] == ["Accepted", "Accepted", "JumpLoop"]


def test_the_path_goes_the_shortest_way(make):
    verdict = make.verdict(make.jump("b", "c", "a"), make.jump("c", "a"), make.jump("a", "c", "b"))

    assert "a>c>a" in verdict.message


def test_a_long_chain_without_a_loop_resolves(make):
    chain = [make.jump(f"f{i}", f"f{i + 1}") for i in range(200)]

    resolution = make.resolved(make.master(), *chain)

    assert all(v.accepted for v in resolution.verdicts)


def test_a_long_loop_is_found(make):
    chain = [make.jump(f"f{i}", f"f{(i + 1) % 200}") for i in range(200)]

    verdicts = make.resolved(make.master(), *chain).verdicts

    assert [v.name for v in verdicts if not v.accepted] == ["f199"]


def test_two_ways_to_one_destination_are_no_loop(make):
    diamond = [make.jump("a", "b", "c"), make.jump("b", "d"), make.jump("c", "d"), make.jump("d")]

    assert all(v.accepted for v in make.resolved(*diamond).verdicts)


def test_a_missing_destination_is_a_warning_that_says_what_happens(make):
    verdict = make.verdict(make.jump("shared-policy"), make.jump("a", "shared-polcy"))

    assert verdict.accepted
    [warning] = [w for w in verdict.warnings if w.reason == "UnknownFrontend"]
    assert "did you mean shared-policy?" in warning.message
    assert "falls through" in warning.message


def test_deleting_a_destination_refuses_nothing(make):
    a, b = make.jump("a", "b"), make.jump("b")
    before = make.resolved(make.master(), a, b)

    after = make.resolved(make.master(), a, before=before)

    assert all(v.accepted for v in after.verdicts)
    assert [f.name for f in after.configs["master"].frontends] == ["a"]
