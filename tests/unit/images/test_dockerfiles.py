"""The Dockerfiles name what is there, let through by `.dockerignore`, and end as a user without rights."""

import importlib.util
import json
import re

import pytest


@pytest.fixture(scope="session", params=["sidecar", "operator"])
def dockerfile(request, pytestconfig):
    """(part, lines of the first stage, lines of the last stage)."""
    text = (pytestconfig.rootpath / f"Dockerfile.{request.param}").read_text()
    first, last = re.split(r"^FROM .*\n", text, flags=re.MULTILINE)[1:]
    return request.param, first.splitlines(), last.splitlines()


def test_what_is_copied_is_there_and_is_sent_to_the_builder(dockerfile, pytestconfig):
    allowed = {
        line[1:] for line in (pytestconfig.rootpath / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    copied = {source for line in dockerfile[1] if line.startswith("COPY ") for source in line.split()[1:-1]}

    assert copied == allowed
    assert all((pytestconfig.rootpath / source).exists() for source in copied)


def test_the_part_is_installed_by_the_script_that_the_tests_run(dockerfile):
    part, first, last = dockerfile

    steps = [line for line in first if line.startswith("RUN ")]
    assert steps == [
        f"RUN python images/install.py {part} /opt/turnout --only {step}" for step in ("dependencies", "package")
    ]
    assert "COPY --from=build /opt/turnout /opt/turnout" in last


def test_it_runs_without_rights_as_a_module_that_is_there(dockerfile):
    _, _, last = dockerfile
    (entry,) = [json.loads(line.removeprefix("ENTRYPOINT ")) for line in last if line.startswith("ENTRYPOINT ")]

    assert "USER 10001:10001" in last
    assert entry[:2] == ["python", "-m"]
    assert importlib.util.find_spec(f"{entry[2]}.__main__") is not None
