"""`kubectl turnout status` where Turnout's kinds are not known: the definitions are taken away for it."""

import os
import subprocess
import sys

from turnout_api.resources import KINDS


def test_it_says_what_to_install(cluster, pytestconfig):
    names = [f"{kind.plural}.turnout.dev" for kind in KINDS.values()]
    cluster.kubectl("delete", "crd", *names, "--ignore-not-found")
    try:
        done = subprocess.run(
            [sys.executable, "-c", "from turnout_cli.kubectl.main import main; main()", "status"],
            capture_output=True, text=True, check=False, env=os.environ | cluster.environment,
        )  # fmt: skip
    finally:
        crds = str(pytestconfig.rootpath / "crds")
        cluster.kubectl("apply", "--server-side", "--field-manager=turnout-tests", "-f", crds)
        cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", "-f", crds)

    assert done.returncode == 2
    assert "the cluster does not know Turnout's kinds: install the chart" in done.stderr
