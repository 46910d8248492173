"""Who makes blocks, by the configuration in force: how many orderers must sign one, and whose they are.

With Raft a block carries one signature, of whichever orderer handed it out. With BFT it carries those of a
quorum of consenters. The channel's policy for blocks then is that quorum over the consenters themselves:
orderers refuse a configuration in which it is anything else, peers do not look, so it is looked at here.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from executor.audit.fabric.messages import configuration, identities, orderer, parse, policies, principal
from protocol.values import dataclass

BFT = "BFT"


@dataclass(frozen=True, slots=True)
class Consenter:
    """An orderer as the configuration names it: by a number, and by the certificate that it signs with."""

    number: int
    msp_id: str
    certificate: bytes

    @property
    def identity(self) -> bytes:
        """The identity as it stands in signatures."""
        named = identities.SerializedIdentity(mspid=self.msp_id, id_bytes=self.certificate)
        return bytes(named.SerializeToString())


@dataclass(frozen=True)
class Ordering:
    """How a channel's blocks come about."""

    consensus: str
    organisations: Sequence[str]
    """The organisations that have orderers."""
    consenters: Sequence[Consenter] = ()
    """The orderers, where blocks are signed by a quorum of them."""

    @classmethod
    def read(cls, consensus: bytes, mapping: bytes, organisations: Sequence[str]) -> "Ordering":
        """Read what the configuration says of consensus and of the orderers."""
        kind = str(parse(orderer.ConsensusType, consensus).type)
        if kind != BFT:
            return cls(kind, organisations)
        named = parse(configuration.Orderers, mapping).consenter_mapping
        found = tuple(Consenter(int(item.id), str(item.msp_id), bytes(item.identity)) for item in named)
        return cls(kind, organisations, found)

    @property
    def is_bft(self) -> bool:
        """Whether it takes a quorum to make a block."""
        return self.consensus == BFT

    @property
    def tolerated(self) -> int:
        """How many orderers may lie."""
        return (len(self.consenters) - 1) // 3 if self.consenters else 0

    @property
    def quorum(self) -> int:
        """How many orderers must sign a block: any two quorums share more than may lie."""
        if not self.is_bft:
            return 1
        return (len(self.consenters) + self.tolerated + 2) // 2

    @property
    def owners(self) -> dict[str, int]:
        """How many orderers each organisation has; with Raft the configuration does not say."""
        return dict(sorted(Counter(found.msp_id for found in self.consenters).items()))

    def identity_of(self, number: int) -> bytes | None:
        """Return the identity of the consenter of a number, or None if there is none."""
        return next((found.identity for found in self.consenters if found.number == number), None)

    def fault(self, policy: Any) -> str:
        """Say why the policy for blocks is no quorum of distinct consenters; empty if all is well."""
        if not self.is_bft:
            return ""
        numbers = {found.number for found in self.consenters}
        signers = {found.identity for found in self.consenters}
        if not self.consenters or min(len(numbers), len(signers)) < len(self.consenters):
            return "its consenters are none, or two are one"
        foreign = sorted({found.msp_id for found in self.consenters} - set(self.organisations))
        if foreign:
            return f"a consenter is of {foreign[0][:64]!r}, which is no organisation of orderers"
        signed = policy is not None and policy.type == policies.Policy.SIGNATURE
        if not signed or parse(policies.SignaturePolicyEnvelope, policy.value) != self._expected():
            return f"its policy for blocks is not {self.quorum} of its {len(self.consenters)} consenters"
        return ""

    def least(self, signatures: int) -> list[str]:
        """Return the fewest organisations that have so many orderers, the largest first."""
        found, had = list[str](), 0
        for name, number in sorted(self.owners.items(), key=lambda item: (-item[1], item[0])):
            if had < signatures:
                found.append(name)
                had += number
        return found

    def to_dict(self) -> dict[str, Any]:
        """Return the object of a report."""
        return {
            "kind": self.consensus,
            "organisations": list(self.organisations),
            "orderers": len(self.consenters) or None,
            "signatures_needed": self.quorum,
            "owners": self.owners,
        }

    def _expected(self) -> Any:
        made = policies.SignaturePolicyEnvelope()
        made.rule.n_out_of.n = self.quorum
        for place, found in enumerate(self.consenters):
            made.rule.n_out_of.rules.add(signed_by=place)
            kind = principal.MSPPrincipal.IDENTITY
            made.identities.add(principal_classification=kind, principal=found.identity)
        return made
