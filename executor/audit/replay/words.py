"""Asks, agreements, votes and the changes they come to: each the word of its organisation."""

from collections.abc import Iterator
from dataclasses import replace

from executor.audit.findings import Findings
from executor.audit.replay.view import ORCHESTRATION, View, Written
from protocol.agreement.course import ChangeKind
from protocol.ledger import keys
from protocol.ledger.changes import (
    AbsenceVote,
    AgreementRecord,
    AskCount,
    AskRecord,
    ChangeRecord,
    OwnWord,
    change_digest,
)
from protocol.ledger.common import Provenance
from protocol.ledger.processes import ProcessRecord

SENTENCES = {
    "steps": "each step that a coordinator opens was opened by it, in order, before any task of the step",
}


def check_own(findings: Findings, view: View, item: Written) -> None:
    """What an organisation accepts, agrees to or votes for is written and vouched for by itself."""
    organisation = str(item.key.parts[-1])
    own = organisation == view.creator.organisation.msp_id
    findings.check("agreements", own, f"{item.key} was written by another organisation", view.where)
    _check_word(findings, view, item, organisation)


def check_ask(findings: Findings, view: View, item: Written) -> None:
    """What an organisation asks for is vouched for by itself; the last to agree notes what it became."""
    record = item.record
    assert isinstance(record, AskRecord)  # noqa: S101
    key, where, before = item.key, view.where, view.before(item.raw_key, AskRecord)
    if before is None or before.mark != record.mark:
        own = record.asked == view.creator.organisation.msp_id
        findings.check("agreements", own, f"{key} was written by another organisation", where)
        _check_word(findings, view, item, record.asked)
    kept = before is None or replace(before, change=record.change, withdrawn=record.withdrawn) == record
    findings.check("agreements", kept, f"{key} was altered after it was asked", where)
    open_before = before is None or (before.change is None and before.withdrawn is None)
    findings.check("agreements", open_before, f"{key} was over before", where)
    process = view.before(keys.process(record.process), ProcessRecord)
    held = 0 if process is None else process.course.count
    dated = before is not None or record.after in (None, held)
    findings.check("agreements", dated, f"{key} says that it was asked at another time", where)
    named = record.digest == change_digest(record.wanted)
    findings.check("agreements", named, f"{key} names another digest than what it asks for", where)
    change = None if record.change is None else view.written.get(keys.change(record.process, record.change))
    became = isinstance(change, ChangeRecord) and (change.asked, change.ask) == (record.asked, record.number)
    findings.check("agreements", became is (record.change is not None), f"{key} became no change", where)
    if before is None:
        count = view.written.get(keys.asks(record.process, record.asked))
        counted = isinstance(count, AskCount) and count.asked == record.number + 1
        findings.check("agreements", counted, f"{key} was not counted", where)


def check_ask_count(findings: Findings, view: View, item: Written) -> None:
    """What an organisation asks for is counted one by one, up to what the process lets it ask for."""
    record, (process, organisation) = item.record, map(str, item.key.parts)
    assert isinstance(record, AskCount)  # noqa: S101
    before = view.before(item.raw_key, AskCount) or AskCount(0)
    right = record.asked == before.asked + 1 <= view.process(process).specification.change_quota
    what = f"{item.key} counts {record.asked} after {before.asked}"
    findings.check("agreements", right, what, view.where)
    made = keys.ask(process, organisation, before.asked) in view.written
    findings.check("agreements", made, f"{item.key} counts a change that was not asked for", view.where)


def _check_word(findings: Findings, view: View, item: Written, organisation: str) -> None:
    """Look for the mark that makes a transaction need the organisation's endorsement."""
    record = item.record
    if isinstance(record, OwnWord):
        vouched = view.has_mark(ORCHESTRATION, organisation, item.raw_key, record.mark)
        findings.check("agreements", vouched, f"{organisation} did not vouch for {item.key}", view.where)


def check_change(findings: Findings, view: View, item: Written) -> None:
    """A change is written once, and who it says agreed to it did: asked, agreed or voted."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, ChangeRecord)  # noqa: S101
    fresh = view.before(item.raw_key, ChangeRecord) is None
    findings.check("agreements", fresh, f"{key} was overwritten", where)
    for organisation, by in record.agreed.items():
        agreed = by.tx in (act.tx for act in _agreements(view, record, organisation))
        findings.check("agreements", agreed, f"{organisation} did not agree to {key}", where)
    if record.ask is not None:
        _check_current(findings, view, item, record.ask)
    if record.kind is ChangeKind.OPEN_STEP:
        _check_step(findings, view, item, record)


def _check_current(findings: Findings, view: View, item: Written, number: int) -> None:
    """What was asked for became a change before another decided on the same."""
    record = item.record
    assert isinstance(record, ChangeRecord)  # noqa: S101
    ask = view.find(keys.ask(record.process, record.asked, number), AskRecord)
    process = view.before(keys.process(record.process), ProcessRecord)
    later = None if ask is None or process is None else ask.overtaken_by(process.plan)
    what = f"{item.key} was asked for before change {later}, which decided otherwise"
    findings.check("agreements", later is None, what, view.where)


def _check_step(findings: Findings, view: View, item: Written, record: ChangeRecord) -> None:
    """A step is opened by the coordinator of that moment, and none before its turn."""
    process = view.before(keys.process(record.process), ProcessRecord)
    upcoming = None if process is None else process.plan.next_step()
    named = None if upcoming is None else ({"step": upcoming[0].name}, upcoming[1])
    right = named == (record.subject, record.iteration)
    findings.check("steps", right, f"{item.key} opens a step that is not next", view.where)


def _agreements(view: View, record: ChangeRecord, organisation: str) -> Iterator[Provenance]:
    """Iterate over what an organisation wrote about a change."""
    process, subject = record.process, record.subject
    if record.kind is ChangeKind.OPEN_STEP:
        key, mark = keys.change(process, record.number), str(change_digest(record.change))
        own = organisation == view.creator.organisation.msp_id
        if own and view.has_mark(ORCHESTRATION, organisation, key, mark):
            yield view.provenance
        return
    if record.ask is not None:
        ask = view.find(keys.ask(process, record.asked, record.ask), AskRecord)
        open_ask = ask is not None and ask.withdrawn is None and ask.wanted == record.change
        if ask is not None and open_ask and organisation == record.asked:
            yield ask.by
        place = keys.agreement(process, record.asked, record.ask, organisation)
        agreement = view.find(place, AgreementRecord)
        if agreement is not None and agreement.digest == change_digest(record.change):
            yield agreement.by
        return
    decisive, vote = _absence_vote(view, record, record.asked), _absence_vote(view, record, organisation)
    if decisive is None or vote is None:
        return
    if vote.counts and vote.nodes == subject["nodes"] and vote.seen == decisive.seen:
        yield vote.by


def _absence_vote(view: View, record: ChangeRecord, organisation: str) -> AbsenceVote | None:
    """Return an organisation's vote to leave out whom a change does; void where others saw more since."""
    process, subject = record.process, record.subject
    if subject["whole"]:
        return view.find(keys.departure(process, subject["organisation"], organisation), AbsenceVote)
    named = [*subject["nodes"]]
    return view.find(keys.absence(process, named[0], organisation), AbsenceVote) if len(named) == 1 else None


RULES = {
    "ask": (check_ask,),
    "asks": (check_ask_count,),
    "agreement": (check_own,),
    "absence": (check_own,),
    "departure": (check_own,),
    "abort": (check_own,),
    "change": (check_change,),
}
