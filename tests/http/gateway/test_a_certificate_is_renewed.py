"""A router shows a renewed certificate without a restart, and keeps the old one where the new one cannot be used."""

import asyncio
import shutil
import ssl
import subprocess
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from turnout_api.config import RouterConfig
from turnout_router.router import Router

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
OPENSSL = ("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


def make(folder: Path) -> tuple[str, str]:
    folder.mkdir()
    cert, key = str(folder / "tls.crt"), str(folder / "tls.key")
    names = ("-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2")
    subprocess.run([*OPENSSL, *names, "-keyout", key, "-out", cert], check=True, capture_output=True)
    return cert, key


async def answers(port: int, trusted: str) -> bool:
    """Whether a client that trusts this certificate alone gets through."""
    context = ssl.create_default_context(cafile=trusted)
    try:
        async with (
            aiohttp.ClientSession() as session,
            session.get(f"https://127.0.0.1:{port}/", ssl=context) as response,
        ):
            return response.status == 401
    except aiohttp.ClientError:
        return False


async def test_a_renewed_certificate_is_shown_and_a_broken_one_is_not(cluster: Any, tmp_path: Path) -> None:
    (cert, key), (old, _), (new, new_key) = (make(tmp_path / name) for name in ("served", "old", "new"))
    shutil.copy(cert, old)
    config = {
        "cluster": {"role": "Standalone", "node_id": "alone"},
        "access": {"gateway_key_file": cluster.secret("key", "gateway-0123456789abcdef")},
        "listen": {"port": 0, "health_port": 0, "tls_cert_file": cert, "tls_key_file": key},
    }
    router = await asyncio.to_thread(Router, RouterConfig.model_validate(config))
    await router.start()
    try:
        assert await answers(router.port, old)
        assert not await answers(router.port, new)
        shutil.copy(new, cert)  # and not its key: they do not fit yet
        assert router.certificate is not None
        await asyncio.to_thread(router.certificate.follow)
        assert await answers(router.port, old)
        shutil.copy(new_key, key)
        async with asyncio.timeout(20):
            while not await answers(router.port, new):  # noqa: ASYNC110 - a look at it, as clients have
                await asyncio.sleep(0.05)
        assert not await answers(router.port, old)
    finally:
        await router.stop(drain_timeout_s=1)
