"""Certificates that somebody else keeps, such as cert-manager: a mounted Secret, which the kubelet writes anew when it changes."""

import asyncio
import logging
import ssl
from pathlib import Path

from turnout_operator.admission.keeper import load, server_context

LOOK_INTERVAL_S = 5.0
"""What is mounted is renewed weeks before it ends, and lags by up to a minute anyway."""

log = logging.getLogger(__name__)


class Mounted:
    """One task."""

    def __init__(self, folder: Path, context: ssl.SSLContext) -> None:
        """`folder` holds `tls.crt` and `tls.key`."""
        self._folder = folder
        self._context = context
        self._shown = ""
        self._trouble = ""

    async def run(self) -> None:
        """Until it is cancelled."""
        while True:
            self.look()
            await asyncio.sleep(LOOK_INTERVAL_S)

    def look(self) -> bool:
        """Show what is there, if it is new. Whether it can be shown; what cannot be changes nothing."""
        try:
            pem = "".join((self._folder / name).read_text(encoding="ascii") for name in ("tls.key", "tls.crt"))
            if pem != self._shown:
                load(server_context(), pem)  # halves that do not fit would leave the other one with neither
                load(self._context, pem)
                log.info("shows the certificate in %s", self._folder)
            self._shown, self._trouble = pem, ""
        except (OSError, ValueError) as error:  # an SSLError, of halves that do not fit, is an OSError
            if str(error) != self._trouble:
                log.warning("the certificate in %s cannot be shown, and is tried again: %s", self._folder, error)
            self._trouble = str(error)
            return False
        return True
