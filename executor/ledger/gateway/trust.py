"""Whose word counts: how many organisations make a fact, and which may be believed alone."""

from dataclasses import dataclass

from .errors import TrustError


@dataclass(frozen=True, slots=True)
class Trust:
    """What the caller takes on one organisation's word; by default as little as a channel can work with."""

    own_peer: bool = False
    """Believe the own organisation's peer alone, in everything."""
    peers: bool = False
    """Believe any single peer in reads that decide nothing, while the own one does not answer."""
    agreement: int | None = None
    """How many organisations have to say the same; None for more than a third of them, and at least two."""

    def needed(self, organisations: int) -> int:
        """Return how many of a channel's organisations have to say the same."""
        if self.agreement is None:
            return min(organisations, max(2, organisations // 3 + 1))
        if not 1 <= self.agreement <= organisations:
            raise TrustError(
                "AGREEMENT_RANGE",
                f"an agreement of {self.agreement} organisations, in a channel that has {organisations}",
            )
        return self.agreement


def majority(organisations: int) -> int:
    """Return how many organisations have to endorse under Fabric's MAJORITY policy."""
    return organisations // 2 + 1
