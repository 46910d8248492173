"""Requests to read models: each its organisation's own, decided by the votes of those who have a say."""

from executor.audit.findings import Findings
from executor.audit.replay.view import MODEL, View, Written
from protocol.agreement.consent import Consent, consent_to_access
from protocol.agreement.lifecycle import ProcessState
from protocol.ledger import keys
from protocol.ledger.models import AccessRecord
from protocol.ledger.requests import AccessRequest, AccessVote, outcome_of

SENTENCES = {
    "requests": "each request to read a model and each vote on it is its organisation's own, and was decided"
    " by the votes that its process asks for",
}


def check_request(findings: Findings, view: View, item: Written) -> None:
    """A request is its organisation's own, on the terms of the process, and is decided once, by the votes."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, AccessRequest)  # noqa: S101
    before = view.before(item.raw_key, AccessRequest)
    if before is None or before.mark != record.mark:
        process = view.process(record.process)
        _check_own(findings, view, item, record.organisation)
        fits = (
            record.decision is None
            and process.status is ProcessState.COMPLETED
            and record.licence == process.specification.model_licence
        )
        findings.check("requests", fits, f"{key} is not on the terms of its process", where)
        return
    once = before.decision is None
    findings.check("requests", once, f"{key} was decided twice", where)
    decision = record.decision
    if decision is None:
        return
    consent = _consent(view, record)
    votes = {name: vote for name in consent.members if (vote := _vote(view, record, name)) is not None}
    right = decision == outcome_of(consent, votes, decision.by)
    findings.check("requests", right, f"{key} was decided otherwise than by the votes on it", where)


def check_vote(findings: Findings, view: View, item: Written) -> None:
    """A vote is its organisation's own, which is entitled to it, and about the request as it was asked."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, AccessVote)  # noqa: S101
    _check_own(findings, view, item, record.voter)
    place = keys.request(record.process, record.node, record.organisation, record.number)
    asked = view.before(place, AccessRequest)
    known = asked is not None and asked.digest == record.digest and asked.decision is None
    findings.check("requests", known, f"{key} is about no open request", where)
    entitled = asked is not None and record.voter in _consent(view, asked).members
    findings.check("requests", entitled, f"{record.voter} has no say in {key}", where)


RULES = {"request": (check_request,), "decision": (check_vote,)}


def _check_own(findings: Findings, view: View, item: Written, organisation: str) -> None:
    record = item.record
    assert isinstance(record, AccessRequest | AccessVote)  # noqa: S101
    own = organisation == view.creator.organisation.msp_id
    findings.check("requests", own, f"{item.key} was written by another organisation", view.where)
    vouched = view.has_mark(MODEL, organisation, item.raw_key, record.mark)
    findings.check("requests", vouched, f"{organisation} did not vouch for {item.key}", view.where)


def _consent(view: View, asked: AccessRequest) -> Consent:
    """Return who has a say in a request: as the chaincode computes it."""
    process = view.process(asked.process)
    progress, _ = view.progress(process)
    access = view.before(keys.access(asked.process, asked.node), AccessRecord)
    owner = "" if access is None else access.owner
    rule = process.specification.model_access
    return consent_to_access(rule, owner, progress.present(), asked.organisation)


def _vote(view: View, asked: AccessRequest, voter: str) -> AccessVote | None:
    """Return an organisation's vote that counts: vouched for, about the request as it was asked."""
    place = asked.key_of(voter)
    found = view.find(place, AccessVote)
    if found is None or found.digest != asked.digest:
        return None
    marked = (MODEL, voter, place, found.mark)
    vouched = view.has_mark(*marked) if place in view.written else view.had_mark(*marked)
    return found if vouched else None
