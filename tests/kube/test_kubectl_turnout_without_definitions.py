"""`kubectl turnout status` where Turnout's kinds are not known."""

import os
import subprocess
import sys


def test_it_says_what_to_install(fresh_cluster):
    done = subprocess.run(
        [sys.executable, "-c", "from turnout_cli.kubectl.main import main; main()", "status"],
        capture_output=True, text=True, check=False, env=os.environ | fresh_cluster.environment,
    )  # fmt: skip

    assert done.returncode == 2
    assert "the cluster does not know Turnout's kinds: install the chart" in done.stderr
