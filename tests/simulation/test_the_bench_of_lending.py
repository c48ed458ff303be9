"""`make bench-lending` runs, on the cut of the traces that the repository has."""

import subprocess
import sys
from pathlib import Path

import pytest

BENCH = Path(__file__).parents[1] / "bench" / "lending" / "run.py"


@pytest.mark.timeout(300)
def test_the_bench_of_lending_runs_on_the_cut_and_fills_every_row(tmp_path):
    page = tmp_path / "page.md"
    ran = subprocess.run(
        [sys.executable, BENCH, "--cut", "--out", page], capture_output=True, text=True, check=False, timeout=280
    )
    assert ran.returncode == 0, ran.stderr
    text = page.read_text(encoding="utf-8")
    for row in (
        "pooled FCFS",
        "hard bound",
        "one-way",
        "both ways",
        "switch of 30 s",
        "offloadSwitchHazard: 0.2",
        "ten-job drain",
    ):
        assert row in text
    classic_only = 4  # how far depth 2 alone would get
    adaptive_only = 3  # a stricter hazard
    assert text.count("| Adaptive |") - adaptive_only == text.count("| Classic |") - classic_only
