"""Keeps the webhook's certificates good, in a Secret of the operator's namespace, and the API server's trust in them.

The order is that of `certificates`: what is trusted is told to the API server before what it vouches for is shown. An API
server that cannot be reached changes nothing: what is shown goes on being shown, and is tried again.

Several operators keep one Secret. Whoever looks first makes what is due; the others show it at their next look, and meanwhile
what they show is trusted still.
"""

import asyncio
import base64
import binascii
import logging
import os
import ssl
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from turnout_operator.admission.certificates import Bundle, renewed
from turnout_operator.api import Api, ApiError
from turnout_operator.names import FIELD_MANAGER, LABELS

LOOK_INTERVAL_S = 3600.0
"""At the longest, however seldom the operator is to look for what was changed by hand."""
_RETRY_S = 5.0
_FILES = {"authorities": "ca.crt", "authority_key": "ca.key", "certificate": "tls.crt", "key": "tls.key"}

log = logging.getLogger(__name__)


def server_context() -> ssl.SSLContext:
    """Without a certificate, until the keeper has one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return context


class Keeper:
    """One task."""

    def __init__(
        self,
        api: Api,
        context: ssl.SSLContext,
        *,
        namespace: str,
        secret: str,
        webhooks: Collection[tuple[str, str]],
        names: Sequence[str],
        look_s: float,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        """`secret` in `namespace` holds them; `webhooks` are (kind, name) of the configurations; `names` of the server.

        It looks every `look_s`: what is due is so for weeks, but somebody may have edited the Secret or the configurations.
        """
        self._api = api
        self._context = context
        self._namespace, self._secret, self._webhooks, self._names = namespace, secret, webhooks, names
        self._look_s = min(look_s, LOOK_INTERVAL_S)
        self._now = now
        self._shown = ""
        self._trouble = ""
        self.ready = asyncio.Event()
        """The server can be asked."""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            good = await self._look()
            await asyncio.sleep(self._look_s if good else _RETRY_S)

    async def _look(self) -> bool:
        try:
            await self.look()
        except (ApiError, ValueError, TypeError, LookupError) as error:
            # 409: another operator made them at the same moment, and this one shows those
            said = isinstance(error, ApiError) and (error.said or error.status == 409)
            if str(error) != self._trouble and not said:
                log.warning("the webhook's certificates cannot be kept, and are tried again: %s", error)
            self._trouble = str(error)
            return False
        self._trouble = ""
        return True

    async def look(self) -> None:
        """Renew what is due, have it trusted, then show it."""
        found = await self._api.secret(self._namespace, self._secret)
        before = _bundle(found)
        try:
            bundle = renewed(before, self._names, self._now())
        except ValueError as error:  # somebody wrote something else there
            log.warning("Secret %s holds no certificates (%s): it is made anew", self._secret, error)
            bundle = renewed(None, self._names, self._now())
        if bundle != before:
            await self._api.write_secret(self._manifest(bundle, found))
            log.info("made certificates, kept in Secret %s", self._secret)
        for kind, name in self._webhooks:
            await self._api.trust(kind, name, bundle.authorities)
        self._show(bundle)

    def _show(self, bundle: Bundle) -> None:
        if bundle.certificate != self._shown:
            load(self._context, bundle.key + bundle.certificate)
            self._shown = bundle.certificate
            self.ready.set()

    def _manifest(self, bundle: Bundle, before: dict[str, Any] | None) -> dict[str, Any]:
        metadata: dict[str, Any] = {"name": self._secret, "namespace": self._namespace, "labels": dict(LABELS)}
        if before is not None:
            metadata["resourceVersion"] = before["metadata"]["resourceVersion"]
        data = {file: base64.b64encode(getattr(bundle, field).encode()).decode() for field, file in _FILES.items()}
        return {"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "metadata": metadata, "data": data}


def _bundle(secret: dict[str, Any] | None) -> Bundle | None:
    """None where there is none, or something else: it is made anew."""
    data = (secret or {}).get("data") or {}
    try:
        texts = {field: base64.b64decode(data[file], validate=True).decode() for field, file in _FILES.items()}
    except (KeyError, binascii.Error, UnicodeDecodeError):
        return None
    return Bundle(**texts)


def load(context: ssl.SSLContext, pem: str) -> None:
    """Into a context that may be serving: new connections see it. It takes files only, and the root file system is read-only."""
    file = os.memfd_create(FIELD_MANAGER)
    try:
        os.write(file, pem.encode())
        context.load_cert_chain(f"/proc/self/fd/{file}")
    finally:
        os.close(file)
