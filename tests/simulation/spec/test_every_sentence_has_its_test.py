"""The index in `sentences.py` names tests that exist, and every test of this folder."""

import ast
import runpy
from pathlib import Path

HERE = Path(__file__).parent
TESTS = HERE.parents[1]
INDEX = runpy.run_path(str(HERE / "sentences.py"))
FILES: dict[str, str] = INDEX["FILES"]
NAMED = [test for paragraph in INDEX["SENTENCES"].values() for _, tests in paragraph for test in tests]


def _tests_of(path: Path) -> set[str]:
    functions = [
        node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    return {function.name for function in functions if function.name.startswith("test_")}


def test_every_test_that_is_named_exists():
    known = {f"{short}::{name}" for short, path in FILES.items() for name in _tests_of(TESTS / path)}
    assert [test for test in NAMED if test not in known] == []


def test_every_sentence_has_a_test():
    assert [words for paragraph in INDEX["SENTENCES"].values() for words, tests in paragraph if not tests] == []


def test_every_test_of_a_sentence_is_named():
    folders = (HERE, TESTS / "http" / "lending" / "spec")
    short_of = {TESTS / path: short for short, path in FILES.items()}
    written = {path for folder in folders for path in folder.glob("test_*.py") if path != Path(__file__)}
    assert written <= short_of.keys()
    found = {f"{short_of[path]}::{name}" for path in written for name in _tests_of(path)}
    assert found - set(NAMED) == set()
