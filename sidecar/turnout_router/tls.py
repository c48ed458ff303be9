"""Certificates: the one that this router shows, and those that it trusts.

A certificate is renewed while routers run: its files are read again when they change, and connections from then on see
the new one. Files that cannot be used change nothing.
"""

import logging
import ssl

from turnout_api.config import ClusterConfig, ListenConfig
from turnout_router.access import AccessError, stamp_of

log = logging.getLogger(__name__)


class Certificate:
    """What a listener shows."""

    def __init__(self, listen: ListenConfig) -> None:
        """Blocks. Raises AccessError."""
        self._files = listen.tls_cert_file, listen.tls_key_file
        self._stamp = stamp_of(*self._files)
        _load(
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), *self._files
        )  # a try: a pair that does not fit breaks its context
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        _load(self.context, *self._files)

    @classmethod
    def of(cls, listen: ListenConfig) -> "Certificate | None":
        """Of a listener; None for one without TLS. Blocks. Raises AccessError."""
        return cls(listen) if listen.tls_cert_file else None

    def follow(self) -> None:
        """Read the files again if they changed. Blocks."""
        stamp = stamp_of(*self._files)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            _load(ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), *self._files)
            _load(self.context, *self._files)
        except AccessError as error:
            log.warning("the certificate stays what it was: %s", error)
        else:
            log.info("the certificate was read again")


def trusting(cluster: ClusterConfig) -> ssl.SSLContext | None:
    """For calls to other routers and backends; None = what the system trusts. Blocks. Raises AccessError."""
    if not cluster.ca_file:
        return None
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(cluster.ca_file)
    except (OSError, ssl.SSLError) as error:
        raise AccessError(f"the certificates in {cluster.ca_file} cannot be used: {error}") from error
    return context


def _load(context: ssl.SSLContext, cert_file: str, key_file: str) -> None:
    try:
        context.load_cert_chain(cert_file, key_file)
    except (OSError, ssl.SSLError) as error:
        raise AccessError(
            f"the certificate in {cert_file} with the key in {key_file} cannot be used: {error}"
        ) from error
