import asyncio

import pytest
from aiohttp import FormData, MultipartReader, StreamReader, hdrs
from aiohttp.base_protocol import BaseProtocol
from hypothesis import given
from hypothesis import strategies as st

from turnout_router.families.errors import GatewayError, InvalidBody
from turnout_router.families.multipart import MAX_PARTS, parse_form

TYPE = "multipart/form-data; boundary=b"
NAMES = st.text(st.characters(min_codepoint=32, max_codepoint=0x2FF, exclude_characters='"\\\r\n\x7f'), min_size=1)
VALUES = st.binary(max_size=200) | st.sampled_from([b"\r\n", b"\r\n--", b"--", b"\r\n\r\n", b"\n--b--", b"\r"])


class Sink:
    """Where aiohttp's writer writes."""

    def __init__(self):
        self.data = bytearray()

    async def write(self, chunk):
        self.data += chunk


async def written(fields):
    """A form as aiohttp writes it: (body, content type)."""
    data = FormData(default_to_multipart=True)
    for name, value, filename in fields:
        data.add_field(name, value, filename=filename)
    payload, sink = data(), Sink()
    await payload.write(sink)
    return bytes(sink.data), payload.headers[hdrs.CONTENT_TYPE]


async def read_back(body, content_type, loop):
    """The same form as aiohttp reads it: [(name, value)]."""
    stream = StreamReader(BaseProtocol(loop), 2**20, loop=loop)
    stream.feed_data(body)
    stream.feed_eof()
    reader, found = MultipartReader({hdrs.CONTENT_TYPE: content_type}, stream), []
    while (part := await reader.next()) is not None:
        found.append((part.name, bytes(await part.read())))
    return found


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as made:
        yield made


@given(
    before=st.lists(st.tuples(NAMES.filter(lambda name: name != "model"), VALUES, st.just("f.wav"))),
    after=st.lists(st.tuples(NAMES.filter(lambda name: name != "model"), VALUES, st.just("f.wav"))),
    model=st.text(min_size=1),
    local=st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1),
)
def test_a_form_that_aiohttp_writes_is_read_and_rewritten_as_aiohttp_reads_it(runner, before, after, model, local):
    body, content_type = runner.run(written([*before, ("model", model, None), *after]))
    form = parse_form(body, content_type)
    assert form.text(body, "model", 10_000) == model
    spliced = form.with_model(body, local)
    was = runner.run(read_back(body, content_type, runner.get_loop()))
    now = runner.run(read_back(spliced, content_type, runner.get_loop()))
    assert [name for name, _ in now] == [name for name, _ in was]
    assert [part for part in now if part[0] != "model"] == [part for part in was if part[0] != "model"]
    assert dict(now)["model"] == local.encode()


def part(name, value, extra=""):
    return f'--b\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n\r\n{value}\r\n'.encode()


def test_only_the_value_changes():
    body = b"preamble\r\n" + part("file", "a\r\nb", '; filename="x"') + part("model", "old") + b"--b--\r\nepilogue"
    assert parse_form(body, TYPE).with_model(body, "neu-ß") == body.replace(b"old", "neu-ß".encode())


def test_an_empty_value_is_read_and_replaced():
    body = part("model", "") + b"--b--"
    form = parse_form(body, TYPE)
    assert form.text(body, "model", 10) == ""
    assert form.with_model(body, "m") == part("model", "m") + b"--b--"


def test_a_form_without_model_gets_one_as_its_first_part():
    body = part("file", "x", '; filename="x"') + b"--b--\r\n"
    spliced = parse_form(body, TYPE).with_model(body, "m")
    assert spliced == part("model", "m") + body
    assert parse_form(spliced, TYPE).text(spliced, "model", 10) == "m"


def test_a_file_may_hold_what_looks_like_a_field():
    lure = 'Content-Disposition: form-data; name="model"\r\n\r\nlure'
    body = part("file", lure, '; filename="x; name=\\"model\\""') + part("model", "true-one") + b"--b--\r\n"
    assert parse_form(body, TYPE).text(body, "model", 100) == "true-one"


@pytest.mark.parametrize(
    "content_type",
    [
        'multipart/form-data; charset=x; boundary="b"',
        "multipart/form-data;boundary=b",
        "multipart/form-data; Boundary=b ; x=y",
    ],
)
def test_the_boundary_is_found_however_it_is_written(content_type):
    body = part("model", "m") + b"--b--\r\n"
    assert parse_form(body, content_type).text(body, "model", 10) == "m"


@pytest.mark.parametrize(
    "content_type",
    [
        "multipart/form-data",
        "multipart/form-data; boundary=",
        'multipart/form-data; boundary="a b "',
        "multipart/form-data; boundary=" + "x" * 71,
        "multipart/form-data; boundary=b; boundary=c",
        "multipart/form-data; boundary=ü",
    ],
)
def test_a_content_type_without_a_right_boundary_is_refused(content_type):
    with pytest.raises(InvalidBody):
        parse_form(part("model", "m") + b"--b--\r\n", content_type)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"--b",
        b"--b\r\n",
        b"no boundary at all",
        part("model", "m"),
        part("model", "m").replace(b"--b\r\n", b"--bx\r\n") + b"--b--",
        part("model", "m").replace(b"\r\n", b"\n") + b"--b--",
        b"--b\r\n\r\nno headers\r\n--b--",
        b'--b\r\nContent-Disposition: form-data; filename="a\\"; name="model"\r\n\r\nm\r\n--b--',
        b'--b\r\nContent-Disposition: form-data; name="a"; name="model"\r\n\r\nm\r\n--b--',
        b"--b\r\nContent-Disposition: form-data; nope=model\r\n\r\nm\r\n--b--",
        part("a", "x") * (MAX_PARTS + 1) + b"--b--",
    ],
    ids=lambda body: repr(body[:60]),
)
def test_a_malformed_form_is_an_invalid_body(body):
    with pytest.raises(InvalidBody):
        parse_form(body, TYPE)


@pytest.mark.parametrize(
    "body",
    [
        part("model", "a") + part("model", "b") + b"--b--",
        part("model", "a", '; filename="m"') + b"--b--",
        part("model", "YQ==").replace(b"\r\n\r\n", b"\r\nContent-Transfer-Encoding: base64\r\n\r\n", 1) + b"--b--",
        part("mo\\del", "x") + b"--b--",
        part("model", "x" * 101) + b"--b--",
        part("model", "x").replace(b"\r\n\r\nx", b"\r\n\r\n\xff") + b"--b--",
    ],
)
def test_a_model_that_could_be_read_in_two_ways_is_refused(body):
    form = parse_form(body, TYPE)
    with pytest.raises(InvalidBody):
        form.text(body, "model", 100)


def test_a_name_with_a_line_break_is_never_spliced():
    body = part("model", "a") + b"--b--"
    with pytest.raises(ValueError, match="line breaks"):
        parse_form(body, TYPE).with_model(body, "a\r\n--b--")


@given(
    st.lists(
        st.sampled_from(
            [b"--b", b"--", b"\r\n", b"\r", b": ", b";", b'name="model"', b"Content-Disposition", b"x", b'"']
        )
    )
)
def test_no_bytes_raise_anything_but_our_errors(pieces):
    body = b"".join(pieces)
    try:
        form = parse_form(body, TYPE)
        form.text(body, "model", 100)
    except GatewayError:
        return
    assert all(0 <= part.start <= part.end <= len(body) for part in form.parts)
