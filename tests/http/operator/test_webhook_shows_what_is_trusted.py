"""The webhook over real TLS: it shows what the API server was told to trust, also after its certificate was renewed."""

import asyncio
import base64
import ssl
from datetime import UTC, datetime, timedelta

import aiohttp
import pytest

from turnout_operator.admission.certificates import renewed
from turnout_operator.admission.injector import Injector
from turnout_operator.admission.keeper import Keeper, server_context
from turnout_operator.admission.server import INJECT_PATH, VALIDATE_PATH, serve_admission
from turnout_operator.admission.validator import Validator
from turnout_operator.api import ApiError
from turnout_operator.children import RouterPods
from turnout_operator.known import Known

POD = {"metadata": {"labels": {}}, "spec": {"containers": [{"name": "c"}]}}
WEBHOOKS = [("MutatingWebhookConfiguration", "hook"), ("ValidatingWebhookConfiguration", "hook")]
REVIEW = {"request": {"uid": "u", "namespace": "gpus", "object": POD}}


class Api:
    """Keeps one Secret, and what it was told to trust."""

    def __init__(self) -> None:
        self.kept = None
        self.trusted = ""
        self.away = False

    async def secret(self, namespace, name):
        assert (namespace, name) == ("system", "certs")
        return self.kept

    async def write_secret(self, manifest):
        version = str(int(manifest["metadata"].get("resourceVersion", "0")) + 1)
        self.kept = manifest | {"metadata": manifest["metadata"] | {"resourceVersion": version}}

    async def trust(self, kind, webhook, authorities):
        assert (kind, webhook) in WEBHOOKS
        if self.away:
            raise ApiError(0, "away")
        self.trusted = authorities


@pytest.fixture
def api():
    return Api()


@pytest.fixture
async def webhook(api):
    """Served; `webhook.keeper`, `webhook.clock`, and `webhook.ask()` as the API server would."""
    clock = {"now": datetime.now(UTC)}
    context = server_context()

    async def nobody(_namespace):
        return Known()

    class Webhook:
        def __init__(self, port: int) -> None:
            self.clock = clock
            self.keeper = Keeper(
                api, context, namespace="system", secret="certs", webhooks=WEBHOOKS,
                names=("127.0.0.1",), look_s=60.0, now=lambda: clock["now"],
            )  # fmt: skip
            self._url = f"https://127.0.0.1:{port}"

        async def ask(self, trusted: str, body: object = REVIEW, path: str = INJECT_PATH) -> tuple[int, str]:
            """Status and text; on a connection of its own."""
            verify = ssl.create_default_context(cadata=trusted) if trusted else ssl.create_default_context()
            async with (
                aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=verify)) as session,
                session.post(self._url + path, json=body) as answer,
            ):
                return answer.status, await answer.text()

        async def shown(self) -> str:
            """The certificate."""
            return await asyncio.to_thread(ssl.get_server_certificate, ("127.0.0.1", port))

    injector, validator = Injector(["gpus"], RouterPods(), {}, nobody), Validator(["gpus"], {}, nobody)
    async with serve_admission(injector, validator, context, host="127.0.0.1", port=0) as port:
        yield Webhook(port)


async def test_it_is_trusted_by_what_the_api_server_was_told(api, webhook):
    await webhook.keeper.look()

    status, text = await webhook.ask(api.trusted)

    assert (status, '"allowed": true' in text) == (200, True)
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await webhook.ask("")


async def test_a_second_look_writes_nothing(api, webhook):
    await webhook.keeper.look()
    before = api.kept

    await webhook.keeper.look()

    assert api.kept is before


async def test_a_renewed_certificate_is_shown_without_a_restart(api, webhook):
    webhook.clock["now"] = datetime.now(UTC) - timedelta(days=61)
    await webhook.keeper.look()
    first = await webhook.shown()
    told = api.trusted

    webhook.clock["now"] = datetime.now(UTC)
    await webhook.keeper.look()

    assert (await webhook.ask(told))[0] == 200
    assert await webhook.shown() != first
    assert api.trusted == told


async def test_a_secret_that_was_deleted_is_made_anew(api, webhook):
    await webhook.keeper.look()
    told = api.trusted

    api.kept = None
    await webhook.keeper.look()

    assert (await webhook.ask(api.trusted))[0] == 200
    assert api.trusted != told


async def test_what_is_not_trusted_yet_is_not_shown(api, webhook):
    await webhook.keeper.look()
    first = await webhook.shown()
    api.kept, api.away = None, True

    with pytest.raises(ApiError):
        await webhook.keeper.look()

    assert await webhook.shown() == first


async def test_texts_that_are_no_certificates_are_replaced(api, webhook):
    await webhook.keeper.look()
    api.kept["data"]["ca.crt"] = "bm9uZQ=="

    await webhook.keeper.look()

    assert (await webhook.ask(api.trusted))[0] == 200


@pytest.mark.parametrize("file", ["tls.crt", "tls.key", "ca.crt", "ca.key"])
async def test_what_does_not_belong_together_is_replaced(api, webhook, file):
    other = renewed(None, ["127.0.0.1"], datetime.now(UTC))
    fields = {"ca.crt": "authorities", "ca.key": "authority_key", "tls.crt": "certificate", "tls.key": "key"}
    await webhook.keeper.look()
    api.kept["data"][file] = base64.b64encode(getattr(other, fields[file]).encode()).decode()

    await webhook.keeper.look()

    assert (await webhook.ask(api.trusted))[0] == 200


@pytest.mark.parametrize("path", [INJECT_PATH, VALIDATE_PATH])
@pytest.mark.parametrize("body", [None, [], {}, {"request": {"uid": "u"}}])
async def test_what_is_no_review_is_a_400(api, webhook, body, path):
    await webhook.keeper.look()

    assert (await webhook.ask(api.trusted, body, path))[0] == 400
