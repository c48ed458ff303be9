"""The certificate of `turnout up --tls`: made by openssl, for loopback alone, signed by itself.

It is kept, so that a browser that was told to trust it does so the next time, and made anew before it ends.
"""

import shutil
import subprocess

from turnout_cli.local.plan import HOST, Folders
from turnout_cli.local.state import StateError

VALID_DAYS = 397
RENEW_S = 30 * 86_400
CALL_S = 30


def make_certificate(folders: Folders) -> None:
    """Make sure that there is one that lasts for a while. Raises StateError."""
    openssl = shutil.which("openssl")
    if openssl is None:
        raise StateError("--tls needs the program openssl, which is not on the PATH: install it, or leave --tls out")
    cert, key = folders.tls_cert, folders.tls_key
    if (
        cert.exists()
        and key.exists()
        and _run(openssl, "x509", "-checkend", str(RENEW_S), "-noout", "-in", str(cert)) == ""
    ):
        return
    names = f"subjectAltName=DNS:localhost,IP:{HOST}"
    made = (
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-subj",
        "/CN=localhost",
    )
    said = _run(openssl, *made, "-days", str(VALID_DAYS), "-addext", names, "-keyout", str(key), "-out", str(cert))
    if said:
        raise StateError(f"openssl makes no certificate: {said}")


def _run(openssl: str, *arguments: str) -> str:
    """What went wrong; empty = nothing."""
    try:
        done = subprocess.run([openssl, *arguments], capture_output=True, text=True, timeout=CALL_S, check=False)  # noqa: S603 - words of our own
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return "" if done.returncode == 0 else done.stderr.strip()[-500:] or f"exit code {done.returncode}"
