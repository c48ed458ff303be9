"""Two operators behind one webhook: the one that waits for the Lease judges as the one that has it, and either does without the other."""

import json
import re

import pytest

from turnout_api.resources import KINDS

pytestmark = pytest.mark.timeout(300)


def test_both_judge_the_same(pair, objects, manifests, until):
    objects.apply(*manifests.good())
    objects.becomes_accepted("routetest", "stays")
    bad = {case: manifest for case, (manifest, _, _) in manifests.bad_writes().items()}
    late = manifests.link("late", "gpu-a", "nobody")

    def judged(operator) -> dict[str, object]:
        pair.only(operator)
        refusals = {case: pair.ask(KINDS[manifest["kind"]].plural, manifest) for case, manifest in bad.items()}
        return refusals | {"what another object heals": objects.write(late, dry_run=True).stderr}

    by_leader = judged(pair.leader)

    # it looks for itself, and what it read a moment ago may lack what was written since
    until(lambda: judged(pair.standby) == by_leader, "the one that waits judges otherwise")
    assert "(UnknownNode)" in by_leader.pop("what another object heals")
    assert {answer.status for answer in by_leader.values()} == {422}
    assert [pair.leader.health()["leads"], pair.standby.health()["leads"]] == [True, False]


def plain(pod: str) -> str:
    """Without what is another in each pod: the name of its account's token, the key of its drain, its own."""
    return re.sub(r"kube-api-access-\w+|\b[0-9a-f]{32}\b|[0-9a-f-]{36}|\d{4}-\d\d-\d\dT[\d:]+Z", "", pod)


def test_both_inject_the_same(pair, objects, manifests):
    pods = {name: manifests.pod(name, node) for name, node in (("p", "gpu-a"), ("wrong", "gpu-c"), ("m", "master"))}

    def admitted(operator) -> dict[str, object]:
        pair.only(operator)
        how = ("create", "--dry-run=server", "-o", "json", "-n", objects.namespace, "-f", "-")
        done = {name: objects.cluster.kubectl(*how, stdin=json.dumps(pod), check=False) for name, pod in pods.items()}
        return {name: plain(one.stdout) or one.stderr for name, one in done.items()}

    by_leader, by_standby = admitted(pair.leader), admitted(pair.standby)

    assert '"name": "turnout-router"' in by_leader["p"]
    assert by_leader == by_standby


@pytest.mark.parametrize("which", ["leader", "standby"])
def test_one_that_is_killed_leaves_the_other_answering(which, pair, writing, manifests, until):
    killed, left = (pair.leader, pair.standby) if which == "leader" else (pair.standby, pair.leader)
    writing.more(until)
    answers = list(writing.stop())

    killed.kill()

    for _ in range(2):  # in turn: the turn of the one that is gone comes too
        pair.service.turn()
        answers.append(pair.ask("frontendmodels", manifests.frontend("front", "cc11")))
        assert pair.ask("routernodes", manifests.bad_writes()["a second master"][0]).status == 422
    assert [answer for answer in answers if answer.status != 201] == []
    until(lambda: left.health()["leads"], "nobody leads")
    left.more_rounds(1)
