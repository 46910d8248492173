"""The organisations of a channel, and whether an endorsement is by a peer of one of them.

What an endorsement is held against are the authorities that the caller knows by itself: no peer is asked who
may sign.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from google.protobuf.message import DecodeError

from .errors import IdentityError
from .identity import P256_ORDER
from .messages import msp

PEER_UNIT = "peer"
"""The organisational unit that makes a certificate a peer's, as Fabric's NodeOUs have it."""


class Untrue(Exception):  # noqa: N818 - a finding about a peer, not a failure of the client
    """What a peer said does not stand up; the text says why."""


class Members(Mapping[str, bytes]):
    """The signing authorities of a channel's organisations by MSP id, as certificates in PEM."""

    def __init__(self, authorities: Mapping[str, bytes]) -> None:
        self._pems = dict(authorities)
        self._authorities = {name: _parsed(name, pem) for name, pem in self._pems.items()}
        self._peers: dict[bytes, tuple[str, ec.EllipticCurvePublicKey]] = {}

    def __getitem__(self, name: str) -> bytes:
        return self._pems[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._pems)

    def __len__(self) -> int:
        return len(self._pems)

    def endorser(self, payload: bytes, endorsement: Any) -> str:
        """Return whose peer signed a proposal's response payload; Untrue if no member's peer did."""
        organisation, key = self._peer(bytes(endorsement.endorser))
        try:
            if utils.decode_dss_signature(endorsement.signature)[1] > P256_ORDER // 2:
                raise Untrue(f"the signature for {organisation} has the high S, which no peer takes")
            key.verify(endorsement.signature, payload + endorsement.endorser, ec.ECDSA(hashes.SHA256()))
        except (InvalidSignature, ValueError) as error:
            raise Untrue(f"the signature for {organisation} does not verify") from error
        return organisation

    def _peer(self, serialized: bytes) -> tuple[str, ec.EllipticCurvePublicKey]:
        """Find organisation and key of a serialized identity; only peers of members are remembered."""
        if serialized not in self._peers:
            self._peers[serialized] = self._admitted(serialized)
        return self._peers[serialized]

    def _admitted(self, serialized: bytes) -> tuple[str, ec.EllipticCurvePublicKey]:
        try:
            found = msp.SerializedIdentity.FromString(serialized)
            certificate = x509.load_pem_x509_certificate(found.id_bytes)
            key = certificate.public_key()
            units = [
                attribute.value
                for attribute in certificate.subject.get_attributes_for_oid(
                    x509.NameOID.ORGANIZATIONAL_UNIT_NAME
                )
            ]
        except (DecodeError, ValueError) as error:
            raise Untrue(f"the endorser's certificate cannot be read ({error})") from error
        if found.mspid not in self._authorities:
            raise Untrue(f"the endorser is of {found.mspid!r}, which is no organisation of the channel")
        if not any(_issued(certificate, authority) for authority in self._authorities[found.mspid]):
            raise Untrue(f"the endorser's certificate was not issued by the authority of {found.mspid}")
        if PEER_UNIT not in units:
            raise Untrue(f"the endorser's certificate of {found.mspid} is not a peer's")
        if not isinstance(key, ec.EllipticCurvePublicKey) or not isinstance(key.curve, ec.SECP256R1):
            raise Untrue(f"the endorser's key of {found.mspid} is not on P-256")
        return found.mspid, key


def _parsed(name: str, pem: bytes) -> list[x509.Certificate]:
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise IdentityError(
            "IDENTITY_UNUSABLE", f"the authority of {name} cannot be read: {error}"
        ) from error


def _issued(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    # Fabric's peers do not look at the time either: a client that did would refuse what they accept.
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True
