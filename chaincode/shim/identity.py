"""Who signed the proposal: MSP id, certificate and the attributes a Fabric CA put into it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import MappingProxyType

from cryptography import x509
from cryptography.hazmat.primitives import hashes

from . import wire
from .errors import ShimError

REMEMBERED = 256
"""How many creators are remembered."""
LONGEST_REMEMBERED = 16_384
"""A certificate has about a kilobyte. Whatever follows it is ignored, so it may be as long as a message."""
ATTRIBUTES_OID = x509.ObjectIdentifier("1.2.3.4.5.6.7.8.1")


class CreatorError(ShimError):
    """The creator is not an X.509 identity, or its attributes cannot be read."""

    code = "BAD_CREATOR"


@dataclass(frozen=True)
class Creator:
    """The identity behind a transaction; the peer has already checked its signature and its issuer."""

    msp_id: str
    pem: bytes

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Creator":
        """Read a serialised identity as it stands in a proposal's signature header.

        The same few nodes call again and again, and what the same bytes say is the same each time: the
        certificate and its attributes need not be read for each call.
        """
        return _remembered(raw) if len(raw) <= LONGEST_REMEMBERED else _read(raw)

    @cached_property
    def certificate(self) -> x509.Certificate:
        """The creator's certificate, parsed."""
        try:
            return x509.load_pem_x509_certificate(self.pem)
        except ValueError as error:
            raise CreatorError("the creator is not an X.509 certificate") from error

    @cached_property
    def attributes(self) -> Mapping[str, str]:
        """The Fabric CA attributes of the certificate, read-only; empty when it carries none."""
        try:
            extension = self.certificate.extensions.get_extension_for_oid(ATTRIBUTES_OID).value
        except x509.ExtensionNotFound:
            return MappingProxyType({})
        except ValueError as error:
            raise CreatorError("the creator's certificate has malformed extensions") from error
        if not isinstance(extension, x509.UnrecognizedExtension):
            raise CreatorError("the creator's attributes are not a Fabric CA extension")
        return MappingProxyType(_attributes(extension.value))

    @property
    def name(self) -> str:
        """The common name, which is the enrolment id at a Fabric CA."""
        found = self.certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
        return str(found[0].value) if found else ""

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the certificate in hexadecimal, to name exactly this certificate."""
        return self.certificate.fingerprint(hashes.SHA256()).hex()


def _read(raw: bytes) -> Creator:
    identity = wire.parse(wire.msp.SerializedIdentity, raw)
    if not identity.mspid or not identity.id_bytes:
        raise CreatorError("the proposal names no creator")
    return Creator(identity.mspid, identity.id_bytes)


_remembered = lru_cache(maxsize=REMEMBERED)(_read)


def _attributes(raw: bytes) -> dict[str, str]:
    try:
        attributes = json.loads(raw)["attrs"]
        if not isinstance(attributes, dict):
            raise TypeError("attrs is not an object")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise CreatorError("the creator's attributes are not Fabric CA's JSON") from error
    if not all(isinstance(value, str) for value in attributes.values()):
        raise CreatorError("the creator has an attribute that is not text")
    return attributes
