"""Each part of the webhooks' certificates nears its end while both webhooks must be asked: it is renewed, and nothing is refused.

Time is played. The test writes into the Secret what would be there months later: the same authority and the same certificate,
with their keys, but older.
"""

import base64
import re
import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

from turnout_operator.admission.certificates import AUTHORITY_LIFE, CERTIFICATE_LIFE

A_DAY = timedelta(days=1)
pytestmark = pytest.mark.timeout(300)


def older(certificate: str, authority: str, key: str, *, age: timedelta, life: timedelta) -> str:
    """The same one, as if this authority, whose key that is, had made it so long ago."""
    old = x509.load_pem_x509_certificate(certificate.encode())
    issuer = x509.load_pem_x509_certificate(authority.encode()).subject
    made = datetime.now(UTC) - age
    number = x509.random_serial_number()
    builder = x509.CertificateBuilder(issuer, old.subject, old.public_key(), number, made, made + life)
    for extension in old.extensions:
        builder = builder.add_extension(extension.value, critical=extension.critical)
    signer = serialization.load_pem_private_key(key.encode(), password=None)
    return builder.sign(signer, hashes.SHA256()).public_bytes(serialization.Encoding.PEM).decode()


def each(authorities: str) -> list[str]:
    return re.findall(r"-----BEGIN.*?END CERTIFICATE-----\n", authorities, re.DOTALL)


@pytest.fixture
def keep(objects):
    """Writes the Secret: nobody else does while nothing is due."""

    def keep(files: dict[str, str]) -> None:
        data = {name: base64.b64encode(text.encode()).decode() for name, text in files.items()}
        path = f"/api/v1/namespaces/{objects.namespace}/secrets/turnout-webhook"
        status, said = objects.cluster.request("PUT", path, objects.get("secret", "turnout-webhook") | {"data": data})
        assert status == 200, said

    return keep


@pytest.fixture
def in_force(pair, webhook, until):
    """Wait until both operators show what is kept, and both webhooks are trusted by it."""

    def in_force() -> dict[str, str]:
        kept = pair.secret()
        ports = [pair.port(operator) for operator in (pair.leader, pair.standby)]
        for port in ports:
            shown = lambda port=port: ssl.get_server_certificate(("127.0.0.1", port))  # noqa: E731 - asked again and again
            until(lambda shown=shown: shown() == kept["tls.crt"], "an operator shows another certificate")
        for kind in webhook.KINDS:
            until(lambda kind=kind: webhook.authorities(kind) == kept["ca.crt"], f"{kind} trusts others")
        return kept

    return in_force


def test_nothing_is_refused(pair, writing, keep, in_force, until):
    first = in_force()
    writing.more(until)

    heard_of = older(first["ca.crt"], first["ca.crt"], first["ca.key"], age=61 * A_DAY, life=AUTHORITY_LIFE)
    due = older(first["tls.crt"], first["ca.crt"], first["ca.key"], age=61 * A_DAY, life=CERTIFICATE_LIFE)
    keep(first | {"ca.crt": heard_of, "tls.crt": due})
    until(lambda: pair.secret()["tls.crt"] not in {first["tls.crt"], due}, "no new certificate")
    second = in_force()
    assert second["ca.crt"] == heard_of
    writing.more(until)

    ending = older(first["ca.crt"], first["ca.crt"], first["ca.key"], age=244 * A_DAY, life=AUTHORITY_LIFE)
    keep(second | {"ca.crt": ending})
    until(lambda: len(each(pair.secret()["ca.crt"])) == 2, "no new authority")
    third = in_force()
    new, *old = each(third["ca.crt"])
    assert old == [ending]
    assert third["tls.crt"] == second["tls.crt"], "it signs before all have heard of it"
    writing.more(until)

    heard_of = older(new, new, third["ca.key"], age=A_DAY, life=AUTHORITY_LIFE)
    due = older(third["tls.crt"], ending, first["ca.key"], age=61 * A_DAY, life=CERTIFICATE_LIFE)
    keep(third | {"ca.crt": heard_of + ending, "tls.crt": due})
    until(lambda: pair.secret()["tls.crt"] not in {third["tls.crt"], due}, "no certificate by the new authority")
    fourth = in_force()
    shown, by = (x509.load_pem_x509_certificate(text.encode()) for text in (fourth["tls.crt"], new))
    shown.verify_directly_issued_by(by)
    writing.more(until)

    answers = writing.stop()
    assert [answer for answer in answers if answer.status != 201] == []
    assert [answer.injected for answer in answers] == [False, True] * (len(answers) // 2)
    assert min(pair.service.passed[pair.port(operator)] for operator in (pair.leader, pair.standby)) > 10
    for operator in (pair.leader, pair.standby):
        assert "cannot be kept" not in operator.log()


def test_a_secret_that_was_deleted_is_made_anew_and_shown_by_both(objects, pair, in_force, until):
    before = in_force()

    objects.delete("secret", "turnout-webhook")

    until(lambda: objects.get("secret", "turnout-webhook"), "nobody made it anew")
    after = in_force()
    assert not set(each(before["ca.crt"])) & set(each(after["ca.crt"]))
    for operator in (pair.leader, pair.standby):
        pair.only(operator)
        until(lambda: pair.ask("pods", {"metadata": {"name": "p"}}).status != 500, "it is not trusted")
