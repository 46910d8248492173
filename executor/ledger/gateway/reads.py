"""A read: on the own organisation's word, or on what enough organisations say alike."""

from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

import grpc

from .errors import EvaluateError
from .failures import Denial, raise_failure, raise_undecided, refused
from .inquiry import Inquiry, Rule, Statement, Undecided
from .messages import gateway
from .peer import Link
from .proposal import Proposal

Check = Callable[[Link, bytes], bytes]
"""Returns in what two answers have to be equal; raises Untrue for one that cannot be."""


def read(
    links: Sequence[Link],
    rule: Rule,
    proposal: Proposal,
    seconds: float,
    check: Check = lambda _, answer: answer,
) -> bytes:
    """Have peers run a proposal, each by itself, until the rule is satisfied; a refusal is an answer."""

    def start(link: Link) -> Any:
        request = gateway.EvaluateRequest(
            transaction_id=proposal.tx_id,
            channel_id=proposal.channel,
            proposed_transaction=proposal.signed,
            target_organizations=[link.peer.msp],
        )
        return link.begin("Evaluate", request, seconds)

    def take(link: Link, answer: Any, error: grpc.RpcError | None) -> Statement[bytes | Denial] | None:
        if error is not None:
            return refused(link, error)
        found = bytes(answer.result.payload)
        digest = sha256(check(link, found)).hexdigest()
        return Statement(("answered", digest), found, f"{len(found)} bytes, sha256:{digest}")

    try:
        votes = Inquiry(links, rule, start, take).decide()
    except Undecided as undecided:
        raise_undecided(EvaluateError, proposal.tx_id, undecided, "the answer")
    found = next(iter(votes.values())).value
    if isinstance(found, Denial):
        raise_failure(EvaluateError, proposal.tx_id, [(found.link, found.error)])
    return found
