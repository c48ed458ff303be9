"""`turnout dry-run`: one request, or every request of a trace, decided offline from manifests."""

import json
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from turnout_cli.main import app_for

TRACE = Path(__file__).parents[2] / "data" / "traces" / "azure-2023-conversation-200.csv"

CLUSTER = """\
apiVersion: turnout.dev/v1alpha1
kind: RouterNode
metadata: {name: solo}
spec:
  role: Standalone
  backends:
  - {name: llama, family: LlamaCpp, url: "http://127.0.0.1:8081"}
  models:
  - {id: small, backend: llama, price: {inputMicrosPerMillionTokens: 1000000}}
  - {id: large, backend: llama, price: {inputMicrosPerMillionTokens: 9000000}}
"""

FRONTEND = """\
apiVersion: turnout.dev/v1alpha1
kind: FrontendModel
metadata: {name: assistant}
spec:
  rules:
  - {name: broke, when: {minBudgetUsedPercent: 100}, action: Deny, denyStatus: 402, denyMessage: spent}
  - {name: ops, when: {roles: [ops]}, targets: [{model: large}], tag: ops}
  - {name: night, when: {timeWindow: {from: "22:00", to: "06:00"}}, targets: [{model: large}]}
  - {name: long, when: {minInputTokens: LIMIT}, targets: [{model: large}, {model: small}]}
  defaults: {targets: [{model: small}]}
"""

REQUEST = {"path": "/v1/chat/completions", "headers": {}, "client": "", "body": {"model": "assistant", "max_tokens": 1}}
NOON = ("--at", "2026-11-30T12:00:00")


