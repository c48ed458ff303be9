"""A mounted certificate is shown to who connects, and another one once it is written anew; halves that do not fit are not."""

import asyncio
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest

from turnout_operator.admission.certificates import Bundle, renewed
from turnout_operator.admission.keeper import server_context
from turnout_operator.admission.mounted import Mounted

NAMES = ("turnout.system.svc", "127.0.0.1")


@pytest.fixture(scope="module")
def bundles() -> list[Bundle]:
    return [renewed(None, NAMES, datetime.now(UTC)) for _ in range(2)]


def write(folder: Path, certificate: str, key: str) -> None:
    (folder / "tls.crt").write_text(certificate)
    (folder / "tls.key").write_text(key)


async def shown(context: ssl.SSLContext) -> str:
    """PEM of what a server with the context shows."""

    async def served(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(served, "127.0.0.1", 0, ssl=context)
    async with server:
        address = server.sockets[0].getsockname()
        return await asyncio.to_thread(ssl.get_server_certificate, address)


async def test_and_the_next_one_when_it_is_written_anew(tmp_path: Path, bundles: list[Bundle]) -> None:
    context = server_context()
    mounted = Mounted(tmp_path, context)
    for bundle in bundles:
        write(tmp_path, bundle.certificate, bundle.key)
        assert mounted.look()
        assert (await shown(context)).split() == bundle.certificate.split()


async def test_what_does_not_fit_changes_nothing(
    tmp_path: Path, bundles: list[Bundle], caplog: pytest.LogCaptureFixture
) -> None:
    context = server_context()
    mounted = Mounted(tmp_path, context)
    assert not mounted.look()  # nothing is mounted yet
    write(tmp_path, bundles[0].certificate, bundles[0].key)
    assert mounted.look()

    write(tmp_path, bundles[1].certificate, bundles[0].key)

    assert not mounted.look()
    assert not mounted.look()
    assert len([record for record in caplog.records if record.levelname == "WARNING"]) == 2, "said once"
    assert (await shown(context)).split() == bundles[0].certificate.split()
