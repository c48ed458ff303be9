"""`turnout lending` over real databases: the report, the rows, and why there is nothing to tell."""

import asyncio
import json
import sqlite3
import time
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from turnout_api.lending import DecisionRow, Outcome, RowKind
from turnout_api.vocabulary import Lane
from turnout_cli.main import app_for
from turnout_router.runtime.interface import LoadRecord
from turnout_router.store.database import Store
from turnout_router.store.records import RequestRecord, SampleRecord

PAIR = {"owner_node": "a", "owner_model": "m", "helper_node": "b", "helper_model": "n"}
LINK = {"name": "a-to-b", "lane": "Text", **PAIR}


def run(*options):
    return CliRunner().invoke(app_for(["lending"]), ["lending", *map(str, options)])


def decision(outcome, ts, kind=RowKind.DISPATCH, **values):
    event = "plan" if kind is RowKind.PLAN else outcome.value
    return DecisionRow(kind, event, outcome, Lane.TEXT, **{**PAIR, "ts": ts, **values})


async def stored(folder, *records):
    store = Store.open(str(folder))
    for record in records:
        match record:
            case DecisionRow():
                store.add_decision(record)
            case RequestRecord():
                store.add_request(record)
            case LoadRecord():
                store.add_load(record)
            case SampleRecord():
                store.add_sample(record)
    return store


def write(folder, *records):
    async def written():
        await (await stored(folder, *records)).close()

    asyncio.run(written())


def a_lent_request(state: Path, now: float) -> None:
    """The master plans, a lends to b, b loads and answers."""
    of = {"path": "/v1/chat/completions", "outcome": "ok", "status": 200}
    plan = {"kind": RowKind.PLAN, "trigger": "enqueued", "owner_job_s": 10.0, "owner_drain_s": 30.0, "slots": 2}
    write(
        state / "nodes/master",
        decision(Outcome.SKIPPED, now - 62, reason="cost_rejected", **plan),
        decision(Outcome.SKIPPED, now - 61, reason="cost_rejected", **plan),
        decision(Outcome.GRANTED, now - 60, **plan),
        RequestRecord("r", now - 60, node="a", local_id="m", model="m", total_s=12.0, lent_to="b", **of),
    )
    write(
        state / "nodes/a",
        decision(Outcome.LENT, now - 59, request_id="r"),
        RequestRecord("o", now - 60, node="a", local_id="m", model="m", total_s=10.0, **of),
        RequestRecord("r", now - 60, node="a", local_id="m", model="m", total_s=12.0, lent_to="b", **of),
        SampleRecord("m", now - 50, 10.0, 5.0, 5.0, 0.0, 50),
    )
    write(
        state / "nodes/b",
        LoadRecord("n", now - 58.5, 3.0, ("x",)),
        RequestRecord("r", now - 59, node="b", local_id="n", model="n", total_s=10.0, queued_s=3.0, **of),
    )
    for node in ("master", "a", "b"):
        config = {"generation": 1, "cluster": {"role": "master", "node_id": node}, "links": [LINK]}
        (state / f"nodes/{node}/router.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")


def test_the_report_joins_the_databases_of_all_nodes(tmp_path):
    a_lent_request(tmp_path, time.time())
    result = run("--state", tmp_path, "--output", "json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    (link,) = told["links"]
    assert (link["name"], link["plans"], link["granted"], link["lent"], link["answered"]) == ("a-to-b", 3, 1, 1, 1)
    assert link["skipped"] == {"cost_rejected": 2}
    assert (link["saved_work_s"], link["share"], link["borrowed_work_s"]) == (10.0, 0.5, 7.0)
    assert link["saved_waiting_s"] == pytest.approx(8.0, abs=0.01)
    assert link["loads"] == {"count": 1, "total_s": 3.0, "longest_s": 3.0}
    assert set(told["estimates"]) >= {"saved_work_s", "saved_waiting_s"}


def test_yaml_says_the_same_as_json(tmp_path):
    a_lent_request(tmp_path, time.time())
    as_json, as_yaml = (run("--state", tmp_path, "--output", output) for output in ("json", "yaml"))
    assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout)


def test_the_table_names_links_reasons_and_estimates(tmp_path):
    a_lent_request(tmp_path, time.time())
    text = run("--state", tmp_path).stdout
    assert "a-to-b: a/m > b/n" in text
    assert "why not: cost_rejected 2" in text
    assert "answered 50% of the owner's requests" in text
    assert "estimate" in text


def test_rows_are_folded_and_show_every_variable(tmp_path):
    a_lent_request(tmp_path, time.time())
    runs = json.loads(run("--state", tmp_path, "--rows", "--output", "json").stdout)["rows"]
    assert [(each["row"]["outcome"], each["count"]) for each in runs] == [("lent", 1), ("granted", 1), ("skipped", 2)]
    assert runs[1]["row"]["owner_drain_s"] == 30.0
    text = run("--state", tmp_path, "--rows").stdout
    assert "owner_drain_s=30" in text
    assert "cost_rejected" in text


