"""gzip and deflate, in any chunking and in bounded steps."""

import gzip
import zlib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from turnout_router.upstream.decoding import STEP_BYTES, CorruptData, Decoder


def raw_deflate(data):
    engine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return engine.compress(data) + engine.flush()


CODED = {
    "gzip": (b"gzip", gzip.compress),
    "x-gzip": (b"x-gzip", gzip.compress),
    "gzip in members": (b"gzip", lambda data: gzip.compress(data[:7]) + gzip.compress(b"") + gzip.compress(data[7:])),
    "padded gzip": (b"gzip", lambda data: gzip.compress(data) + bytes(40)),
    "deflate": (b"deflate", zlib.compress),
    "raw deflate": (b"deflate", raw_deflate),
}


def decode(coding, pieces):
    decoder = Decoder(coding)
    output = []
    for piece in pieces:
        decoder.feed(piece)
        while step := decoder.step():
            assert len(step) <= STEP_BYTES
            output.append(step)
    return b"".join(output), decoder.finished


@settings(max_examples=100)
@given(st.sampled_from(sorted(CODED)), st.binary(max_size=300), st.integers(1, 60))
@example("gzip in members", b"0123456789", 1)
def test_any_chunking_decodes_to_what_was_coded(way, data, size):
    coding, encode = CODED[way]
    coded = encode(data)
    assert decode(coding, [coded[i : i + size] for i in range(0, len(coded), size)]) == (data, True)


@pytest.mark.parametrize("way", CODED)
def test_a_few_bytes_that_stand_for_many_come_out_in_steps(way):
    coding, encode = CODED[way]
    data = bytes(10 * STEP_BYTES)
    assert decode(coding, [encode(data)]) == (data, True)


def test_thousands_of_empty_members_are_no_recursion():
    assert decode(b"gzip", [gzip.compress(b"") * 5000 + gzip.compress(b"end")]) == (b"end", True)


def test_what_was_flushed_comes_out_before_the_end():
    """An event of a compressed stream must not wait for the next one."""
    engine = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    decoder = Decoder(b"gzip")
    for event in (b"data: 1\n\n", b"data: 2\n\n"):
        decoder.feed(engine.compress(event) + engine.flush(zlib.Z_SYNC_FLUSH))
        assert decoder.step() == event
        assert decoder.step() == b""
    assert not decoder.finished


@pytest.mark.parametrize("way", ["gzip", "deflate", "raw deflate"])
@pytest.mark.parametrize("missing", [1, 9])
def test_what_breaks_off_is_not_finished(way, missing):
    coding, encode = CODED[way]
    assert not decode(coding, [encode(b"0123456789" * 5)[:-missing]])[1]


def test_nothing_at_all_is_whole():
    assert decode(b"gzip", []) == (b"", True)


@pytest.mark.parametrize("coding", [b"gzip", b"deflate"])
def test_other_bytes_are_corrupt(coding):
    with pytest.raises(CorruptData):
        decode(coding, [b"\xff{} no such coding"])


def test_a_coding_that_is_not_known_is_refused():
    with pytest.raises(ValueError, match="br"):
        Decoder(b"br")
