"""Requests about who reads models: each its organisation's own, decided by those who have a say."""

from executor.audit.findings import Findings
from executor.audit.replay.view import MODEL, View, Written
from protocol.agreement.consent import Consent, consent_to_access
from protocol.agreement.lifecycle import ProcessState
from protocol.ledger import keys
from protocol.ledger.common import Provenance
from protocol.ledger.models import AccessRecord
from protocol.ledger.requests import AccessDecision, AccessRequest, AccessVote, RequestCount, outcome_of

SENTENCES = {
    "requests": "each request about who reads a model and each vote on it is its organisation's own, no more"
    " than its process allows, and was decided by the votes that the process asks for",
}


def check_request(findings: Findings, view: View, item: Written) -> None:
    """A request is its organisation's own, on the terms of the process, and is decided once, by the votes."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, AccessRequest)  # noqa: S101
    before = view.before(item.raw_key, AccessRequest)
    if before is None or before.mark != record.mark:
        _check_own(findings, view, item, record.organisation)
        fits = record.decision is None and _is_on_terms(view, record)
        findings.check("requests", fits, f"{key} is not on the terms of its process", where)
        count = view.written.get(keys.requests(record.process, record.organisation))
        counted = isinstance(count, RequestCount) and count.asked == record.number + 1
        findings.check("requests", counted, f"{key} was not counted", where)
        return
    once = before.decision is None
    findings.check("requests", once, f"{key} was decided twice", where)
    decision = record.decision
    if decision is None:
        return
    right = decision == _outcome(view, record, decision.by)
    findings.check("requests", right, f"{key} was decided otherwise than by the votes on it", where)
    done = keys.access(record.process, record.node) in view.written
    findings.check("requests", done, f"{key} was not carried out as decided", where)


def check_count(findings: Findings, view: View, item: Written) -> None:
    """Requests of an organisation are counted one by one, up to what the process lets it ask for."""
    record, (process, organisation) = item.record, map(str, item.key.parts)
    assert isinstance(record, RequestCount)  # noqa: S101
    before = view.before(item.raw_key, RequestCount) or RequestCount(0)
    quota = view.process(process).specification.change_quota
    right = record.asked == before.asked + 1 <= quota
    findings.check("requests", right, f"{item.key} counts {record.asked} after {before.asked}", view.where)
    made = any(
        (asked.organisation, asked.number) == (organisation, before.asked) and asked.process == process
        for asked in view.of_kind(AccessRequest)
    )
    findings.check("requests", made, f"{item.key} counts a request that was not made", view.where)


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
    if asked is None:
        return
    access = view.before(keys.access(record.process, record.node), AccessRecord)
    current = access is not None and not asked.is_stale(access, record.by.time)
    findings.check("requests", current, f"{key} is about a request that was over", where)
    once = _vote_before(view, asked, record.voter) is None
    findings.check("requests", once, f"{record.voter} voted twice in {key}", where)
    left = view.find(place, AccessRequest)
    undecided = left is None or left.decision is None
    heard = not (undecided and _outcome(view, asked, record.by) is not None)
    findings.check("requests", heard, f"{key} was enough and decided nothing", where)


RULES = {"request": (check_request,), "requests": (check_count,), "decision": (check_vote,)}


def _is_on_terms(view: View, asked: AccessRequest) -> bool:
    """Whether the process was completed, and the request accepts its licence or has a say in a revocation."""
    process = view.process(asked.process)
    access = view.before(keys.access(asked.process, asked.node), AccessRecord)
    last = None if access is None else access.last_decision(asked.subject)
    if process.status is not ProcessState.COMPLETED or asked.after != last:
        return False
    if asked.revokes is None:
        return asked.licence == process.specification.model_licence
    return asked.licence is None and asked.organisation in _consent(view, asked).members


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
    return consent_to_access(rule, owner, progress.entitled(), asked.subject)


def _outcome(view: View, asked: AccessRequest, by: Provenance) -> AccessDecision | None:
    """Return what the votes on a request come to, with those of the transaction."""
    consent = _consent(view, asked)
    votes = {name: vote for name in consent.members if (vote := _vote(view, asked, name)) is not None}
    return outcome_of(consent, votes, by)


def _vote(view: View, asked: AccessRequest, voter: str) -> AccessVote | None:
    """Return an organisation's vote that counts: vouched for, about the request as it was asked."""
    place = asked.key_of(voter)
    found = view.written.get(place)
    if not isinstance(found, AccessVote):
        return _vote_before(view, asked, voter)
    counts = found.digest == asked.digest and view.has_mark(MODEL, voter, place, found.mark)
    return found if counts else None


def _vote_before(view: View, asked: AccessRequest, voter: str) -> AccessVote | None:
    """Return an organisation's vote that counted before the transaction."""
    place = asked.key_of(voter)
    found = view.before(place, AccessVote)
    if found is None or found.digest != asked.digest:
        return None
    return found if view.had_mark(MODEL, voter, place, found.mark) else None
