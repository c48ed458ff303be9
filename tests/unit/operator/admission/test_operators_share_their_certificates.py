"""Two operators keep one Secret: what one makes the other shows, and neither takes away what is trusted."""

import asyncio
import base64
import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509

from turnout_operator.admission.keeper import Keeper, server_context
from turnout_operator.api import ApiError

START = datetime(2026, 1, 1, tzinfo=UTC)
HOOKS = [("MutatingWebhookConfiguration", "hooks"), ("ValidatingWebhookConfiguration", "hooks")]


class Apiserver:
    """One Secret, with optimistic locking, and whom it trusts."""

    def __init__(self) -> None:
        self.kept: dict[str, Any] | None = None
        self.version = 0
        self.trusted: dict[tuple[str, str], str] = {}
        self.writes = 0

    async def secret(self, _namespace: str, _name: str) -> dict[str, Any] | None:
        return self.kept

    async def write_secret(self, manifest: dict[str, Any]) -> None:
        if manifest["metadata"].get("resourceVersion", "0") != str(self.version):
            raise ApiError(409, "somebody else wrote it")
        self.version += 1
        self.writes += 1
        metadata = manifest["metadata"] | {"resourceVersion": str(self.version)}
        self.kept = manifest | {"metadata": metadata}

    async def trust(self, kind: str, name: str, authorities: str) -> None:
        self.trusted[kind, name] = authorities

    def shown(self) -> x509.Certificate:
        assert self.kept is not None
        return x509.load_pem_x509_certificate(base64.b64decode(self.kept["data"]["tls.crt"]))


@pytest.fixture
def api() -> Apiserver:
    return Apiserver()


class Clock:
    now = START


def keeper(api: Any, clock: Clock) -> Keeper:
    names = ("turnout.system.svc",)
    kept = {"namespace": "system", "secret": "turnout-webhook", "webhooks": HOOKS, "names": names, "look_s": 60.0}
    return Keeper(api, server_context(), now=lambda: clock.now, **kept)


async def test_both_configurations_trust_the_same(api: Apiserver) -> None:
    await keeper(api, Clock()).look()

    assert list(api.trusted) == HOOKS
    assert len(set(api.trusted.values())) == 1


async def test_of_two_that_begin_at_once_the_second_takes_what_the_first_made(api: Apiserver) -> None:
    first, second = keeper(api, Clock()), keeper(api, Clock())
    seen = []

    async def read_before_the_other_writes(_namespace: str, _name: str) -> None:
        seen.append(None)

    original, api.secret = api.secret, read_before_the_other_writes  # type: ignore[method-assign] # both find nothing
    await first.look()
    with pytest.raises(ApiError, match="409"):
        await second.look()
    assert len(seen) == 2
    assert not second.ready.is_set()

    api.secret = original  # type: ignore[method-assign] # as above
    trusted = dict(api.trusted)
    await second.look()

    assert second.ready.is_set()
    assert (api.trusted, api.writes) == (trusted, 1)


async def test_the_second_waits_a_moment_and_complains_of_nothing(
    api: Apiserver, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("turnout_operator.admission.keeper._RETRY_S", 0.0)
    first, second = keeper(api, Clock()), keeper(api, Clock())
    original, read = api.secret, asyncio.Event()

    async def before_the_other_writes(namespace: str, name: str) -> dict[str, Any] | None:
        if read.is_set():
            return await original(namespace, name)
        read.set()
        await first.look()
        return None

    api.secret = before_the_other_writes  # type: ignore[method-assign] # as above
    task = asyncio.create_task(second.run())
    await second.ready.wait()
    task.cancel()

    assert api.writes == 1
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_over_two_years_what_either_shows_is_trusted(api: Apiserver) -> None:
    clock = Clock()
    keepers = [keeper(api, clock), keeper(api, clock)]
    for day in range(2 * 365):
        clock.now = START + timedelta(days=day)
        for one in keepers:
            before = dict(api.trusted)
            await one.look()
            issuers = {a.subject for a in x509.load_pem_x509_certificates(api.trusted[HOOKS[0]].encode())}
            assert api.shown().issuer in issuers
            if before:  # the other one may show what was there until it looks again
                old = {a.subject for a in x509.load_pem_x509_certificates(before[HOOKS[0]].encode())}
                assert old & issuers
    assert 10 < api.writes < 25, "once for each renewal, whoever of the two makes it"
