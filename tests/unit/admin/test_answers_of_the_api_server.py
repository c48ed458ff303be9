"""What of an API server's refusal a caller can mend, and what is said about the rest."""

import pytest

from turnout_router.admin.apiserver import Answer, _kept_from

WEBHOOK = 'admission webhook "validate.turnout.dev" denied the request: '


def test_a_webhooks_refusal_is_told_without_the_webhook() -> None:
    answer = Answer(403, {"message": WEBHOOK + "rules: a > b > a is a loop", "reason": "JumpLoop"})

    assert answer.is_of_a_webhook
    assert (answer.message, answer.reason) == ("rules: a > b > a is a loop", "JumpLoop")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("rules[0].jumpTo: a>b>a; change one (of them) (JumpLoop)", "JumpLoop"),
        ("when: x is none (UnknownField); jumpTo: a>a (JumpLoop)", "UnknownField"),
        ("no FrontendModel on a Friday (Policy)", "Invalid"),
    ],
)
def test_the_reason_is_that_of_the_judgement(said: str, reason: str) -> None:
    assert Answer(422, {"message": WEBHOOK + said, "reason": "Invalid"}).reason == reason


def test_a_missing_permission_is_no_judgement() -> None:
    message = 'frontendmodels.turnout.dev is forbidden: User "x" cannot create resource "frontendmodels"'
    answer = Answer(403, {"message": message, "reason": "Forbidden"})

    assert not answer.is_of_a_webhook
    assert "give it the chart's role" in _kept_from(answer).message
    assert _kept_from(answer).retry_after_s


@pytest.mark.parametrize("status", [429, 500, 503, 504])
def test_an_overloaded_server_is_told_as_it_says(status: int) -> None:
    told = _kept_from(Answer(status, {"message": "etcdserver: leader changed"}))

    assert "etcdserver: leader changed" in told.message
    assert told.retry_after_s


def test_an_answer_without_words_says_its_status() -> None:
    assert Answer(502, {}).message == "HTTP 502"
