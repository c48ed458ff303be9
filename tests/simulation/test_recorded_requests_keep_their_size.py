"""A router's log comes again with the work that was measured, not with the bytes around it."""

import sqlite3
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from turnout_api.lending import Work
from turnout_api.vocabulary import Lane
from turnout_cli.simulating.recorded import read_logs
from turnout_cli.simulating.sizes import Measured, Row, sized
from turnout_router.store.database import Store
from turnout_router.store.records import RequestRecord, SampleRecord

ROW = Row(ts=100.0, node="a", model="m", stream=False, bytes_in=80, bytes_out=508, total_s=2.0)
"""An answer of 40 tokens as a sim-backend writes it."""
SAMPLE = Measured("a", "m", 101.99, Work(6.0, 40.0), body_bytes=80, max_tokens=50)


def outputs(rows: list[Row], *samples: Measured) -> list[float]:
    return [work.output_tokens for work, _ in sized(rows, samples)]


def test_what_the_row_itself_tells_comes_first():
    ((work, _),) = sized([replace(ROW, input_tokens=7, output_tokens=41)], [SAMPLE])
    assert astuple(work)[:2] == (7, 41)


def test_a_request_is_as_large_as_the_sample_of_its_job():
    ((work, job),) = sized([ROW], [SAMPLE])
    assert work == SAMPLE.work
    assert (job.max_tokens, job.body_bytes, job.lendable) == (50, 80, True)


@pytest.mark.parametrize(
    "change",
    [{"ts": 200.0}, {"model": "n"}, {"node": "b"}, {"body_bytes": 4000}],
    ids=["ended at another time", "another model", "another node", "another body"],
)
def test_a_sample_of_another_job_says_nothing_of_this_request(change):
    ((_, job),) = sized([ROW], [replace(SAMPLE, **change)])
    assert job.max_tokens is None


def test_a_lent_request_has_its_sample_where_it_ran_and_under_another_name():
    ((work, _),) = sized([replace(ROW, lent_to="b.pod-1")], [replace(SAMPLE, node="b", model="helper", body_bytes=85)])
    assert work.output_tokens == 40


def test_each_sample_is_of_one_request_the_nearest():
    rows = [replace(ROW, total_s=2.0), replace(ROW, total_s=2.4)]
    later = replace(SAMPLE, ts=102.39, work=Work(6.0, 90.0))
    assert outputs(rows, later, SAMPLE) == [40, 90]


def test_without_any_measurement_the_envelope_is_no_part_of_the_answer():
    (tokens,) = outputs([ROW])
    assert tokens == pytest.approx(40, rel=0.1)


def test_a_stream_has_an_envelope_for_each_token():
    (tokens,) = outputs([replace(ROW, stream=True, bytes_out=9533)])
    assert tokens == pytest.approx(40, rel=0.1)


def test_the_envelope_is_that_of_answers_whose_tokens_are_known():
    known = replace(ROW, bytes_out=1160, input_tokens=6, output_tokens=40)
    assert outputs([known, replace(known, bytes_out=1400, input_tokens=None, output_tokens=None)]) == [40, 100]


def test_an_answer_without_text_has_no_tokens():
    assert outputs([replace(ROW, path="/v1/embeddings", bytes_out=20_000)]) == [0]


def test_a_picture_counts_its_pixels():
    drawn = replace(SAMPLE, work=Work(pixel_steps=5e6))
    rows = [replace(ROW, path="/v1/images/generations"), replace(ROW, path="/v1/images/generations", ts=500.0)]
    found = sized(rows, [drawn])
    assert [(work.pixel_steps, job.lane) for work, job in found] == [(5e6, Lane.IMAGE)] * 2


async def test_the_databases_of_the_other_nodes_beside_it_tell_the_sizes(tmp_path: Path):
    master = Store.open(str(tmp_path / "nodes/master"))
    answered = RequestRecord("r1", 100.0, ROW.path, node="gpu-a", local_id="m", status=200, outcome="ok")
    answered.bytes_in, answered.bytes_out, answered.total_s = 80, 508, 2.0
    master.add_request(answered)
    await master.close()
    slave = Store.open(str(tmp_path / "nodes/gpu-a"))
    slave.add_sample(SampleRecord("m", 101.99, 0.8, 6.0, 40.0, 0.0, 80))
    await slave.close()
    (arrival,) = read_logs([tmp_path / "nodes/master/router.db"])
    assert (arrival.target.node, arrival.work.output_tokens) == ("gpu-a", 40)


def test_the_log_of_an_older_version_is_read(tmp_path: Path):
    database = tmp_path / "nodes" / "master" / "router.db"
    database.parent.mkdir(parents=True)
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "CREATE TABLE requests (ts REAL, node TEXT, local_id TEXT, stream INTEGER, status INTEGER, bytes_in INTEGER, bytes_out INTEGER)"
        )
        connection.execute("INSERT INTO requests VALUES (100, 'a', 'm', 0, 200, 80, 508)")
    (arrival,) = read_logs([database])
    assert arrival.work.output_tokens == pytest.approx(40, rel=0.1)
