"""The webhooks from start to end: the server, and the task that keeps what it shows."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from turnout_operator.admission.injector import Injector
from turnout_operator.admission.keeper import Keeper, server_context
from turnout_operator.admission.mounted import Mounted
from turnout_operator.admission.server import serve_admission
from turnout_operator.admission.validator import Validator
from turnout_operator.api import Api

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where the webhooks are, and what is called how."""

    configuration: str
    """The MutatingWebhookConfiguration."""
    namespace: str
    """Of `secret` and of the Service."""
    secret: str
    """Holds certificates; it is made."""
    names: tuple[str, ...]
    """Under which the API server calls."""
    host: str = "0.0.0.0"  # noqa: S104 - the API server calls from outside the pod
    port: int = 9443
    validating: str = ""
    """The ValidatingWebhookConfiguration; empty = there is none, and the status alone says what is wrong."""
    certificates: Path | None = None
    """A folder in which somebody else keeps them, and their trust too; None = the operator does."""


@asynccontextmanager
async def admitting(
    webhook: Webhook, injector: Injector, validator: Validator, api: Api, *, look_s: float
) -> AsyncIterator[None]:
    """Serve until the end of the block. Certificates are looked at every `look_s`."""
    context = server_context()
    keeper: Keeper | Mounted
    if webhook.certificates is not None:
        keeper = Mounted(webhook.certificates, context)
    else:
        told = [("MutatingWebhookConfiguration", webhook.configuration)]
        told += [("ValidatingWebhookConfiguration", webhook.validating)] if webhook.validating else []
        keeper = Keeper(
            api,
            context,
            namespace=webhook.namespace,
            secret=webhook.secret,
            webhooks=told,
            names=webhook.names,
            look_s=look_s,
        )
    async with serve_admission(injector, validator, context, host=webhook.host, port=webhook.port) as port:
        log.info("webhook %s on port %d", webhook.configuration, port)
        task = asyncio.create_task(keeper.run(), name="certificates")
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
