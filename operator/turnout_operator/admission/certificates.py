"""What the webhook shows and what the API server trusts: a certificate authority of its own, and certificates by it.

Both are renewed long before they end, one at a time: a new authority is trusted beside the old one before anything that it
signed is shown, so that no handshake fails meanwhile. Nor does it sign in its first minutes, while API servers and other
operators have yet to hear of it. Keys never leave the Secret and this process.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_LIFE = timedelta(days=365)
CERTIFICATE_LIFE = timedelta(days=90)
"""Less than what is left of an authority when it is renewed: what it signed last does not outlive it."""
_RENEWED_WITH = 3
"""Renewed when less than one part in so many of the life is left."""
_SKEW = timedelta(minutes=5)
"""A clock that is behind must not find it too new."""
_HEARD_OF = timedelta(minutes=10)
"""An authority of this age is known to all API servers: each hears of a changed configuration by its watch."""


class Due(Enum):
    """What has to be made anew."""

    NOTHING = 0
    CERTIFICATE = 1
    AUTHORITY = 2


@dataclass(frozen=True, slots=True)
class Bundle:
    """PEM texts."""

    authorities: str
    """What is trusted, the newest first."""
    authority_key: str
    """Of the newest."""
    certificate: str
    key: str


def due(bundle: Bundle, names: Sequence[str], now: datetime) -> Due:
    """What of it has to be renewed. Raises ValueError for texts that are no certificates, or do not belong together."""
    authorities = x509.load_pem_x509_certificates(bundle.authorities.encode())
    shown = x509.load_pem_x509_certificate(bundle.certificate.encode())
    _check(bundle, authorities, shown)
    newest = authorities[0]
    if _is_old(newest, now):
        return Due.AUTHORITY
    if _names_in(shown) != [_name(name) for name in names]:
        return Due.CERTIFICATE
    is_heard_of = now - newest.not_valid_before_utc > _SKEW + _HEARD_OF
    can_wait = now < shown.not_valid_after_utc and not is_heard_of
    return Due.CERTIFICATE if _is_old(shown, now) and not can_wait else Due.NOTHING


def renewed(bundle: Bundle | None, names: Sequence[str], now: datetime) -> Bundle:
    """The bundle with what is due made anew; all of it when there is none. Raises ValueError as `due` does."""
    if bundle is None:
        return _signed(_authority("", now), names, now)
    match due(bundle, names, now):
        case Due.NOTHING:
            return bundle
        case Due.CERTIFICATE:
            return _signed(bundle, names, now)
        case Due.AUTHORITY:
            made = _authority(bundle.authorities, now)
            still_good = now < x509.load_pem_x509_certificate(bundle.certificate.encode()).not_valid_after_utc
            if not still_good:
                return _signed(made, names, now)
            return Bundle(made.authorities, made.authority_key, bundle.certificate, bundle.key)


def _check(bundle: Bundle, authorities: Sequence[x509.Certificate], shown: x509.Certificate) -> None:
    """Somebody may have put them together: what is not trusted, or has not its key, is no use. Raises ValueError."""
    if _signer(bundle).public_key() != authorities[0].public_key():
        raise ValueError("the authority's key is not that of the newest authority")
    if _private_key(bundle.key).public_key() != shown.public_key():
        raise ValueError("the key is not that of the certificate")
    if not any(_issued(authority, shown) for authority in authorities):
        raise ValueError("the certificate is by none of the authorities")


def _issued(authority: x509.Certificate, shown: x509.Certificate) -> bool:
    try:
        shown.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _names_in(certificate: x509.Certificate) -> list[x509.GeneralName]:
    try:
        return list(certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value)
    except x509.ExtensionNotFound:
        return []


def _is_old(certificate: x509.Certificate, now: datetime) -> bool:
    life = certificate.not_valid_after_utc - certificate.not_valid_before_utc
    return certificate.not_valid_after_utc - now < life / _RENEWED_WITH


def _authority(before: str, now: datetime) -> Bundle:
    """A new authority beside those that are still good; nothing is signed by it yet."""
    key = ec.generate_private_key(ec.SECP256R1())
    # the name tells apart authorities that are trusted side by side
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"turnout webhook {now:%Y-%m-%dT%H:%M:%S}")])
    made = (
        _builder(name, name, key.public_key(), now, AUTHORITY_LIFE)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    old = x509.load_pem_x509_certificates(before.encode()) if before else []
    kept = [authority for authority in old if authority.not_valid_after_utc > now]
    return Bundle("".join(_pem(one) for one in (made, *kept)), _key_pem(key), "", "")


def _signed(bundle: Bundle, names: Sequence[str], now: datetime) -> Bundle:
    """A new certificate by the newest authority."""
    authority = x509.load_pem_x509_certificates(bundle.authorities.encode())[0]
    signer = _signer(bundle)
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "turnout webhook")])
    made = (
        _builder(subject, authority.subject, key.public_key(), now, CERTIFICATE_LIFE)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_name(name) for name in names]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False)
        .sign(signer, hashes.SHA256())
    )
    return Bundle(bundle.authorities, bundle.authority_key, _pem(made), _key_pem(key))


def _signer(bundle: Bundle) -> ec.EllipticCurvePrivateKey:
    found = _private_key(bundle.authority_key)
    if not isinstance(found, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is of another kind than this operator makes")  # noqa: TRY004 - of the text
    return found


def _private_key(text: str) -> PrivateKeyTypes:
    """Raises ValueError."""
    try:
        return serialization.load_pem_private_key(text.encode(), password=None)
    except (TypeError, UnsupportedAlgorithm) as error:  # encrypted, or of a kind that nobody knows
        raise ValueError(f"a key that cannot be read: {error}") from error


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SKEW)
        .not_valid_after(now + life)
    )


def _usage(*, signs: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs,
        crl_sign=signs,
        encipher_only=False,
        decipher_only=False,
    )


def _name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(serialization.Encoding.PEM).decode()


def _key_pem(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()
