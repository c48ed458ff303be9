"""Links of the pages lead to files and headings that are there, and the pages know every command and folder of code."""

import re
from pathlib import Path

import pytest

from turnout_cli.main import COMMANDS

ROOT = Path(__file__).parents[2]
PAGES = sorted(page for where in ("*.md", "docs/*.md", "examples/**/*.md") for page in ROOT.glob(where))
ROOMS = sorted(
    folder.relative_to(ROOT)
    for package in ("crds/turnout_api", "operator/turnout_operator", "sidecar/turnout_router", "cli/turnout_cli")
    for folder in (ROOT / package).iterdir()
    if (folder / "__init__.py").exists()
)
assert PAGES
assert ROOMS


def anchors(page):
    """Of its headings, as GitHub makes them: lower case, no punctuation, hyphens for spaces."""
    prose = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ (.*)$", prose, flags=re.MULTILINE)
    words = [re.sub(r"\]\([^)]*\)", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[^\w\- ]", "", text).replace(" ", "-") for text in words}


def broken(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        path, _, anchor = link.partition("#")
        there = (page.parent / path).resolve() if path else page
        if "://" not in link and not (there.exists() and (not anchor or anchor in anchors(there))):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_each_link_leads_somewhere(page):
    assert list(broken(page)) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_the_readme_has_each_command(command):
    assert f"| `turnout {command}" in (ROOT / "README.md").read_text()


@pytest.mark.parametrize("room", ROOMS, ids=str)
def test_the_architecture_has_each_folder_of_code(room):
    assert f"`{room.name}/`" in (ROOT / "docs/architecture.md").read_text()
