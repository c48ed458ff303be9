"""`turnout operator` is the operator as it also starts in its image: one list of options for both."""

import subprocess
import sys

import pytest

STARTS = (["-m", "turnout_cli.main", "operator"], ["-m", "turnout_operator"])


@pytest.mark.parametrize("asked", [["--help"], ["--resync-interval", "0.1s"], ["--router-resources", "[]"]])
def test_both_say_the_same(asked: list[str]) -> None:
    said = [
        subprocess.run([sys.executable, *start, *asked], capture_output=True, text=True, check=False)
        for start in STARTS
    ]

    assert said[0].returncode == said[1].returncode
    assert (said[0].stdout, said[0].stderr) == (said[1].stdout, said[1].stderr)
    assert said[0].stdout or said[0].stderr
