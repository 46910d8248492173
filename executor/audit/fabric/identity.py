"""Who signed, by the rules of the organisation's MSP as the channel's configuration has it.

A certificate counts if exactly one chain leads from it to a root of its organisation, if no revocation list
of the configuration names it, and if it carries exactly one of the organisational units that tell clients,
peers, administrators and orderers apart. As in Fabric, the clock plays no part: expiry is for the peers that
take a proposal, and a block is as valid in ten years as on its day.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cached_property
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from executor.audit.fabric.messages import MalformedError, identities, msp_config, parse

ATTRIBUTES = x509.ObjectIdentifier("1.2.3.4.5.6.7.8.1")
MAX_CHAIN = 8
ROLES = ("client", "peer", "admin", "orderer")
ORDERS = {
    "secp256r1": 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    "secp384r1": int("F" * 48 + "C7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973", 16),
}
_SERVER = (ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
_UNREADABLE = (
    ValueError,
    TypeError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.InvalidVersion,
    x509.UnsupportedGeneralNameType,
)
_Unrecognized = x509.UnrecognizedExtension
_ECDSA = ec.ECDSA(hashes.SHA256())


class UntrustedError(Exception):
    """A certificate that the organisation's MSP does not vouch for."""


@dataclass(frozen=True, eq=False)
class Identity:
    """A certificate whose chain leads to its organisation's root."""

    organisation: "Organisation" = field(repr=False)
    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...] = field(repr=False)
    """From its issuer to the root."""

    @cached_property
    def key(self) -> tuple[str, bytes]:
        """What makes two spellings of a certificate the same signer."""
        signed = hashlib.sha256(self.certificate.tbs_certificate_bytes).digest()
        return self.organisation.msp_id, signed

    @cached_property
    def fingerprint(self) -> bytes:
        """SHA-256 of the certificate."""
        return fingerprint(self.certificate)

    @property
    def name(self) -> str:
        """The common name, which is the enrolment id at a Fabric CA."""
        found = self.certificate.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
        return str(found[0].value) if found else ""

    @cached_property
    def units(self) -> tuple[str, ...]:
        """The organisational units of the subject."""
        found = self.certificate.subject.get_attributes_for_oid(NameOID.ORGANIZATIONAL_UNIT_NAME)
        return tuple(str(unit.value) for unit in found)

    @cached_property
    def attributes(self) -> dict[str, str]:
        """The attributes that a Fabric CA put into the certificate; empty where there are none to read."""
        try:
            found = self.certificate.extensions.get_extension_for_oid(ATTRIBUTES).value
            attributes = json.loads(found.value)["attrs"] if isinstance(found, _Unrecognized) else {}
            return {str(name): str(value) for name, value in attributes.items()}
        except (x509.ExtensionNotFound, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return {}

    @cached_property
    def certifier(self) -> bytes:
        """The digest of the chain above it, which an organisational unit may name."""
        return _chain_id(self.chain)

    @cached_property
    def refusal(self) -> str:
        """Why the organisation no longer vouches for it; empty if it does."""
        return self.organisation.refusal(self)

    @cached_property
    def public_key(self) -> Any:
        """The key that its signatures are checked with."""
        return self.certificate.public_key()

    def signed(self, message: bytes, signature: bytes) -> bool:
        """Whether this key signed the message, with the lower of the two values of S."""
        key = self.public_key
        try:
            if isinstance(key, Ed25519PublicKey):
                key.verify(signature, message)
                return True
            order = ORDERS.get(key.curve.name) if isinstance(key, ec.EllipticCurvePublicKey) else None
            if order is None or decode_dss_signature(signature)[1] > order >> 1:
                return False
            key.verify(signature, message, _ECDSA)
        except (InvalidSignature, ValueError, UnsupportedAlgorithm):
            return False
        return True


class Organisation:
    """An MSP of the channel's configuration: its roots, intermediates, revocations and units."""

    def __init__(self, config: Any) -> None:
        found = parse(msp_config.FabricMSPConfig, config.config)
        self.msp_id = str(found.name)
        self.roots = _certificates(found.root_certs, self.msp_id)
        self.intermediates = _certificates(found.intermediate_certs, self.msp_id)
        self.admins = {_der(certificate) for certificate in _certificates(found.admins, self.msp_id)}
        self.crls = _lists(found.revocation_list, self.msp_id)
        self.units = {unit.organizational_unit_identifier for unit in found.organizational_unit_identifiers}
        self._parents = {
            _der(chain[0])
            for certificate in self.intermediates
            for chain in self._chains(certificate, certificate.not_valid_before_utc, 0)
        }
        self.enforced = bool(found.fabric_node_ous.enable)
        named = {role: getattr(found.fabric_node_ous, f"{role}_ou_identifier") for role in ROLES}
        self.unit_of = {
            role: str(unit.organizational_unit_identifier) for role, unit in named.items() if self.enforced
        }
        # By unit, the digest of the chain that must certify it; empty where any may.
        self._certifiers = {
            self.unit_of[role]: self._certifier(unit.certificate)
            for role, unit in named.items()
            if self.unit_of.get(role)
        }

    def identify(self, pem: bytes) -> Identity:
        """Return the identity of a certificate, or raise if no single chain leads to a root."""
        certificate = _certificate(pem)
        if _is_authority(certificate):
            raise UntrustedError("an authority's certificate signs no transactions")
        _check_usage(certificate)
        moment = certificate.not_valid_before_utc + timedelta(seconds=1)
        chains = self._chains(certificate, moment, 0)
        if len(chains) != 1:
            raise UntrustedError(f"{len(chains)} chains lead from it to a root of {self.msp_id}, not one")
        if _der(chains[0][0]) in self._parents:
            raise UntrustedError("its issuer issues intermediate authorities, not members")
        return Identity(self, certificate, chains[0])

    def authorities(self) -> list[bytes]:
        """Return the certificates of its roots and intermediates in PEM."""
        return [found.public_bytes(Encoding.PEM) for found in (*self.roots, *self.intermediates)]

    def is_named_admin(self, identity: Identity) -> bool:
        """Whether the configuration names this very certificate as an administrator's."""
        return _der(identity.certificate) in self.admins

    def refusal(self, identity: Identity) -> str:
        """Say why an identity is not valid now: revoked, or not exactly one role; empty if it is."""
        issuer, serial = identity.chain[0], identity.certificate.serial_number
        for crl in self.crls:
            named = crl.get_revoked_certificate_by_serial_number(serial) is not None
            if named and _authority_key(crl) == _subject_key(issuer) and _made(issuer, crl):
                return "its certificate is revoked"
        if self.units and not self.units.intersection(identity.units):
            return f"none of its units is one of {self.msp_id}"
        if not self.enforced:
            return ""
        found = [unit for unit in identity.units if unit in self._certifiers]
        if len(found) != 1:
            return f"it has {len(found)} of the units client, peer, admin and orderer, not one"
        wanted = self._certifiers[found[0]]
        if wanted and wanted != identity.certifier:
            return f"its unit {found[0]} is certified by another authority"
        return ""

    def _chains(
        self, certificate: x509.Certificate, moment: Any, depth: int
    ) -> list[tuple[x509.Certificate, ...]]:
        """Return every chain of issuers up to a root; all must have been valid at the moment."""
        if depth == MAX_CHAIN or not _is_valid_at(certificate, moment):
            return []
        found: list[tuple[x509.Certificate, ...]] = []
        for root in self.roots:
            if _issued(root, certificate, depth) and _is_valid_at(root, moment):
                found.append((root,))
        for issuer in self.intermediates:
            if issuer != certificate and _issued(issuer, certificate, depth):
                found += [(issuer, *rest) for rest in self._chains(issuer, moment, depth + 1)]
        return found

    def _certifier(self, pem: bytes) -> bytes:
        if not pem:
            return b""
        certificate = _certificate(pem)
        if certificate in self.roots:
            return _chain_id((certificate,))
        chains = self._chains(certificate, certificate.not_valid_before_utc + timedelta(seconds=1), 0)
        return _chain_id((certificate, *chains[0])) if len(chains) == 1 else b"unknown"


class Members:
    """The organisations of a channel's configuration, and the identities met under it."""

    def __init__(self, organisations: Iterable[Organisation]) -> None:
        self.organisations = {found.msp_id: found for found in organisations}
        self._known: dict[bytes, Identity | UntrustedError] = {}

    def identify(self, serialized: bytes) -> Identity:
        """Return the identity behind a signature header or an endorsement, or raise."""
        if serialized not in self._known:
            self._known[serialized] = self._read(serialized)
        found = self._known[serialized]
        if isinstance(found, UntrustedError):
            raise found
        return found

    def _read(self, serialized: bytes) -> Identity | UntrustedError:
        try:
            identity = parse(identities.SerializedIdentity, serialized)
            organisation = self.organisations.get(identity.mspid)
            if organisation is None:
                raise UntrustedError(f"{identity.mspid[:64]!r} is no organisation of the channel")
            return organisation.identify(identity.id_bytes)
        except MalformedError as error:
            return UntrustedError(str(error))
        except UntrustedError as error:
            return error


def _certificate(pem: bytes) -> x509.Certificate:
    try:
        certificate = x509.load_pem_x509_certificate(pem)
        # Parts are parsed when they are first asked for: all of them here, where a failure is expected.
        for part in ("extensions", "subject", "issuer", "not_valid_before_utc", "not_valid_after_utc"):
            getattr(certificate, part)
        certificate.public_key()
    except _UNREADABLE as error:
        raise UntrustedError(f"it is no certificate: {str(error)[:80]}") from error
    return certificate


def _certificates(found: Iterable[bytes], msp_id: str) -> list[x509.Certificate]:
    try:
        return [_certificate(pem) for pem in found]
    except UntrustedError as error:
        raise MalformedError(f"a certificate in the configuration of {msp_id} cannot be read") from error


def _lists(found: Iterable[bytes], msp_id: str) -> list[x509.CertificateRevocationList]:
    try:
        return [x509.load_pem_x509_crl(pem) for pem in found]
    except ValueError as error:
        raise MalformedError(f"a revocation list of {msp_id} cannot be read") from error


def _issued(issuer: x509.Certificate, certificate: x509.Certificate, depth: int) -> bool:
    """Whether an authority signed a certificate and may stand that far above members."""
    if issuer.subject != certificate.issuer or not _is_authority(issuer):
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


def _made(issuer: x509.Certificate, crl: x509.CertificateRevocationList) -> bool:
    """Whether an authority signed a revocation list."""
    try:
        return crl.is_signature_valid(issuer.public_key())  # type: ignore[arg-type]
    except (TypeError, ValueError, UnsupportedAlgorithm):
        return False


def _is_authority(certificate: x509.Certificate) -> bool:
    try:
        return certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        return False


def _check_usage(certificate: x509.Certificate) -> None:
    """Refuse what Go's verifier refuses by default: a certificate for purposes that leave servers out."""
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return
    if not any(purpose in _SERVER for purpose in usage):
        raise UntrustedError("its certificate is for other purposes")


def _is_valid_at(certificate: x509.Certificate, moment: Any) -> bool:
    return bool(certificate.not_valid_before_utc <= moment <= certificate.not_valid_after_utc)


def _subject_key(certificate: x509.Certificate) -> bytes | None:
    try:
        return certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    except x509.ExtensionNotFound:
        return None


def _authority_key(crl: x509.CertificateRevocationList) -> bytes | None:
    try:
        return crl.extensions.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier
    except x509.ExtensionNotFound:
        return None


def _chain_id(chain: Iterable[x509.Certificate]) -> bytes:
    return hashlib.sha256(b"".join(_der(certificate) for certificate in chain)).digest()


def _der(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(Encoding.DER)


def fingerprint(certificate: x509.Certificate) -> bytes:
    """SHA-256 of a certificate."""
    return certificate.fingerprint(hashes.SHA256())
