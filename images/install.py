"""Fills a virtual environment with one part of Turnout: `python images/install.py sidecar /opt/turnout`.

Problem: one lock file holds what everything needs, tests and tools too, and an image shall carry what its own extra needs and
nothing else, at the locked versions and with the locked hashes. pip takes versions from a constraints file but not hashes.

Idea: let pip plan what the project with that one extra takes under the lock as constraints (nothing is installed), take the
entries of just those packages out of the lock, and install them with `--require-hashes`. Then the project's own wheel, without
its dependencies. The first step needs no source, so that a builder keeps its layer while the source changes (`--only`).

Both Dockerfiles and the tests run this file. pip runs from an environment of its own, so the base image need not have one; the
environment that is made has none, and nothing is compiled: wheels only.
The build backend comes into pip's environment, from a lock of its own (`build.lock`), and stays there.
"""

import argparse
import json
import re
import subprocess
import tempfile
import tomllib
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD_LOCK = ROOT / "images" / "build.lock"
PIP_OPTIONS = ("-m", "pip", "--disable-pip-version-check", "--no-input")
LOCKED = ("--quiet", "--only-binary", ":all:", "--require-hashes", "--requirement")
"""What of a lock file pip installs: wheels, each with a hash that the lock has."""


def entries(lock: str) -> Iterator[tuple[str, str]]:
    """(package, its entry with hashes) of each entry in the lock's text; one package may have several, by marker."""
    for text in re.split(r"\n(?=\S)", lock.strip()):
        name = re.match(r"[A-Za-z0-9][A-Za-z0-9._-]*", text)
        if name is None:
            raise ValueError(f"no requirement: {text.splitlines()[0]}")
        yield canonical(name[0]), text


def subset(lock: str, packages: Iterable[str]) -> str:
    """The entries of those packages. Raises LookupError that names packages which the lock does not hold."""
    wanted = {canonical(package) for package in packages}
    found = [(name, text) for name, text in entries(lock) if name in wanted]
    if missing := wanted - {name for name, _ in found}:
        raise LookupError(f"not in the lock, run `make lock`: {', '.join(sorted(missing))}")
    return "\n".join(text for _, text in found) + "\n"


def versions(lock: str) -> str:
    """The lock without hashes: as constraints, hashes would make pip ask for one of the wheel that was just built."""
    return "".join(text.splitlines()[0].rstrip(" \\") + "\n" for _, text in entries(lock))


def canonical(package: str) -> str:
    """The one spelling of a package's name."""
    return re.sub(r"[-_.]+", "-", package).lower()


class Pip:
    """pip of one environment."""

    def __init__(self, python: Path) -> None:
        self._command = (str(python), *PIP_OPTIONS)

    def __call__(self, *arguments: str) -> None:
        """Run it. Raises CalledProcessError."""
        subprocess.run([*self._command, *arguments], check=True)


def install_dependencies(pip: Pip, extra: str, target: Path, work: Path) -> None:
    """Make the environment `target` with what the project and its extra need."""
    venv.create(target, with_pip=False)
    lock = (ROOT / "requirements.lock").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    locked = work / "extra.lock"
    needed = [*project["dependencies"], *project["optional-dependencies"][extra]]
    locked.write_text(subset(lock, _planned(pip, needed, lock, work)))
    pip("--python", str(_python(target)), "install", *LOCKED, str(locked))


def install_package(pip: Pip, target: Path, work: Path) -> None:
    """Put the project itself into the environment `target`."""
    pip("install", *LOCKED, str(BUILD_LOCK))
    # not isolated: pip would take whatever backend the index has today into an environment that it makes for the build
    alone = ("--no-build-isolation", "--check-build-dependencies", "--no-deps")
    pip("wheel", "--quiet", *alone, "--wheel-dir", str(work), str(ROOT))
    wheel = next(work.glob("turnout-*.whl"))
    pip("--python", str(_python(target)), "install", "--quiet", "--no-deps", "--no-index", str(wheel))


def _python(environment: Path) -> Path:
    return environment / "bin" / "python"


def _planned(pip: Pip, needed: Iterable[str], lock: str, work: Path) -> list[str]:
    """What pip would install."""
    constraints, report = work / "constraints.txt", work / "plan.json"
    constraints.write_text(versions(lock))
    plan = ("install", "--quiet", "--dry-run", "--ignore-installed", "--only-binary", ":all:", "--report", str(report))
    pip(*plan, "--constraint", str(constraints), *needed)
    return [item["metadata"]["name"] for item in json.loads(report.read_text())["install"]]


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Install one part of Turnout, locked, into a virtual environment.")
    parser.add_argument("extra", choices=["sidecar", "operator"])
    parser.add_argument("target", type=Path, help="the environment to make")
    parser.add_argument("--only", choices=["dependencies", "package"], help="one step of the two")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        venv.create(work / "tools", with_pip=True)
        pip = Pip(_python(work / "tools"))
        if options.only != "package":
            install_dependencies(pip, options.extra, options.target, work)
        if options.only != "dependencies":
            install_package(pip, options.target, work)


if __name__ == "__main__":
    main()
