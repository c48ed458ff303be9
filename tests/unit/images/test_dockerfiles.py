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


def test_it_says_what_it_is(dockerfile):
    _, _, last = dockerfile
    labels = set(re.findall(r"org\.opencontainers\.image\.(\w+)=", "\n".join(last)))

    assert labels == {"title", "description", "licenses", "version", "revision"}


def test_nothing_is_installed_beside_what_the_first_stage_made(dockerfile):
    _, _, last = dockerfile

    commands = [line for line in last if line.startswith(("RUN ", "COPY ", "ADD "))]
    assert [command.split()[0] for command in commands] == ["RUN", "COPY"]
    assert "uninstall" in commands[0]


def test_both_stages_stand_on_the_one_base_that_an_argument_names(pytestconfig, dockerfile):
    text = (pytestconfig.rootpath / f"Dockerfile.{dockerfile[0]}").read_text()

    assert len(re.findall(r"^ARG BASE=", text, re.MULTILINE)) == 1
    assert re.findall(r"^FROM (\S+)", text, re.MULTILINE) == ["${BASE}", "${BASE}"]


def test_all_images_stand_on_one_exact_version_by_default(pytestconfig):
    root = pytestconfig.rootpath
    files = [
        root / "Dockerfile.sidecar",
        root / "Dockerfile.operator",
        root / "examples/kubernetes/backends/Dockerfile",
    ]

    found = {base for file in files for base in re.findall(r"^ARG BASE=(.*)$", file.read_text(), re.MULTILINE)}

    assert len(found) == 1
    assert re.fullmatch(r"python:3\.11\.\d+-slim-bookworm", found.pop())
