"""Key-level endorsement: whose peers must sign a change of one key, in place of the chaincode's own policy.

    own = peer_of("Org1MSP")
    policy = all_of(own, n_of(2, peer_of("Org2MSP"), peer_of("Org3MSP"), peer_of("Org4MSP")))
    ctx.set_endorsement(key, policy)

Fabric asks for a key's policy when a *later* transaction writes the key: the one that creates the key, and
sets the policy with it, still falls under the policy of the chaincode. A policy names every organisation it
means; it cannot refer to one of the channel, such as MAJORITY.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from . import wire
from .errors import MisuseError

PEER = wire.principals.MSPRole.PEER


@dataclass(frozen=True)
class Endorsement:
    """A rule over organisations' peers: one organisation, or so many of several rules."""

    organisation: str = ""
    count: int = 0
    rules: tuple["Endorsement", ...] = ()

    def to_bytes(self) -> bytes:
        """Write the policy as Fabric stores it; equal rules give equal bytes on every peer."""
        organisations = sorted(set(self._organisations()))
        places = {organisation: place for place, organisation in enumerate(organisations)}
        made = wire.policies.SignaturePolicyEnvelope(
            rule=self._rule(places), identities=[_principal(organisation) for organisation in organisations]
        )
        return bytes(made.SerializeToString(deterministic=True))

    @classmethod
    def from_bytes(cls, raw: bytes) -> "Endorsement":
        """Read a policy of peers; one with other principals is not of this kind and is refused."""
        made = wire.parse(wire.policies.SignaturePolicyEnvelope, raw)
        organisations = [_organisation(identity) for identity in made.identities]
        return cls._read(made.rule, organisations)

    def _organisations(self) -> Iterator[str]:
        if self.organisation:
            yield self.organisation
        for rule in self.rules:
            yield from rule._organisations()

    def _rule(self, places: dict[str, int]) -> Any:
        if self.organisation:
            return wire.policies.SignaturePolicy(signed_by=places[self.organisation])
        rules = [rule._rule(places) for rule in self.rules]
        return wire.policies.SignaturePolicy(
            n_out_of=wire.policies.SignaturePolicy.NOutOf(n=self.count, rules=rules)
        )

    @classmethod
    def _read(cls, rule: Any, organisations: list[str]) -> "Endorsement":
        if rule.WhichOneof("Type") == "n_out_of":
            rules = tuple(cls._read(each, organisations) for each in rule.n_out_of.rules)
            return cls(count=rule.n_out_of.n, rules=rules)
        if rule.WhichOneof("Type") is None or not 0 <= rule.signed_by < len(organisations):
            raise wire.FormatError("a rule of the policy names nobody")
        return cls(organisation=organisations[rule.signed_by])


def peer_of(organisation: str) -> Endorsement:
    """One peer of the organisation, given by its MSP id."""
    if not organisation:
        raise MisuseError("an endorsement needs an organisation")
    return Endorsement(organisation)


def n_of(count: int, *rules: Endorsement) -> Endorsement:
    """So many of these."""
    if not 1 <= count <= len(rules):
        raise MisuseError(f"{count} of {len(rules)} rules can never hold, or always")
    return Endorsement(count=count, rules=rules)


def all_of(*rules: Endorsement) -> Endorsement:
    """Every one of these."""
    return n_of(len(rules), *rules)


def _principal(organisation: str) -> Any:
    role = wire.principals.MSPRole(msp_identifier=organisation, role=PEER)
    return wire.principals.MSPPrincipal(principal=role.SerializeToString())


def _organisation(principal: Any) -> str:
    role = wire.parse(wire.principals.MSPRole, principal.principal)
    if principal.principal_classification != wire.principals.MSPPrincipal.ROLE or role.role != PEER:
        raise wire.FormatError("the policy asks for others than peers")
    return str(role.msp_identifier)
