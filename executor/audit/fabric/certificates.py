"""X.509 certificates as Fabric's MSP reads them: who issued what, for which purposes, at which moment."""

import hashlib
from collections.abc import Iterable
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from executor.audit.fabric.messages import MalformedError
from executor.audit.fabric.pem import first_block

_SERVER = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
_UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)


class UntrustedError(Exception):
    """A certificate that the organisation's MSP does not vouch for."""


def read_certificate(pem: bytes) -> x509.Certificate:
    """Read a certificate in PEM with all of its parts, or raise."""
    raw = first_block(pem)
    if raw is None:
        raise UntrustedError("it is no certificate: it is no PEM")
    try:
        certificate = x509.load_der_x509_certificate(raw)
        # Parts are parsed when they are first asked for: all of them here, where a failure is expected.
        for part in ("extensions", "subject", "issuer", "not_valid_before_utc", "not_valid_after_utc"):
            getattr(certificate, part)
        certificate.public_key()
    except _UNREADABLE as error:
        raise UntrustedError(f"it is no certificate: {str(error)[:80]}") from error
    return certificate


def read_certificates(found: Iterable[bytes], msp_id: str) -> list[x509.Certificate]:
    """Read the certificates in an organisation's configuration, or raise."""
    try:
        return [read_certificate(pem) for pem in found]
    except UntrustedError as error:
        raise MalformedError(f"a certificate in the configuration of {msp_id} cannot be read") from error


def read_lists(found: Iterable[bytes], msp_id: str) -> list[x509.CertificateRevocationList]:
    """Read the revocation lists in an organisation's configuration, or raise."""
    try:
        return [x509.load_pem_x509_crl(pem) for pem in found]
    except ValueError as error:
        raise MalformedError(f"a revocation list of {msp_id} cannot be read") from error


def has_issued(issuer: x509.Certificate, certificate: x509.Certificate, depth: int) -> bool:
    """Whether an authority signed a certificate and may stand that far above members."""
    if issuer.subject != certificate.issuer or not is_authority(issuer):
        return False
    constraints = issuer.extensions.get_extension_for_class(x509.BasicConstraints).value
    if constraints.path_length is not None and constraints.path_length < depth:
        return False
    try:
        if not issuer.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign:
            return False
    except x509.ExtensionNotFound:
        pass
    try:
        certificate.verify_directly_issued_by(issuer)
    except (InvalidSignature, ValueError, TypeError, UnsupportedAlgorithm):
        return False
    return True


def has_made(issuer: x509.Certificate, crl: x509.CertificateRevocationList) -> bool:
    """Whether an authority signed a revocation list."""
    try:
        return crl.is_signature_valid(issuer.public_key())  # type: ignore[arg-type]
    except (TypeError, ValueError, UnsupportedAlgorithm):
        return False


def is_authority(certificate: x509.Certificate) -> bool:
    """Whether a certificate may issue others."""
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def check_usage(certificate: x509.Certificate) -> None:
    """Refuse what Go's verifier refuses by default: a certificate for purposes that leave servers out."""
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return
    if not any(purpose in _SERVER for purpose in usage):
        raise UntrustedError("its certificate is for other purposes")


def is_valid_at(certificate: x509.Certificate, moment: Any) -> bool:
    """Whether a moment is within a certificate's time."""
    return bool(certificate.not_valid_before_utc <= moment <= certificate.not_valid_after_utc)


def subject_key(certificate: x509.Certificate) -> bytes | None:
    """Return the identifier of a certificate's own key."""
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


def authority_key(crl: x509.CertificateRevocationList) -> bytes | None:
    """Return the identifier of the key that a revocation list says it was made with."""
    try:
        return crl.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    except x509.ExtensionNotFound:
        return None


def chain_id(chain: Iterable[x509.Certificate]) -> bytes:
    """Return the digest that stands for a chain of authorities in Fabric."""
    return hashlib.sha256(b"".join(der(certificate) for certificate in chain)).digest()


def der(certificate: x509.Certificate) -> bytes:
    """Return the bytes of a certificate."""
    return certificate.public_bytes(Encoding.DER)


def fingerprint(certificate: x509.Certificate) -> bytes:
    """SHA-256 of a certificate."""
    return certificate.fingerprint(hashes.SHA256())