def test_raw_rows_are_shown_on_demand(tmp_path):
    a_lent_request(tmp_path, time.time())
    rows = json.loads(run("--state", tmp_path, "--rows", "--no-fold", "--output", "json").stdout)["rows"]
    assert [row["outcome"] for row in rows] == ["lent", "granted", "skipped", "skipped"]


def test_one_link_is_told_of_by_its_name_or_an_end_and_an_unknown_one_is_an_error(tmp_path):
    a_lent_request(tmp_path, time.time())
    for name in ("a-to-b", "a/m", "b/n", "a/m>b/n"):
        assert len(json.loads(run("--state", tmp_path, "--link", name, "--output", "json").stdout)["links"]) == 1
    result = run("--state", tmp_path, "--link", "c-to-d")
    assert result.exit_code == 2
    assert "there are a-to-b" in result.stderr


def test_a_database_is_read_while_its_router_writes(tmp_path):
    async def told_while_open():
        store = await stored(tmp_path / "nodes/a", decision(Outcome.LENT, time.time(), request_id="r"))
        store.query("SELECT 1")  # what is buffered is written, into the WAL
        result = await asyncio.to_thread(run, "--state", tmp_path, "--output", "json")
        store.add_decision(decision(Outcome.LENT, time.time(), request_id="s"))
        assert len(store.query("SELECT 1 FROM offload_decisions")) == 2
        await store.close()
        return result

    assert json.loads(asyncio.run(told_while_open()).stdout)["links"][0]["lent"] == 1


def test_databases_can_be_named_after_their_nodes(tmp_path):
    a_lent_request(tmp_path, time.time())
    files = []
    for node in ("master", "a", "b"):
        files.append(tmp_path / f"{node}.db")
        (tmp_path / f"nodes/{node}/router.db").rename(files[-1])
    (link,) = json.loads(run(*files, "--output", "json").stdout)["links"]
    assert (link["lent"], link["share"]) == (1, 0.5)


def test_rows_from_before_are_left_out(tmp_path):
    now = time.time()
    write(
        tmp_path / "nodes/a", *(decision(Outcome.LENT, now - 3600 * hours, request_id=str(hours)) for hours in (1, 30))
    )
    lent = {}
    for since in ("2h", "48h", "0"):
        lent[since] = json.loads(run("--state", tmp_path, "--since", since, "--output", "json").stdout)["rows"]
    assert lent == {"2h": 1, "48h": 2, "0": 2}
    assert run("--state", tmp_path, "--since", "yesterday").exit_code == 2


def test_a_state_folder_that_is_none_says_so(tmp_path):
    missing, empty = run("--state", tmp_path / "no"), run("--state", tmp_path)
    assert (missing.exit_code, empty.exit_code) == (2, 2)
    assert "there is no state folder" in missing.stderr
    assert "no router has run" in empty.stderr


@pytest.mark.parametrize(
    ("links", "requests", "why"),
    [([], 1, "the cluster has no links"), ([LINK], 0, "no request came"), ([LINK], 1, "nothing waited at an owner")],
)
def test_without_rows_it_says_why_there_may_be_none(tmp_path, links, requests, why):
    write(tmp_path / "nodes/a", *(RequestRecord(str(n), time.time(), "/", node="a") for n in range(requests)))
    config = {"generation": 1, "cluster": {"role": "master", "node_id": "a"}, "links": links}
    (tmp_path / "nodes/a/router.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    result = run("--state", tmp_path)
    assert result.exit_code == 1
    assert why in result.stderr


def test_a_database_of_an_older_or_a_newer_version_is_read_as_far_as_it_goes(tmp_path):
    write(tmp_path / "nodes/a", decision(Outcome.LENT, time.time(), request_id="r"))
    with sqlite3.connect(tmp_path / "nodes/a/router.db") as database:
        database.execute("ALTER TABLE offload_decisions DROP COLUMN owner_job_s")
        database.execute("ALTER TABLE offload_decisions ADD COLUMN not_known_yet TEXT")
        database.execute("CREATE TABLE rows AS SELECT * FROM offload_decisions")
        database.execute("UPDATE rows SET outcome = 'teleported'")
        database.execute("INSERT INTO offload_decisions SELECT * FROM rows")
        database.execute("DROP TABLE samples")
    database.close()
    result = run("--state", tmp_path, "--output", "json")
    assert json.loads(result.stdout)["links"][0]["lent"] == 1
    assert "1 rows of offload_decisions were written by another version" in result.stderr
    assert "no table samples" in result.stderr


def test_what_is_no_database_is_named(tmp_path):
    file = tmp_path / "a.db"
    file.write_text("no database, but long enough to have a header" * 50, encoding="utf-8")
    result = run(file)
    assert result.exit_code == 2
    assert str(file) in result.stderr


def test_two_places_to_read_from_are_refused(tmp_path):
    assert run("--state", tmp_path, "--url", "http://127.0.0.1:1").exit_code == 2
