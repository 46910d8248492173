"""Who signed: a certificate whose chain leads to its organisation's root, and what it says of its holder."""

import hashlib
import json
from dataclasses import field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.x509.oid import NameOID

from executor.audit.fabric.certificates import chain_id, fingerprint
from protocol.digest import Digest
from protocol.values import dataclass

if TYPE_CHECKING:
    from executor.audit.fabric.organisation import Organisation

ATTRIBUTES = x509.ObjectIdentifier("1.2.3.4.5.6.7.8.1")
ORDERS = {
    "secp256r1": 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551,
    "secp384r1": int("F" * 48 + "C7634D81F4372DDF581A0DB248B0A77AECEC196ACCC52973", 16),
}
_Unrecognized = x509.UnrecognizedExtension
_ECDSA = ec.ECDSA(hashes.SHA256())


@dataclass(frozen=True, eq=False)
class Identity:
    """A certificate whose chain leads to its organisation's root."""

    organisation: "Organisation" = field(repr=False)
    certificate: x509.Certificate
    chain: tuple[x509.Certificate, ...] = field(repr=False)
    """From its issuer to the root."""
    _foreseen: dict[bytes, tuple[bytes, bool]] = field(default_factory=dict, init=False, repr=False)
    """By signature, what it is said to be over, and whether it is: checked ahead, each for one question."""

    @cached_property
    def key(self) -> tuple[str, bytes]:
        """What makes two spellings of a certificate the same signer: not which of two values of S it has.

        One that its authority signed twice is two, for Fabric and so here.
        """
        signed = self.certificate.tbs_certificate_bytes + self._least_signature
        return self.organisation.msp_id, hashlib.sha256(signed).digest()

    @property
    def _least_signature(self) -> bytes:
        """The authority's signature, with the lower of the two values of S."""
        key, signature = self.chain[0].public_key(), self.certificate.signature
        order = ORDERS.get(key.curve.name) if isinstance(key, ec.EllipticCurvePublicKey) else None
        if order is None:
            return signature
        r, s = decode_dss_signature(signature)
        return encode_dss_signature(r, min(s, order - s))

    @cached_property
    def fingerprint(self) -> bytes:
        """SHA-256 of the certificate."""
        return fingerprint(self.certificate)

    @cached_property
    def digest(self) -> Digest:
        """The fingerprint as records have it."""
        return Digest(self.fingerprint)

    @cached_property
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
        return chain_id(self.chain)

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
        foreseen = self._foreseen.pop(signature, None)
        if foreseen is not None and foreseen[0] == message:
            return foreseen[1]
        return self._has_signed(message, signature)

    def foresee(self, message: bytes, signature: bytes) -> None:
        """Check a signature now that will be asked for soon."""
        self._foreseen[signature] = message, self._has_signed(message, signature)

    def forget(self) -> None:
        """Forget what was foreseen and not asked for."""
        self._foreseen.clear()

    def _has_signed(self, message: bytes, signature: bytes) -> bool:
        most = self._highest_s
        try:
            if most is None:
                return self._signed_otherwise(message, signature)
            if decode_dss_signature(signature)[1] > most:
                return False
            self.public_key.verify(signature, message, _ECDSA)
        except (InvalidSignature, ValueError, UnsupportedAlgorithm):
            return False
        return True

    @cached_property
    def _highest_s(self) -> int | None:
        """The highest S of a signature on the key's curve; None where the key is on none that Fabric has."""
        key = self.public_key
        order = ORDERS.get(key.curve.name) if isinstance(key, ec.EllipticCurvePublicKey) else None
        return None if order is None else order >> 1

    def _signed_otherwise(self, message: bytes, signature: bytes) -> bool:
        if not isinstance(self.public_key, Ed25519PublicKey):
            return False
        self.public_key.verify(signature, message)
        return True
