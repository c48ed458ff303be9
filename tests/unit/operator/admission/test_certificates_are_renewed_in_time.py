"""A certificate is renewed before it ends, and nothing is shown that is not trusted already."""

import ssl
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from turnout_operator.admission.certificates import Bundle, Due, due, renewed

START = datetime(2026, 1, 1, tzinfo=UTC)
NAMES = ("turnout.system.svc", "127.0.0.1")


def at(days: float) -> datetime:
    return START + timedelta(days=days)


@pytest.fixture(scope="module")
def fresh() -> Bundle:
    return renewed(None, NAMES, START)


def is_trusted(bundle: Bundle, authorities: str, now: datetime) -> bool:
    """What is shown, by what the API server was told."""
    shown = x509.load_pem_x509_certificate(bundle.certificate.encode())
    if not shown.not_valid_before_utc <= now <= shown.not_valid_after_utc:
        return False
    for authority in x509.load_pem_x509_certificates(authorities.encode()):
        if authority.subject == shown.issuer and now <= authority.not_valid_after_utc:
            shown.verify_directly_issued_by(authority)
            return True
    return False


@pytest.mark.parametrize(
    ("days", "expected"),
    [(0, Due.NOTHING), (59, Due.NOTHING), (61, Due.CERTIFICATE), (242, Due.CERTIFICATE), (244, Due.AUTHORITY)],
)
def test_with_a_third_of_its_life_left(fresh: Bundle, days: float, expected: Due) -> None:
    assert due(fresh, NAMES, at(days)) is expected


def test_other_names_need_another_certificate(fresh: Bundle) -> None:
    assert due(fresh, ("other.system.svc",), START) is Due.CERTIFICATE


def test_nothing_is_made_anew_without_need(fresh: Bundle) -> None:
    assert renewed(fresh, NAMES, at(30)) is fresh


def test_a_new_certificate_is_by_the_same_authority(fresh: Bundle) -> None:
    later = renewed(fresh, NAMES, at(61))

    assert later.authorities == fresh.authorities
    assert later.certificate != fresh.certificate
    assert is_trusted(later, fresh.authorities, at(61))


def test_over_three_years_what_is_shown_is_always_trusted_by_who_was_told_last(fresh: Bundle) -> None:
    bundle, seen = fresh, set()
    for day in range(3 * 365):
        told, bundle = bundle.authorities, renewed(bundle, NAMES, at(day))
        seen.add(bundle.authorities)
        assert is_trusted(bundle, told, at(day))
        assert is_trusted(bundle, bundle.authorities, at(day))
        assert bundle.authorities.count("BEGIN") <= 2

    assert len(seen) == 5


def test_after_years_of_absence_all_of_it_is_made_anew(fresh: Bundle) -> None:
    later = renewed(fresh, NAMES, at(2000))

    assert is_trusted(later, later.authorities, at(2000))
    assert later.authorities.count("BEGIN") == 1


@pytest.mark.parametrize("text", ["", "no certificate"])
def test_texts_that_are_no_certificates_are_said_to_be_none(fresh: Bundle, text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        renewed(Bundle(text, fresh.authority_key, fresh.certificate, fresh.key), NAMES, START)


@pytest.mark.parametrize("field", ["authorities", "authority_key", "certificate", "key"])
def test_what_does_not_belong_together_is_said_to_be_no_certificates(fresh: Bundle, field: str) -> None:
    other = renewed(None, NAMES, START)

    with pytest.raises(ValueError, match=r"is not that of|is by none of"):
        renewed(replace(fresh, **{field: getattr(other, field)}), NAMES, START)


def test_keys_of_another_kind_are_said_to_be_none(fresh: Bundle) -> None:
    pem, pkcs8, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    other = ed25519.Ed25519PrivateKey.generate().private_bytes(pem, pkcs8, plain).decode()

    with pytest.raises(ValueError, match="of another kind"):
        renewed(replace(fresh, authority_key=other), NAMES, START)


def test_encrypted_keys_are_said_to_be_none(fresh: Bundle) -> None:
    locked = serialization.BestAvailableEncryption(b"a password")
    pem, pkcs8 = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    key = serialization.load_pem_private_key(fresh.key.encode(), password=None)

    with pytest.raises(ValueError, match="cannot be read"):
        renewed(replace(fresh, key=key.private_bytes(pem, pkcs8, locked).decode()), NAMES, START)


def test_a_certificate_without_names_is_made_anew(fresh: Bundle) -> None:
    authority = x509.load_pem_x509_certificate(fresh.authorities.encode())
    shown = x509.load_pem_x509_certificate(fresh.certificate.encode())
    signer = serialization.load_pem_private_key(fresh.authority_key.encode(), password=None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    nameless = (
        x509.CertificateBuilder(shown.issuer, shown.subject, shown.public_key(), x509.random_serial_number())
        .not_valid_before(START)
        .not_valid_after(at(90))
        .sign(signer, hashes.SHA256())
    )
    text = nameless.public_bytes(serialization.Encoding.PEM).decode()

    later = renewed(replace(fresh, certificate=text), NAMES, START)

    assert is_trusted(later, authority.public_bytes(serialization.Encoding.PEM).decode(), START)
    assert due(later, NAMES, START) is Due.NOTHING


def test_a_new_authority_signs_once_all_have_heard_of_it(fresh: Bundle) -> None:
    bundle = fresh
    for day in range(1, 184):
        bundle = renewed(bundle, NAMES, at(day))
    after = at(250)  # nobody looked meanwhile; the certificate of day 183 is good until day 273
    told = renewed(bundle, NAMES, after)
    assert told.certificate == bundle.certificate

    assert renewed(told, NAMES, after + timedelta(minutes=9)) is told
    later = renewed(told, NAMES, after + timedelta(minutes=11))

    assert later.certificate != told.certificate
    assert is_trusted(later, told.authorities, after + timedelta(minutes=11))


def test_a_new_authority_signs_at_once_where_nothing_good_is_shown(fresh: Bundle) -> None:
    bundle = renewed(fresh, NAMES, at(244))  # its certificate ended on day 90

    assert is_trusted(bundle, bundle.authorities, at(244))


def test_python_and_so_openssl_reads_them(fresh: Bundle) -> None:
    assert len(ssl.create_default_context(cadata=fresh.authorities).get_ca_certs()) == 1
