import json

import ollama
from openai.types import Model

from turnout_api.vocabulary import Capability
from turnout_router.families.listing import (
    ListedModel,
    ollama_ps,
    ollama_show,
    ollama_tags,
    ollama_version,
    openai_model,
    openai_models,
)

TEXT = ListedModel(
    name="cc11",
    created_at=1_760_000_000.0,
    capabilities=frozenset({Capability.TEXT, Capability.VISION}),
    context_window=8192,
    digest="sha256:abc",
    backend_family="LlamaCpp",
    loaded=True,
)
FLUX = ListedModel(name="flux", created_at=1_760_000_000.0, capabilities=frozenset({Capability.IMAGE}))


def test_openai_lists_names():
    body = json.loads(openai_models([TEXT, FLUX]))
    assert body["object"] == "list"
    assert [Model(**item).id for item in body["data"]] == ["cc11", "flux"]
    assert Model(**json.loads(openai_model(TEXT))).created == 1_760_000_000


def test_ollama_lists_names():
    models = ollama.ListResponse(**json.loads(ollama_tags([TEXT, FLUX]))).models
    assert [(model.model, model.digest) for model in models] == [("cc11", "abc"), ("flux", "")]
    assert models[0].details.family == "llamacpp"


def test_ps_lists_what_is_loaded():
    models = ollama.ProcessResponse(**json.loads(ollama_ps([TEXT, FLUX], 1_760_000_001.0))).models
    assert [(model.name, model.context_length) for model in models] == [("cc11", 8192)]


def test_show_tells_context_window_and_capabilities():
    shown = ollama.ShowResponse(**json.loads(ollama_show(TEXT)))
    architecture = shown.modelinfo["general.architecture"]
    assert shown.modelinfo[f"{architecture}.context_length"] == 8192
    assert shown.capabilities == ["completion", "tools", "vision"]
    assert ollama.ShowResponse(**json.loads(ollama_show(FLUX))).capabilities == []


def test_the_version_can_be_compared():
    assert [int(part) for part in json.loads(ollama_version())["version"].split(".")]
