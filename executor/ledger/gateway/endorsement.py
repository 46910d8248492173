"""Endorsements, each checked, from as many organisations as the policy wants, with the same result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any

import grpc

from .errors import EndorseError
from .failures import Denial, raise_failure, raise_undecided, refused
from .inquiry import Inquiry, Rule, Statement, Undecided
from .members import Members, Untrue
from .messages import gateway
from .peer import Link
from .proposal import Proposal, Result

Endorsements = Mapping[str, Any]
"""peer.Endorsement by the organisation whose peer made it."""


@dataclass(frozen=True)
class Collection:
    """A proposal on its way to be endorsed."""

    proposal: Proposal
    members: Members
    direct: bool
    """Whether each peer brings its own organisation's endorsement, so that none can spoil another's.

    Only where peers of fewer organisations are known than have to endorse does a peer bring those of others.
    """
    refusals: int
    """How many organisations have to refuse alike."""
    believed: str
    """The organisation whose refusal counts alone; empty if none's does."""
    seconds: float

    def start(self, link: Link) -> Any:
        """Ask a peer."""
        request = gateway.EndorseRequest(
            transaction_id=self.proposal.tx_id,
            channel_id=self.proposal.channel,
            proposed_transaction=self.proposal.signed,
            endorsing_organizations=[link.peer.msp] if self.direct else [],
        )
        return link.begin("Endorse", request, self.seconds)

    def take(
        self, link: Link, answer: Any, error: grpc.RpcError | None
    ) -> Statement[tuple[Result, Endorsements] | Denial] | None:
        """Check what a peer brought: the result, and every signature under it."""
        if error is not None:
            no = refused(link, error)
            needed = 1 if link.peer.msp == self.believed else self.refusals
            return None if no is None else replace(no, needed=needed)
        result, endorsements = self.proposal.result_in(answer.prepared_transaction)
        found = {self.members.endorser(result.payload, one): one for one in endorsements}
        if not found:
            raise Untrue("it brought no endorsement")
        if self.direct and link.peer.msp not in found:
            raise Untrue(f"it brought an endorsement of {', '.join(found)} and none of {link.peer.msp}")
        digest = sha256(result.payload).hexdigest()
        words = f"result sha256:{digest}"
        return Statement(("endorsed", digest), (result, found), words, tuple(found))


def collect(links: Sequence[Link], rule: Rule, collection: Collection) -> tuple[Result, Endorsements]:
    """Return a result and the endorsements of it by enough organisations."""
    tx_id = collection.proposal.tx_id
    try:
        votes = Inquiry(links, rule, collection.start, collection.take).decide()
    except Undecided as undecided:
        raise_undecided(EndorseError, tx_id, undecided, "the result of the transaction")
    endorsements: dict[str, Any] = {}
    for found in (statement.value for statement in votes.values()):
        if isinstance(found, Denial):
            raise_failure(EndorseError, tx_id, [(found.link, found.error)])
        result, brought = found
        endorsements |= brought
    return result, endorsements
