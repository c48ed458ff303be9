"""`turnout simulate`: manifests, traffic and speeds in, variants side by side out."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from turnout_cli.main import app_for

ROOT = Path(__file__).parents[2]
TRACE = ROOT / "tests/data/traces/azure-2023-conversation-200.csv"
SPEED = {
    "fixedSeconds": 0.2,
    "inputTokensPerSecond": 2000,
    "outputTokensPerSecond": 40,
    "loadSeconds": 20,
    "noise": 0.05,
}
SPEEDS = {"nodes": {"gpu-a": {"cc11-ff": SPEED}, "gpu-b": {"cc11": SPEED}}}
FIGURES = {"completion_seconds", "makespan_seconds", "busy_share", "loads", "restores", "lent", "returned", "cut_off"}


@pytest.fixture
def simulate(tmp_path):
    speeds = tmp_path / "speeds.yaml"
    speeds.write_text(yaml.safe_dump(SPEEDS))

    def run(*more, trace=f"{TRACE}=cc11-ff"):
        files = [str(ROOT / "examples/lending.yaml"), "--speeds", str(speeds)]
        traffic = ["--trace", trace, "--limit", "60"] if trace else []
        return CliRunner().invoke(app_for(["simulate"]), ["simulate", *files, *traffic, *map(str, more)])

    return run


@pytest.fixture
def variants(simulate):
    def run(*more, **options):
        result = simulate(*more, "--output", "json", **options)
        assert result.exit_code == 0, result.output
        return json.loads(result.output)["variants"]

    return run


def test_with_links_and_without_stand_side_by_side(variants):
    both = variants()
    assert list(both) == ["with", "without"]
    for variant in both.values():
        assert set(variant) == {"all", "nodes"}
        assert set(variant["nodes"]) == {"gpu-a", "gpu-b"}
        for figures in (variant["all"], *variant["nodes"].values()):
            assert figures.keys() >= FIGURES
            assert figures["completion_seconds"].keys() >= {"mean", "p50", "p95", "p99"}
    assert both["without"]["all"]["lent"] == 0
    assert both["with"]["all"]["lent"] > 10
    assert both["with"]["all"]["completion_seconds"]["p95"] < both["without"]["all"]["completion_seconds"]["p95"]
    assert both["with"]["nodes"]["gpu-b"]["busy_share"] > both["without"]["nodes"]["gpu-b"]["busy_share"] == 0


def test_the_same_seed_gives_the_same_figures_and_another_does_not(variants):
    assert variants("--seed", 3) == variants("--seed", 3)
    assert variants("--seed", 3) != variants("--seed", 4)


def test_time_scale_makes_the_traffic_come_faster(variants):
    slow, fast = variants("--time-scale", 0.01), variants("--time-scale", 10)
    assert slow["without"]["all"]["completion_seconds"]["mean"] < fast["without"]["all"]["completion_seconds"]["mean"]
    assert slow["without"]["all"]["makespan_seconds"] > fast["without"]["all"]["makespan_seconds"]


def test_a_variant_changes_settings_or_links(variants, tmp_path):
    manifest = tmp_path / "more.yaml"
    manifest.write_text(
        (ROOT / "examples/lending.yaml").read_text().replace("loadIfUnloaded: true", "loadIfUnloaded: false")
    )
    found = variants(
        *("--variant", "adaptive=offloadStrategy=Adaptive,offloadProbeIdle=1s"),
        *("--variant", "reverse=links=text-b-to-a"),
        *("--variant", f"file={manifest}"),
    )
    assert list(found) == ["with", "without", "adaptive", "reverse", "file"]
    assert found["adaptive"] != found["with"]
    assert found["reverse"]["all"]["lent"] == 0
    assert found["file"]["all"]["lent"] > 0


def test_a_router_s_log_comes_again_as_it_came(variants, tmp_path):
    database = tmp_path / "router.db"
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "CREATE TABLE requests (ts REAL, node TEXT, local_id TEXT, stream INTEGER, status INTEGER, bytes_in INTEGER, bytes_out INTEGER)"
        )
        connection.execute("CREATE TABLE samples (model TEXT, body_bytes INTEGER, input_tokens REAL)")
        rows = [(1e9 + n, "gpu-a.pod-1", "cc11-ff", n % 3 == 0, 200, 4000, 1200) for n in range(30)]
        connection.executemany("INSERT INTO requests VALUES (?, ?, ?, ?, ?, ?, ?)", rows)
        connection.execute("INSERT INTO requests VALUES (0, '', '', 0, 404, 10, 10)")
    found = variants("--log", database, trace=None)
    assert found["with"]["all"]["requests"] == {"served": 30}
    assert 0 < found["with"]["all"]["lent"] <= 20  # streams are never lent


@pytest.mark.parametrize(
    ("more", "trace", "says"),
    [
        ((), f"{TRACE}=nobody", "no node serves 'nobody'; public IDs: cc11, cc11-ff, flux, flux-fast"),
        ((), f"{TRACE}=flux", "the speeds file says nothing of gpu-a: flux, gpu-b: flux-fast"),
        ((), None, "no traffic: give --trace PATH=MODEL or --log router.db"),
        ((), "nothing", "write PATH=MODEL"),
        ((), "missing.csv=cc11", "missing.csv cannot be read"),
        (("--variant", "x=offloadStrategy=Best"), f"{TRACE}=cc11", "must be Classic or Adaptive"),
        (("--variant", "x=links=none-such"), f"{TRACE}=cc11", "there is no RoutingLink none-such"),
        (("--variant", "with=links="), f"{TRACE}=cc11", "choose another name"),
        (("--variant", "x"), f"{TRACE}=cc11", "is no variant"),
    ],
)
def test_what_cannot_be_simulated_is_said(simulate, more, trace, says):
    result = simulate(*more, trace=trace)
    assert result.exit_code == 2
    assert says in result.output


def test_people_get_tables(simulate):
    result = simulate()
    assert result.exit_code == 0
    lines = [line.split() for line in result.output.replace("cut off", "cut-off").splitlines()]
    assert [line[0] for line in lines][:4] == ["60", "variant", "with", "without"]
    assert lines[1][:3] == ["variant", "served", "not"]
    assert len(lines[1]) == len(lines[2])  # each column has its heading


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("nodes: {gpu-a: {m: {fixedSeconds: -1}}}", "nodes.gpu-a.m.fixedSeconds"),
        ("nodes: {gpu-a: {m: {fixed: 1}}}", "nodes.gpu-a.m.fixed"),
        ("[", "cannot be read"),
        ("nodes: 3", "nodes"),
    ],
)
def test_a_bad_speeds_file_is_named_with_the_place(simulate, tmp_path, text, says):
    (tmp_path / "speeds.yaml").write_text(text)
    result = simulate()
    assert result.exit_code == 2
    assert says in result.output
