"""Asking who reads a model of a completed process, and deciding on it as its specification says.

Requests and votes stand under keys of their own and count with the endorsement of the organisation whose
word they are (`chaincode/common/own.py`). Who decides is in `protocol/agreement/consent.py`.
"""

from dataclasses import replace

from chaincode.common import (
    DEFAULT_PAGE,
    STAFF,
    LedgerContract,
    allow,
    caller_of,
    page,
    provenance,
    read,
    time_text,
    write,
)
from chaincode.common.calls import access_terms
from chaincode.common.own import find_words, is_word, write_word
from chaincode.model import access
from chaincode.shim import Context, evaluate, submit
from protocol.agreement.consent import Consent, consent_to_access
from protocol.agreement.image import check_text
from protocol.agreement.lifecycle import ProcessState
from protocol.errors import AccessError, StateError
from protocol.identifiers import check_counter, parse_node, parse_organisation, parse_process
from protocol.ledger import keys
from protocol.ledger.common import Page
from protocol.ledger.models import AccessRecord
from protocol.ledger.processes import AccessTerms
from protocol.ledger.record import VERSION
from protocol.ledger.requests import AccessRequest, AccessVote, RequestCount, RequestStatus, outcome_of


class AccessRequests(LedgerContract):
    """Request, RequestRevocation, Decide and Requests."""

    @submit
    @allow(*STAFF)
    def request(  # noqa: PLR0917
        self, ctx: Context, process: str, node: str, purpose: str, licence: str = "", expires: str = ""
    ) -> RequestStatus:
        """Ask to read a model of a completed process, for the caller's organisation; returns the request.

        `licence` is the digest of the licence text that the process agreed on, where there is one: who asks
        accepts it. `expires` is a time in UTC, as for Grant; whose access ends earlier can ask for more. Each
        organisation asks as often as `change_quota` of the process says.
        """
        check_text(purpose, "the purpose")
        record, terms = access.find_access(ctx, process, node), access_terms(ctx, process)
        asker = caller_of(ctx).organisation
        _check_completed(terms)
        until = access.expiry(expires, ctx.time)
        if record.allows_until(asker, time_text(ctx.time), until):
            raise StateError("REQUEST_NEEDLESS", f"{asker} may read the model of {node}")
        _check_licence(terms, licence)
        number = _count(ctx, terms, asker)
        by, after = provenance(ctx), record.last_decision(asker)
        made = AccessRequest(process, node, asker, number, purpose, terms.licence, until, by, after=after)
        return self._asked(ctx, made, _consent(terms, record, made))

    @submit
    @allow(*STAFF)
    def request_revocation(
        self, ctx: Context, process: str, node: str, organisation: str, purpose: str
    ) -> RequestStatus:
        """Ask to take an organisation's access to a model away, by one who has a say; returns the request.

        It is decided as a request to read is, without the organisation whose access it is about, and counts
        as one. Where the owner alone decides it may Revoke at once.
        """
        check_text(purpose, "the purpose")
        record, terms = access.find_access(ctx, process, node), access_terms(ctx, process)
        asker = caller_of(ctx).organisation
        _check_completed(terms)
        access.check_revocable(record, organisation)
        number, by = _count(ctx, terms, asker), provenance(ctx)
        after = record.last_decision(organisation)
        made = AccessRequest(
            process, node, asker, number, purpose, None, None, by, revokes=organisation, after=after
        )
        consent = _consent(terms, record, made)
        _check_say(consent, asker)
        return self._asked(ctx, made, consent)

    @submit
    @allow(*STAFF)
    def decide(  # noqa: PLR0917
        self, ctx: Context, process: str, node: str, organisation: str, number: int, digest: str, agrees: bool
    ) -> RequestStatus:
        """Vote on a request about who reads a model; returns the request with the votes on it.

        `number` is the request's, `digest` that of what is asked for. Whose votes it takes is in the
        specification (`model_access`): the owner's, a majority's, or everybody's. The vote that is enough
        does what is asked; the one after which the others cannot be enough refuses it. Either decides on the
        access that it is about, and ends what else was asked about it: who still wants that asks again.
        """
        asked = _find(ctx, process, node, organisation, number)
        if asked.decision is not None:
            raise StateError("REQUEST_DECIDED", f"request {number} of {organisation} is decided")
        if str(asked.digest) != digest:
            raise StateError("REQUEST_DIGEST", f"{organisation} asks for {asked.digest}")
        record, terms = access.find_access(ctx, process, node), access_terms(ctx, process)
        asked.check_current(record, time_text(ctx.time))
        consent, voter = _consent(terms, record, asked), caller_of(ctx).organisation
        _check_say(consent, voter)
        votes = _votes(ctx, asked, consent)
        if voter in votes:
            raise StateError("REQUEST_VOTED", f"{voter} has voted on this request")
        by = provenance(ctx)
        vote = AccessVote(process, node, organisation, number, voter, agrees, asked.digest, by)
        write_word(ctx, voter, asked.key_of(voter), vote)
        votes[voter] = vote
        asked = replace(asked, decision=outcome_of(consent, votes, by))
        if asked.decision is not None:
            write(ctx, asked.key, asked)
            write(ctx, keys.access(process, node), asked.carried_out(record, by))
        self._say(ctx, "AccessVoted", asked)
        return RequestStatus.of(asked, consent, votes)

    @evaluate
    def requests(
        self, ctx: Context, process: str, node: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[RequestStatus]:
        """List the requests about models of a process, or about one of them, with the votes on each."""
        prefix = ("request", parse_process(process), *((parse_node(node),) if node else ()))
        terms = access_terms(ctx, process)

        def show(asked: AccessRequest) -> RequestStatus | None:
            if not is_word(ctx, asked.organisation, asked.key, asked):
                return None
            record = access.find_access(ctx, process, asked.node)
            consent = _consent(terms, record, asked)
            stale = asked.is_stale(record, time_text(ctx.time))
            return RequestStatus.of(asked, consent, _votes(ctx, asked, consent), stale)

        return page(ctx, prefix, size, bookmark, AccessRequest, show)

    def _asked(self, ctx: Context, made: AccessRequest, consent: Consent) -> RequestStatus:
        write_word(ctx, made.organisation, made.key, made)
        self._say(ctx, "AccessRequested", made)
        return RequestStatus.of(made, consent, {})

    def _say(self, ctx: Context, event: str, asked: AccessRequest) -> None:
        decided = None if asked.decision is None else asked.decision.granted
        self.announce(
            ctx,
            event,
            {
                "version": VERSION,
                "process": asked.process,
                "node": asked.node,
                "organisation": asked.organisation,
                "number": asked.number,
                "voter": caller_of(ctx).organisation,
                "granted": decided,
            },
        )


def _check_completed(terms: AccessTerms) -> None:
    """Refuse a request before the end of the process: who has a say changes until then."""
    if terms.status is not ProcessState.COMPLETED:
        raise StateError("REQUEST_EARLY", f"process {terms.process} is {terms.status}")


def _check_licence(terms: AccessTerms, licence: str) -> None:
    """Refuse a request to read on another licence than was agreed on."""
    agreed = "" if terms.licence is None else str(terms.licence)
    if licence != agreed:
        raise StateError("REQUEST_LICENCE", f"the licence of {terms.process} is {agreed or 'none'}")


def _check_say(consent: Consent, organisation: str) -> None:
    if organisation not in consent.members:
        raise AccessError("ACCESS_ORGANISATION", f"{organisation} has no say in who reads this model")


def _count(ctx: Context, terms: AccessTerms, asker: str) -> int:
    """Return the number of an organisation's next request; refuse one more than the process lets it make."""
    place = keys.requests(terms.process, asker)
    before = read(ctx, place, RequestCount) or RequestCount(0)
    if before.asked >= terms.quota:
        raise StateError("REQUEST_LIMIT", f"{asker} has made {before.asked} requests in {terms.process}")
    write(ctx, place, RequestCount(before.asked + 1))
    return before.asked


def _find(ctx: Context, process: str, node: str, organisation: str, number: int) -> AccessRequest:
    """Read a request that is there and is its organisation's own word."""
    asker = parse_organisation(organisation)
    place = keys.request(process, node, asker, check_counter(number, "number"))
    found = read(ctx, place, AccessRequest)
    if found is None or not is_word(ctx, asker, place, found):
        raise StateError("REQUEST_UNKNOWN", f"{asker} has made no request {number} of {process}/{node}")
    return found


def _consent(terms: AccessTerms, record: AccessRecord, asked: AccessRequest) -> Consent:
    return consent_to_access(terms.access, record.owner, terms.entitled, asked.subject)


def _votes(ctx: Context, asked: AccessRequest, consent: Consent) -> dict[str, AccessVote]:
    """Return the votes on a request that are their organisations' own words, about what it says."""
    places = {name: asked.key_of(name) for name in consent.members}
    found = find_words(ctx, places, AccessVote)
    return {name: vote for name, vote in found.items() if vote.digest == asked.digest}
