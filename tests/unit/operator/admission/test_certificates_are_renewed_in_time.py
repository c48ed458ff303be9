"""A certificate is renewed before it ends, and nothing is shown that is not trusted already."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509

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


def test_python_and_so_openssl_reads_them(fresh: Bundle) -> None:
    assert len(ssl.create_default_context(cadata=fresh.authorities).get_ca_certs()) == 1
