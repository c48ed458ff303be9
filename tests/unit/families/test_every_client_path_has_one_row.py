import pytest

from turnout_api.vocabulary import Capability, Family, Lane
from turnout_router.families.errors import ApiFamily, StreamKind, UnknownPath, UnsupportedMediaType, WrongMethod
from turnout_router.families.paths import ENDPOINTS, BodyKind, Operation, Way, api_of, body_kind, find, needs, way

CLIENT_PATHS = [
    "/v1/models",
    "/v1/chat/completions",
    "/v1/completions",
    "/v1/responses",
    "/v1/embeddings",
    "/v1/rerank",
    "/v1/images/generations",
    "/v1/images/edits",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
    "/v1/audio/speech",
    "/v1/messages",
    "/v1/videos",
    "/v1/audio/music",
    "/api/chat",
    "/api/generate",
    "/api/embed",
    "/api/tags",
    "/api/show",
    "/sdapi/v1/txt2img",
    "/sdapi/v1/img2img",
]


def test_every_path_of_the_design_is_in_the_table():
    assert set(CLIENT_PATHS) <= {row.path for row in ENDPOINTS}


def test_no_path_and_method_stand_twice():
    assert len({(row.method, row.path) for row in ENDPOINTS}) == len(ENDPOINTS)


def test_a_row_is_found_by_method_and_path():
    match = find("POST", "/v1/chat/completions")
    assert (match.endpoint.operation, match.model) == (Operation.CHAT, "")


def test_head_is_get():
    assert find("HEAD", "/v1/models").endpoint.operation is Operation.LIST_MODELS


@pytest.mark.parametrize("name", ["cc11", "org/model:7b", "a b"])
def test_the_name_of_a_model_may_stand_in_the_path(name):
    match = find("GET", f"/v1/models/{name}")
    assert (match.endpoint.operation, match.model) == (Operation.SHOW_MODEL, name)


@pytest.mark.parametrize("path", ["/", "/v1", "/v1/models/", "/v1/chat/completions/", "/api/pull", "/V1/models"])
def test_a_path_outside_the_table_is_unknown(path):
    with pytest.raises(UnknownPath):
        find("GET", path)


def test_a_wrong_method_says_which_are_right():
    with pytest.raises(WrongMethod) as caught:
        find("DELETE", "/v1/chat/completions")
    assert caught.value.allowed == ("POST",)


@pytest.mark.parametrize(
    ("path", "api"),
    [
        ("/v1/messages", ApiFamily.ANTHROPIC),
        ("/v1/messages/batches", ApiFamily.ANTHROPIC),
        ("/api/chat", ApiFamily.OLLAMA),
        ("/api/pull", ApiFamily.OLLAMA),
        ("/sdapi/v1/options", ApiFamily.SDAPI),
        ("/v1/nothing", ApiFamily.OPENAI),
        ("/", ApiFamily.OPENAI),
    ],
)
def test_errors_of_unknown_paths_have_the_shape_of_the_api_around_them(path, api):
    assert api_of(path) is api


def test_ollama_streams_unless_told_otherwise_and_nobody_else_does():
    assert {row.path for row in ENDPOINTS if row.stream_default} == {"/api/chat", "/api/generate"}
    assert {row.path for row in ENDPOINTS if row.stream is StreamKind.NDJSON} == {"/api/chat", "/api/generate"}


@pytest.mark.parametrize(
    ("path", "family", "expected"),
    [
        ("/v1/messages", Family.LLAMA_CPP, Way.PASS),
        ("/v1/responses", Family.LLAMA_CPP, Way.PASS),
        ("/v1/messages", Family.OPENAI, Way.PASS),
        ("/v1/messages", Family.KOBOLD, Way.REFUSE),
        ("/v1/images/generations", Family.LLAMA_CPP, Way.REFUSE),
        ("/v1/audio/translations", Family.LLAMA_CPP, Way.REFUSE),
        ("/api/chat", Family.OLLAMA, Way.PASS),
        ("/api/chat", Family.LLAMA_CPP, Way.TRANSLATE),
        ("/api/embed", Family.OPENAI, Way.TRANSLATE),
    ],
)
def test_the_way_to_a_backend_depends_on_its_family(path, family, expected):
    assert way(find("POST", path).endpoint, family) is expected


def test_images_ask_for_vision_of_text_models_only():
    assert needs(find("POST", "/v1/chat/completions").endpoint, has_images=True) == {
        Capability.TEXT,
        Capability.VISION,
    }
    assert needs(find("POST", "/v1/chat/completions").endpoint, has_images=False) == {Capability.TEXT}
    assert needs(find("POST", "/v1/images/edits").endpoint, has_images=True) == {Capability.IMAGE}
    assert needs(find("GET", "/v1/models").endpoint, has_images=False) == frozenset()


def test_images_and_videos_are_the_image_lane_and_the_rest_that_runs_is_the_text_lane():
    for row in ENDPOINTS:
        image_side = row.capability in {Capability.IMAGE, Capability.VIDEO}
        assert row.lane is (None if row.is_local else Lane.IMAGE if image_side else Lane.TEXT), row.path


@pytest.mark.parametrize(
    ("path", "content_type", "kind"),
    [
        ("/v1/chat/completions", "application/json", BodyKind.JSON),
        ("/v1/chat/completions", "application/x-www-form-urlencoded", BodyKind.JSON),
        ("/v1/chat/completions", "", BodyKind.JSON),
        ("/v1/images/edits", "application/json", BodyKind.JSON),
        ("/v1/images/edits", "Multipart/Form-Data; boundary=x", BodyKind.MULTIPART),
        ("/v1/audio/transcriptions", "multipart/form-data; boundary=x", BodyKind.MULTIPART),
    ],
)
def test_the_content_type_decides_how_a_body_is_read(path, content_type, kind):
    assert body_kind(find("POST", path).endpoint, content_type) is kind


@pytest.mark.parametrize(
    ("path", "content_type"),
    [("/v1/chat/completions", "multipart/form-data; boundary=x"), ("/v1/audio/transcriptions", "application/json")],
)
def test_a_body_of_another_kind_is_refused(path, content_type):
    with pytest.raises(UnsupportedMediaType):
        body_kind(find("POST", path).endpoint, content_type)
