"""What a round wrote, the next one finds, and writes nothing."""

import pytest

from turnout_operator.names import HASH_ANNOTATION
from turnout_operator.plan import Plan


def writes(planned: Plan) -> int:
    return (planned.state is not None) + len(planned.secrets) + len(planned.statuses)


def test_the_first_round_writes_the_state_a_secret_a_router_and_a_status_an_object(namespace):
    assert writes(namespace.round()) == 1 + 3 + 3


def test_the_second_round_writes_nothing(namespace):
    namespace.round()

    assert writes(namespace.round()) == 0


def test_a_refused_object_is_told_once(namespace, specs):
    namespace.round()
    namespace.put("RouterNode", "gpu-a", specs.slave("gpu-a", family="Whisper"))

    first, second = namespace.round(), namespace.round()

    assert [status.key.name for status in first.statuses] == ["gpu-a"]
    assert writes(second) == 0


@pytest.mark.parametrize("damage", ["data", "annotations", "ownerReferences"])
def test_a_secret_that_was_edited_is_put_right_without_a_new_generation(namespace, damage):
    namespace.round()
    before = namespace.observed.secrets["gpu-a"]
    edited = before | {"metadata": dict(before["metadata"])}
    match damage:
        case "data":
            edited["data"] = {"router.yaml": ""}
        case "annotations":
            edited["metadata"]["annotations"] = before["metadata"]["annotations"] | {HASH_ANNOTATION: "sha256:00"}
        case _:
            edited["metadata"].pop("ownerReferences")

    planned = namespace.round(secrets={**namespace.observed.secrets, "gpu-a": edited})

    assert list(planned.secrets) == [before]
    assert planned.state is None


def test_further_keys_and_labels_of_a_secret_are_left_alone(namespace):
    namespace.round()
    before = namespace.observed.secrets["gpu-a"]
    extended = before | {"data": before["data"] | {"notes": "eA=="}}
    extended["metadata"] = before["metadata"] | {"labels": before["metadata"]["labels"] | {"team": "a"}}

    assert writes(namespace.round(secrets={**namespace.observed.secrets, "gpu-a": extended})) == 0
