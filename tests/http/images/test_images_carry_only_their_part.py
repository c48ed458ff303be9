"""What the Dockerfiles install, installed: the same script into an empty environment, packages from the registry."""

import json
import os
import subprocess
import sys

import pytest

PARTS = {
    "sidecar": ("turnout_router", {"uvloop", "argon2"}, {"kopf", "kubernetes", "typer", "rich", "pip", "pytest"}),
    "operator": (
        "turnout_operator",
        {"kopf", "kubernetes"},
        {"uvloop", "argon2", "httptools", "typer", "rich", "pip", "pytest"},
    ),
}
INSTALLED = """
import importlib.util, json, sys
print(json.dumps([name for name in sys.argv[1:] if importlib.util.find_spec(name)]))
"""


@pytest.fixture(scope="module", params=list(PARTS))
def image(request, tmp_path_factory, pytestconfig):
    """(package of the part, its python, modules that it needs, modules that it must not have)."""
    target = tmp_path_factory.mktemp("image") / request.param
    script = pytestconfig.rootpath / "images" / "install.py"
    # not compiled, which takes most of the time
    environment = os.environ | {"PIP_NO_COMPILE": "1"}
    command = [sys.executable, script, request.param, target]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    package, needed, foreign = PARTS[request.param]
    return package, target / "bin" / "python", needed, foreign


@pytest.mark.timeout(300)
def test_a_part_starts_and_has_nothing_of_the_other(image):
    package, python, needed, foreign = image

    helped = subprocess.run([python, "-I", "-m", package, "--help"], capture_output=True, text=True, check=False)
    asked = subprocess.run(
        [python, "-I", "-c", INSTALLED, *needed, *foreign], capture_output=True, text=True, check=True
    )

    assert (helped.returncode, helped.stderr) == (0, "")
    assert "--" in helped.stdout
    assert set(json.loads(asked.stdout)) == needed
