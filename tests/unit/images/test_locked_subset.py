"""An image installs the lock's own entries of what it needs, with their hashes and markers, and nothing else."""

import importlib.util
import re
import tomllib

import pytest
from packaging.requirements import Requirement

LOCK = """\
aiohttp==3.14.5 \\
    --hash=sha256:aa \\
    --hash=sha256:ab
colorama==0.4.6 ; sys_platform == 'win32' \\
    --hash=sha256:cc
typing-extensions==4.16.0 \\
    --hash=sha256:dd
"""


@pytest.fixture(scope="session")
def installer(pytestconfig):
    spec = importlib.util.spec_from_file_location("install", pytestconfig.rootpath / "images" / "install.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_entries_of_the_wanted_packages_stay_whole(installer):
    assert installer.subset(LOCK, ["Typing_Extensions"]) == "typing-extensions==4.16.0 \\\n    --hash=sha256:dd\n"


def test_a_package_that_is_not_locked_is_named(installer):
    with pytest.raises(LookupError, match="not in the lock, run `make lock`: pip, wheel"):
        installer.subset(LOCK, ["aiohttp", "wheel", "pip"])


def test_constraints_keep_versions_and_markers_without_hashes(installer):
    assert installer.versions(LOCK).splitlines() == [
        "aiohttp==3.14.5",
        "colorama==0.4.6 ; sys_platform == 'win32'",
        "typing-extensions==4.16.0",
    ]


def test_the_lock_of_the_repository_is_understood(installer, pytestconfig):
    names = [name for name, _ in installer.entries((pytestconfig.rootpath / "requirements.lock").read_text())]

    assert {"aiohttp", "kopf", "kubernetes", "pydantic", "uvloop"} <= set(names)


def test_what_builds_the_package_is_locked(installer, pytestconfig):
    wanted = tomllib.loads((pytestconfig.rootpath / "pyproject.toml").read_text())["build-system"]["requires"]
    locked = dict(installer.entries(installer.BUILD_LOCK.read_text()))

    for requirement in map(Requirement, wanted):
        version = re.match(r"[\w.-]+==(\S+)", locked[requirement.name])
        assert version is not None
        assert requirement.specifier.contains(version[1])
    assert all("--hash=sha256:" in entry for entry in locked.values())