@pytest.fixture
def dry_run(tmp_path, monkeypatch):
    """Writes the cluster with the limit of `long`, runs the command, and gives its result."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments, request=None, limit=1000, stdin=None, name="cluster.yaml"):
        Path(name).write_text(f"{CLUSTER}---\n{FRONTEND.replace('LIMIT', str(limit))}")
        if request is not None:
            Path("request.json").write_text(json.dumps(request))
            arguments = (*arguments, "--request", "request.json")
        called = ["dry-run", name, *arguments]
        return CliRunner().invoke(app_for(called), called, input=stdin)

    return run


@pytest.fixture
def answer(dry_run):
    def run(*arguments, **given):
        result = dry_run(*arguments, *NOON, "--output", "json", **given)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    return run


def test_it_says_which_rule_decides_where_the_request_goes_and_why_not_the_others(answer):
    said = answer(request=REQUEST)

    assert (said["frontend_model"], said["rule"], said["action"]) == ("assistant", "assistant/defaults", "route")
    assert said["candidates"] == [{"model": "small", "nodes": ["solo"], "pool": None}]
    assert [(no["rule"], no["condition"]) for no in said["declined"]] == [
        ("broke", "minBudgetUsedPercent"),
        ("ops", "roles"),
        ("night", "timeWindow"),
        ("long", "minInputTokens"),
    ]
    assert said["declined"][1]["why"] == "the roles of the caller's key are not known here"
    assert (said["denied"], said["unevaluated"], said["guardian"]) == (None, [], None)


@pytest.mark.parametrize(
    ("extra", "rule"),
    [
        ({"budget_used_percent": 120}, "assistant/broke"),
        ({"roles": ["ops"]}, "assistant/ops"),
        ({"body": {"model": "assistant", "prompt": "x" * 4000}}, "assistant/long"),
    ],
)
def test_what_only_a_gateway_knows_of_a_caller_may_be_given(answer, extra, rule):
    assert answer(request=REQUEST | extra)["rule"] == rule


def test_a_refusal_is_told_with_its_status_and_message(answer):
    said = answer(request=REQUEST | {"budget_used_percent": 100})

    assert said["denied"] == {"status": 402, "message": "spent"}
    assert said["candidates"] == []


def test_the_time_is_a_matter_of_the_caller(dry_run):
    night = dry_run("--at", "2026-11-30T23:00:00", "--output", "yaml", request=REQUEST)

    assert yaml.safe_load(night.stdout)["rule"] == "assistant/night"


def test_a_body_alone_may_come_from_the_standard_input(answer):
    assert answer("--request", "-", stdin='{"model": "large"}')["candidates"][0]["model"] == "large"


def test_the_table_reads_as_sentences(dry_run):
    said = dry_run(*NOON, request=REQUEST | {"roles": ["ops"]}).stdout

    assert "assistant/ops" in said
    assert "large on solo" in said
    assert "assistant/broke" in said
    assert "no budget" in said


def test_the_table_of_an_unknown_name_says_what_a_client_gets(dry_run):
    said = [line.split(maxsplit=1) for line in dry_run(request={"body": {"model": "asistant"}}).stdout.splitlines()]

    assert [" ".join(line).split()[0] for line in said] == ["rule", "goes", "cost"]
    assert "a client gets 404 (unknown_model)" in said[1][1]
    assert said[2][1].strip() == "none"


@pytest.mark.parametrize(
    ("arguments", "given", "said"),
    [
        ((), {}, "give either --request or --trace"),
        (("--before", "x"), {"request": REQUEST}, "--before goes with --trace"),
        (("--request", "none.json"), {}, "none.json cannot be read: No such file"),
        ((), {"request": {"path": "/v1/chat/completions"}}, "request.json: body: this key is missing"),
        ((), {"request": REQUEST | {"clients": "x"}}, "clients: no such key"),
        ((), {"request": REQUEST | {"body": {"model": "m", "stream": 1}}}, "answers this request with 400"),
        (("--trace", "nothing"), {}, "write PATH=MODEL"),
        (("--trace", "none.csv=m"), {}, "none.csv cannot be read: No such file"),
        (("--namespace", "other"), {"request": REQUEST}, "name one of the namespaces with --namespace: default"),
        (("none.yaml",), {"request": REQUEST}, "not every file could be read"),
    ],
)
def test_what_cannot_be_used_is_told_and_the_exit_code_is_1(dry_run, arguments, given, said):
    result = dry_run(*arguments, **given)

    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stdout == ""


def test_what_is_not_accepted_is_told_and_left_out(dry_run):
    Path("bad.yaml").write_text(FRONTEND.replace("LIMIT", "1").replace("name: assistant", "name: small"))

    result = dry_run("bad.yaml", *NOON, "--output", "json", request=REQUEST)

    assert json.loads(result.stdout)["rule"] == "assistant/defaults"
    assert "FrontendModel small is left out: the name small belongs to RouterNode solo" in result.stderr


def test_without_a_master_there_is_nothing_to_decide(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("f.yaml").write_text(FRONTEND.replace("LIMIT", "1"))
    called = ["dry-run", "f.yaml", "--request", "-"]

    result = CliRunner().invoke(app_for(called), called, input=json.dumps(REQUEST))

    assert (result.exit_code, "no Master or Standalone" in result.stderr) == (1, True)


def counted_by_hand(limit):
    rows = TRACE.read_text().splitlines()[1:]
    long = sum(int(row.split(",")[1]) >= limit for row in rows)
    return {"assistant/long": long, "assistant/defaults": len(rows) - long}


def test_a_trace_is_counted_rule_by_rule(answer):
    said = answer("--trace", f"{TRACE}=assistant")

    assert said["after"]["rules"] == counted_by_hand(1000)
    assert said["after"]["models"]["large"] == counted_by_hand(1000)["assistant/long"]
    assert said["after"]["requests"] == 200
    assert "before" not in said


def test_a_change_is_counted_side_by_side(answer, dry_run):
    Path("old.yaml").write_text(f"{CLUSTER}---\n{FRONTEND.replace('LIMIT', '3000')}")

    said = answer("--trace", f"{TRACE}=assistant", "--before", "old.yaml")
    table = dry_run("--trace", f"{TRACE}=assistant", "--before", "old.yaml", *NOON).stdout

    assert said["before"]["rules"] == counted_by_hand(3000)
    assert said["after"]["rules"] == counted_by_hand(1000)
    moved = counted_by_hand(1000)["assistant/long"] - counted_by_hand(3000)["assistant/long"]
    assert f"{moved:+}" in table
    assert f"{-moved:+}" in table


def test_a_trace_of_a_model_meets_no_rule(answer):
    said = answer("--trace", f"{TRACE}=small", "--limit", "5")

    assert (said["after"]["rules"], said["after"]["models"]) == ({"(no frontend model)": 5}, {"small": 5})


def test_a_trace_of_a_model_costs_what_the_model_costs(answer):
    rows = [int(row.split(",")[1]) for row in TRACE.read_text().splitlines()[1:]]

    said = answer("--trace", f"{TRACE}=large", "--limit", "5")["after"]

    assert (said["cost_micros"], said["unpriced"]) == (9 * sum(rows[:5]), 0)


def test_a_trace_of_a_name_that_nobody_declared_is_told_from_one_that_nothing_serves(answer):
    said = answer("--trace", f"{TRACE}=smal", "--limit", "5")["after"]

    assert (said["models"], said["cost_micros"], said["unpriced"]) == ({"(nobody declared that name)": 5}, 0, 5)


def test_a_trace_adds_up_what_it_costs(answer):
    rows = [int(row.split(",")[1]) for row in TRACE.read_text().splitlines()[1:]]

    assert answer("--trace", f"{TRACE}=assistant")["after"]["cost_micros"] == sum(rows)
