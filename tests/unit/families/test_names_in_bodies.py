"""Model names in JSON bodies: replaced where models are named, and not one other byte."""

import json

import orjson
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from turnout_router.families.names import ModelNames, rewrite_request_model

PUBLIC = 'public/"name"'
RAW_PUBLIC = orjson.dumps(PUBLIC)


def answer(body):
    return ModelNames(PUBLIC).rewrite_json(body)


# An oracle that writes JSON itself: objects are lists of pairs, so that keys may be repeated.

KEYS = ["model", "response", "message", "content", "mod", 'x"model', 'model"', "a\\", ""]
TEXTS = st.one_of(
    st.sampled_from(
        ["local", PUBLIC, '"model":"local"', '{"model":"local"}', ',"model":', "\\", "}", "{", "[", '\\"', "é🙂"]
    ),
    st.text(max_size=8),
)
SPACES = st.sampled_from(["", " ", "\n", "\t ", "\r\n"])


class Object(list):
    """Pairs of (key as it is written, key as it is meant, value)."""


@st.composite
def keys(draw):
    key = draw(st.sampled_from(KEYS))
    written = json.dumps(key)
    if key and draw(st.integers(0, 9)) == 0:
        written = f'"\\u{ord(key[0]):04x}{json.dumps(key[1:])[1:]}'
    return written, key


def objects(values):
    return st.lists(st.tuples(keys(), values), max_size=5).map(lambda pairs: Object((w, k, v) for (w, k), v in pairs))


VALUES = st.recursive(
    st.one_of(TEXTS, st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False, allow_infinity=False)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), objects(inner)),
    max_leaves=12,
)


def written(value, space, at=lambda _path: None, path=()):
    """JSON text; `at(path)` gives what stands there instead of a string."""
    match value:
        case Object():
            inside = (f"{w}{space}:{space}{written(each, space, at, (*path, key))}" for w, key, each in value)
            return "{" + space + f"{space},{space}".join(inside) + space + "}"
        case list():
            return "[" + f"{space},".join(written(each, space, at, (*path, 0)) for each in value) + "]"
        case str():
            return at(path) or json.dumps(value, ensure_ascii=len(value) % 2 == 0)
        case _:
            return json.dumps(value)


def public_at(*paths):
    return lambda path: json.dumps(PUBLIC) if path in paths else None


@settings(max_examples=100)
@given(objects(VALUES), SPACES)
@example(Object([('"model"', "model", "a"), ('"x"', "x", Object([('"model"', "model", "b")]))]), "")
@example(Object([('"x"', "x", Object([('"model"', "model", "b")]))]), "")
@example(Object([('"message"', "message", Object([('"model"', "model", "b")]))]), " ")
def test_an_answer_differs_only_where_it_names_a_model(value, space):
    body = written(value, space).encode()
    expected = written(value, space, public_at(("model",), ("response", "model"), ("message", "model"))).encode()
    assert answer(body) == expected


@settings(max_examples=100)
@given(objects(VALUES), SPACES)
def test_a_request_differs_only_in_its_top_level_model(value, space):
    body = written(value, space).encode()
    assert rewrite_request_model(body, PUBLIC) == written(value, space, public_at(("model",))).encode()


@settings(max_examples=100)
@given(
    st.one_of(
        st.binary(max_size=40),
        VALUES.filter(lambda v: not isinstance(v, Object)).map(lambda v: written(v, "").encode()),
    )
)
@example(b'[{"model":"local"}]')
@example(b'"model":"local"')
@example(b'xx{"model":"local"}')
def test_what_is_no_json_object_is_not_touched(body):
    assume(not body.strip().startswith(b"{"))
    assert answer(body) is body


@settings(max_examples=100)
@given(objects(VALUES), st.integers(1, 20))
def test_a_body_that_breaks_off_never_raises(value, missing):
    answer(written(value, "").encode()[:-missing])


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"choices":[],"usage":null}',
        b'{"model":null}',
        b'{"model":{"name":"local"}}',
        b'{"content":"the \\"model\\": \\"local\\""}',
        b'{"message":{"tool_calls":[{"function":{"arguments":{"model":"local"}}}]}}',
        b'{"data":[{"model":"local"}],"has_more":false}',
        b'{"model":' + RAW_PUBLIC + b"}",
    ],
)
def test_a_body_that_names_no_model_comes_back_as_it_is(body):
    assert answer(body) is body


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b'{"model":"local","a":{"model":"local"}}', b'{"model":@,"a":{"model":"local"}}'),
        (b'{"a":{"model":"local"},"model":"x/y.gguf"}', b'{"a":{"model":"local"},"model":@}'),
        (b'{"a":[{"b":1}],"model":"local","t":{"c":{}}}', b'{"a":[{"b":1}],"model":@,"t":{"c":{}}}'),
        (b'{"t":{"b":{}},"a":{"c":{"model":"local"}}}', b'{"t":{"b":{}},"a":{"c":{"model":"local"}}}'),
        (b'{"model":"a","model":"b"}', b'{"model":@,"model":@}'),
        (b'{"mod\\u0065l":"local"}', b'{"mod\\u0065l":@}'),
        (b'{"response":{"model":"local","x":{"model":"local"}}}', b'{"response":{"model":@,"x":{"model":"local"}}}'),
        (b'{"type":"message_start","message":{"model":"local"}}', b'{"type":"message_start","message":{"model":@}}'),
        (b'\n{ "model" : "lo\\"cal" }\n', b'\n{ "model" : @ }\n'),
        (b'{"a":NaN,"model":"local","b":{"c":-Infinity}}', b'{"a":NaN,"model":@,"b":{"c":-Infinity}}'),
    ],
)
def test_names_are_replaced_where_models_are_named(before, after):
    assert answer(before) == after.replace(b"@", RAW_PUBLIC)


def test_a_request_keeps_the_models_inside_it():
    body = b'{"message":{"model":"a"},"response":{"model":"b"},"model":"c","tools":[{"model":"d"}]}'
    assert rewrite_request_model(body, "n") == body.replace(b'"c"', b'"n"')


def test_a_body_of_two_thousand_depths_is_read_without_recursion():
    nest = b"[" * 2000 + b"]" * 2000
    assert rewrite_request_model(b'{"a":%b,"model":"c","model":"c","b":%b}' % (nest, nest), "n").count(b'"n"') == 2


def test_a_name_that_changes_in_the_middle_is_followed():
    names = ModelNames("p")
    bodies = [b'{"model":"a"}', b'{"model":"a"}', b'{"model":"p"}', b'{"model" : "b","c":{}}', b'{"model":"a"}']
    assert [names.rewrite_json(body) for body in bodies] == [
        b'{"model":"p"}',
        b'{"model":"p"}',
        b'{"model":"p"}',
        b'{"model" : "p","c":{}}',
        b'{"model":"p"}',
    ]
