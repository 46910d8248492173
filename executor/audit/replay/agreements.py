"""Images and processes: registered once, agreed by those who have to, changed along the life cycle."""

from collections.abc import Iterator
from enum import StrEnum
from typing import TypeVar

from executor.audit.findings import Findings
from executor.audit.replay.view import ORCHESTRATION, View, Written
from protocol.agreement.course import ChangeKind, Course
from protocol.agreement.lifecycle import IMAGE, PROCESS, ImageState, Lifecycle, ProcessState
from protocol.ledger import keys
from protocol.ledger.changes import (
    AbsenceVote,
    AcceptanceRecord,
    AgreementRecord,
    AskRecord,
    ChangeRecord,
    OwnWord,
    change_digest,
)
from protocol.ledger.common import Provenance
from protocol.ledger.images import ImageNameRecord, ImageRecord
from protocol.ledger.keys import Key
from protocol.ledger.processes import ProcessRecord, ProgressRecord

T = TypeVar("T", bound=StrEnum)
S = TypeVar("S", bound=StrEnum)

SENTENCES = {
    "images": "each image version was registered once, and retired by the organisation that registered it",
    "agreements": "each process runs on the specification that its organisations accepted",
    "steps": "each step that a coordinator opens was opened by it, in order, before any task of the step",
    "progress": "each node went from iteration to iteration, by completed tasks alone",
}


def check_image(findings: Findings, view: View, item: Written) -> None:
    """An image version keeps its content; only its status moves, by its own organisation."""
    record, key = item.record, item.key
    assert isinstance(record, ImageRecord)  # noqa: S101
    before = view.before(item.raw_key, ImageRecord)
    was = ImageState.ABSENT if before is None else before.status
    findings.check(
        "images", _follows(IMAGE, was, record.status), f"{key} went from {was} to {record.status}", view.where
    )
    if before is not None:
        same = before.image == record.image and before.registered == record.registered
        findings.check("images", same, f"{key} was altered after its registration", view.where)
    own = record.registered.organisation == view.creator.organisation.msp_id
    findings.check("images", own, f"{key} was changed by another organisation", view.where)
    name = view.find(keys.imagename(record.image.name), ImageNameRecord)
    named = name is not None and name.organisation == record.registered.organisation
    findings.check("images", named, f"{key} has the name of another organisation's image", view.where)


def check_image_name(findings: Findings, view: View, item: Written) -> None:
    """An image's name gets its owner once."""
    fresh = view.before(item.raw_key, ImageNameRecord) is None
    findings.check("images", fresh, f"{item.key} was overwritten", view.where)


def check_process(findings: Findings, view: View, item: Written) -> None:
    """A process keeps its specification, and starts when those have accepted who have to."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, ProcessRecord)  # noqa: S101
    before = view.before(item.raw_key, ProcessRecord)
    was = ProcessState.ABSENT if before is None else before.status
    moved = _follows(PROCESS, was, record.status)
    findings.check("agreements", moved, f"{key} went from {was} to {record.status}", where)
    same = record.specification.digest == record.specification_digest
    findings.check("agreements", same, f"{key} names another digest than its specification has", where)
    if before is not None:
        kept = before.specification_digest == record.specification_digest and before.created == record.created
        findings.check("agreements", kept, f"the specification of {key} was altered", where)
    for organisation, by in record.accepted.items():
        own = by.organisation == organisation
        findings.check("agreements", own, f"{by.organisation} accepted {key} for {organisation}", where)
        accepted = view.find(keys.acceptance(record.process, organisation), AcceptanceRecord)
        same = accepted is not None and accepted.specification_digest == record.specification_digest
        findings.check("agreements", same, f"{organisation} did not accept what {key} says", where)
    if record.status is ProcessState.RUNNING and was is ProcessState.PROPOSED:
        missing = ", ".join(record.missing)
        findings.check("agreements", not missing, f"{key} runs, not accepted by {missing}", where)
    _check_course(findings, view, record, before, key)


def _check_course(
    findings: Findings, view: View, record: ProcessRecord, before: ProcessRecord | None, key: Key
) -> None:
    """A process takes the course of the changes that its transaction wrote, and no other."""
    expected = Course() if before is None else before.course
    for change in view.of_kind(ChangeRecord):
        expected = expected.after(change.change, record.specification.nodes)
    same = record.course == expected
    findings.check("agreements", same, f"{key} takes another course than its changes", view.where)


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
    before = view.before(item.raw_key, AskRecord)
    if before is None or before.mark != record.mark:
        _check_word(findings, view, item, record.asked)


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
    if record.kind is ChangeKind.OPEN_STEP:
        _check_step(findings, view, item, record)


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
        if ask is not None and organisation == record.asked and ask.wanted == record.change:
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


def check_progress(findings: Findings, view: View, item: Written) -> None:
    """A node advances by the result of a task, to an iteration that its plan has next."""
    record, key = item.record, item.key
    assert isinstance(record, ProgressRecord)  # noqa: S101
    before = view.before(item.raw_key, ProgressRecord)
    done = 0 if before is None else before.iteration + 1
    expected = view.plan(record.process).next_iteration(record.node, done)
    what = f"{key} went to iteration {record.iteration}, and {expected} was next"
    findings.check("progress", record.iteration == expected, what, view.where)
    completed = keys.result(record.process, record.iteration, record.node) in view.written
    findings.check("progress", completed, f"{key} advanced without a result", view.where)


RULES = {
    "image": (check_image,),
    "imagename": (check_image_name,),
    "process": (check_process,),
    "acceptance": (check_own,),
    "ask": (check_ask,),
    "agreement": (check_own,),
    "absence": (check_own,),
    "departure": (check_own,),
    "abort": (check_own,),
    "change": (check_change,),
    "progress": (check_progress,),
}


def _follows(cycle: Lifecycle[T, S], before: S, after: S) -> bool:
    """Whether the life cycle has a way from one state to the other."""
    return any(row[1] is before and row[2] is after for row in cycle.table)
