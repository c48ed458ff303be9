"""The parser and the answer without a socket: hypothesis runs many."""

import asyncio
from unittest.mock import Mock

from hypothesis import given, settings
from hypothesis import strategies as st

from turnout_router.upstream.connection import Connection
from turnout_router.upstream.interface import Origin, UpstreamRequest

GET = UpstreamRequest("GET", "/v1/models")


@settings(max_examples=30)
@given(st.lists(st.binary(min_size=1, max_size=50), max_size=6), st.data())
def test_any_chunked_body_survives_any_chunking(chunks, data):
    wire = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    wire += b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"
    cuts = sorted(data.draw(st.sets(st.integers(1, len(wire) - 1), max_size=10)))
    pieces = [wire[i:j] for i, j in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    assert asyncio.run(_fed(pieces)) == b"".join(chunks)


async def _fed(pieces):
    idle = Mock()
    connection = Connection(Origin("h", 1), on_idle=idle, on_lost=Mock())
    transport = Mock()
    transport.is_closing.return_value = False
    transport.get_write_buffer_size.return_value = 0
    connection.connection_made(transport)
    answer = connection.start(b"", GET, None)
    for piece in pieces:
        connection.data_received(piece)
    idle.assert_called_once_with(connection)
    return await answer.read_all(10_000)
