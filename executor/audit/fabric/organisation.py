"""Whom an organisation vouches for, by the rules of its MSP as the channel's configuration has it.

A certificate counts if exactly one chain leads from it to a root of its organisation, if no revocation list
of the configuration names it, and if it carries exactly one of the organisational units that tell clients,
peers, administrators and orderers apart. As in Fabric, the clock plays no part: expiry is for the peers that
take a proposal, and a block is as valid in ten years as on its day.
"""

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from executor.audit.fabric.certificates import (
    UntrustedError,
    authority_key,
    chain_id,
    check_usage,
    der,
    has_issued,
    has_made,
    is_authority,
    is_valid_at,
    read_certificate,
    read_certificates,
    read_lists,
    subject_key,
)
from executor.audit.fabric.identity import Identity
from executor.audit.fabric.messages import MalformedError, identities, msp_config, parse

MAX_CHAIN = 8
MAX_REMEMBERED = 4096
"""How many signers are remembered: a stranger can put another one into every transaction."""
ROLES = ("client", "peer", "admin", "orderer")


class Organisation:
    """An MSP of the channel's configuration: its roots, intermediates, revocations and units."""

    def __init__(self, config: Any) -> None:
        found = parse(msp_config.FabricMSPConfig, config.config)
        self.msp_id = str(found.name)
        self.roots = read_certificates(found.root_certs, self.msp_id)
        self.intermediates = read_certificates(found.intermediate_certs, self.msp_id)
        self.admins = {der(certificate) for certificate in read_certificates(found.admins, self.msp_id)}
        self.crls = read_lists(found.revocation_list, self.msp_id)
        self.units = {unit.organizational_unit_identifier for unit in found.organizational_unit_identifiers}
        self._parents = {
            der(chain[0])
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

    @classmethod
    def of_roots(cls, msp_id: str, roots: Iterable[x509.Certificate]) -> "Organisation":
        """Return the organisation that only its roots are known of, with the units that Fabric gives."""
        found = msp_config.FabricMSPConfig(
            name=msp_id, root_certs=[root.public_bytes(Encoding.PEM) for root in roots]
        )
        found.fabric_node_ous.enable = True
        for role in ROLES:
            unit = getattr(found.fabric_node_ous, f"{role}_ou_identifier")
            unit.organizational_unit_identifier = role
        return cls(msp_config.MSPConfig(config=found.SerializeToString()))

    def identify(self, pem: bytes) -> Identity:
        """Return the identity of a certificate, or raise if no single chain leads to a root."""
        certificate = read_certificate(pem)
        if is_authority(certificate):
            raise UntrustedError("an authority's certificate signs no transactions")
        check_usage(certificate)
        moment = certificate.not_valid_before_utc + timedelta(seconds=1)
        chains = self._chains(certificate, moment, 0)
        if len(chains) != 1:
            raise UntrustedError(f"{len(chains)} chains lead from it to a root of {self.msp_id}, not one")
        if der(chains[0][0]) in self._parents:
            raise UntrustedError("its issuer issues intermediate authorities, not members")
        return Identity(self, certificate, chains[0])

    def authorities(self) -> list[bytes]:
        """Return the certificates of its roots and intermediates in PEM."""
        return [found.public_bytes(Encoding.PEM) for found in (*self.roots, *self.intermediates)]

    def is_named_admin(self, identity: Identity) -> bool:
        """Whether the configuration names this very certificate as an administrator's."""
        return der(identity.certificate) in self.admins

    def refusal(self, identity: Identity) -> str:
        """Say why an identity is not valid now: revoked, or not exactly one role; empty if it is."""
        issuer, serial = identity.chain[0], identity.certificate.serial_number
        for crl in self.crls:
            named = crl.get_revoked_certificate_by_serial_number(serial) is not None
            if named and authority_key(crl) == subject_key(issuer) and has_made(issuer, crl):
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
        if depth == MAX_CHAIN or not is_valid_at(certificate, moment):
            return []
        found: list[tuple[x509.Certificate, ...]] = []
        for root in self.roots:
            if has_issued(root, certificate, depth) and is_valid_at(root, moment):
                found.append((root,))
        for issuer in self.intermediates:
            if issuer != certificate and has_issued(issuer, certificate, depth):
                found += [(issuer, *rest) for rest in self._chains(issuer, moment, depth + 1)]
        return found

    def _certifier(self, pem: bytes) -> bytes:
        if not pem:
            return b""
        certificate = read_certificate(pem)
        if certificate in self.roots:
            return chain_id((certificate,))
        chains = self._chains(certificate, certificate.not_valid_before_utc + timedelta(seconds=1), 0)
        return chain_id((certificate, *chains[0])) if len(chains) == 1 else b"unknown"


class Members:
    """The organisations of a channel's configuration, and the identities met under it."""

    def __init__(self, organisations: Iterable[Organisation]) -> None:
        self.organisations = {found.msp_id: found for found in organisations}
        self._known: dict[bytes, Identity | str] = {}
        """By how they were named: identities, or why they are none. Errors would hold on to blocks."""

    def identify(self, serialized: bytes) -> Identity:
        """Return the identity behind a signature header or an endorsement, or raise."""
        found = self._known.get(serialized)
        if found is None:
            if len(self._known) >= MAX_REMEMBERED:
                self._known.clear()
            found = self._known[serialized] = self._read(serialized)
        if isinstance(found, str):
            raise UntrustedError(found)
        return found

    def _read(self, serialized: bytes) -> Identity | str:
        try:
            identity = parse(identities.SerializedIdentity, serialized)
            organisation = self.organisations.get(identity.mspid)
            if organisation is None:
                raise UntrustedError(f"{identity.mspid[:64]!r} is no organisation of the channel")
            return organisation.identify(identity.id_bytes)
        except (MalformedError, UntrustedError) as error:
            return str(error)
