"""JSON that other programs write is read as kubectl reads it, although some of it is no YAML."""

import json

import pytest

from turnout_api.yamlnodes import compose

VALUE = {
    "kind": "FrontendModel",
    "text": 'a "quoted" \\ud83d path\\\\, 😀 beyond, a\ttab and a\nline',
    "ends of lines": "a\x85b\u2028c\u2029d",
    "odd": "\x7f\x80\ufeff\u0000\u001f/",
    "numbers": [1, -2.5, 1e30, True, None],
    "empty": {},
}


@pytest.mark.parametrize("is_ascii", [True, False], ids=["escaped", "as it is"])
@pytest.mark.parametrize("indent", [None, 2, "\t"], ids=["one line", "spaces", "tabs"])
@pytest.mark.parametrize("before", ["", "\n", "\ufeff", "\t"], ids=["plain", "a line before", "a mark", "a tab before"])
def test_json_is_read_as_it_is_written(before, indent, is_ascii):
    text = before + json.dumps(VALUE, ensure_ascii=is_ascii, indent=indent)

    (found,) = compose(text)

    assert found.value == VALUE
    assert found.problems == []


def test_each_value_keeps_its_line():
    (found,) = compose('{\n\t"spec": {\n\t\t"message": "\\ud83d\\ude00",\n\t\t"tag": "x"\n\t}\n}\n')

    assert found.value == {"spec": {"message": "😀", "tag": "x"}}
    assert found.lines["spec", "tag"] == 4


@pytest.mark.parametrize("text", ['a: "\\ud83d\\ude00"', '{"a": "\\ud83d"}', 'a: "x \\udfff"'])
def test_half_a_character_is_told_at_its_line(text):
    (found,) = compose(f"# a comment\n{text}\n" if text.startswith("a") else f"\n{text}")

    assert [line for line, _ in found.problems] == [2]
    assert "no characters" in found.problems[0][1]


def test_a_mapping_of_yaml_may_begin_with_a_brace():
    (found,) = compose("{a: [x, yes], b: 0x10}")

    assert found.value == {"a": ["x", True], "b": 16}
