"""Images and processes: registered once, agreed by those who have to, changed along the life cycle."""

from enum import StrEnum
from functools import partial
from typing import TypeVar

from executor.audit.findings import Findings
from executor.audit.replay.callers import SCIENTIST
from executor.audit.replay.view import ORCHESTRATION, View, Written
from protocol.agreement.course import Course
from protocol.agreement.lifecycle import IMAGE, PROCESS, ImageState, Lifecycle, ProcessState
from protocol.agreement.proposal import check_proposal
from protocol.agreement.step import VERSION
from protocol.ledger import keys
from protocol.ledger.changes import AcceptanceRecord, ChangeRecord
from protocol.ledger.images import ImageNameRecord, ImageRecord
from protocol.ledger.keys import Key
from protocol.ledger.processes import ProcessRecord, ProgressRecord

T = TypeVar("T", bound=StrEnum)
S = TypeVar("S", bound=StrEnum)

SENTENCES = {
    "images": "each image version was registered once, and retired by the organisation that registered it",
    "agreements": "each process runs on the specification that its organisations accepted",
    "progress": "each node went from iteration to iteration, by completed tasks alone",
}


def check_image(findings: Findings, view: View, item: Written) -> None:
    """An image version keeps its content; only its status moves, by its own organisation."""
    record, key, where = item.record, str(item.key), view.where
    assert isinstance(record, ImageRecord)  # noqa: S101
    before = view.before(item.raw_key, ImageRecord)
    was = ImageState.ABSENT if before is None else before.status
    moved = _follows(IMAGE, was, record.status)
    findings.check("images", moved, f"{key} went from {was} to {record.status}", where)
    if before is None:
        role = view.provenance.role
        findings.check("images", role == SCIENTIST, f"{key} was registered in the role {role!r}", where)
        findings.allows("images", record.image.check_registrable, key, where)
    else:
        same = before.image == record.image and before.registered == record.registered
        findings.check("images", same, f"{key} was altered after its registration", where)
    organisation = record.registered.organisation
    own = organisation == view.creator.organisation.msp_id
    findings.check("images", own, f"{key} was changed by another organisation", where)
    name = view.find(keys.imagename(record.image.name), ImageNameRecord)
    named = name is not None and name.organisation == organisation
    findings.check("images", named, f"{key} has the name of another organisation's image", where)


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
        said = None if accepted is None else (accepted.specification_digest, accepted.by)
        same = said == (record.specification_digest, by)
        findings.check("agreements", same, f"{organisation} did not accept what {key} says", where)
    member = view.creator.organisation.msp_id in record.plan.consortium
    findings.check("agreements", member, f"{key} was written by one outside its consortium", where)
    if record.status is ProcessState.PROPOSED:
        proposed = view.provenance.role == SCIENTIST and record.specification.version == VERSION
        findings.check("agreements", proposed, f"{key} was proposed by one who may not, or as of old", where)
        findings.allows("agreements", partial(check_proposal, record.specification), str(key), where)
        _check_images(findings, view, record, key)
    if record.status is ProcessState.RUNNING and was is ProcessState.PROPOSED:
        missing = ", ".join(record.missing)
        findings.check("agreements", not missing, f"{key} runs, not accepted by {missing}", where)
        fixed = keys.initial(record.process) in view.written
        right = fixed is (record.specification.initial_model is not None)
        findings.check("agreements", right, f"{key} starts from another model than was agreed on", where)
    _check_course(findings, view, record, before, key)


def _check_images(findings: Findings, view: View, record: ProcessRecord, key: Key) -> None:
    """Every image of a proposal is registered with the bytes it is pinned to, and not retired by then."""
    for step in record.specification.steps:
        image = view.before(keys.image(step.image_name, step.image_version), ImageRecord)
        usable = image is not None and image.status is ImageState.REGISTERED
        right = image is not None and usable and step.pin == image.image.pin
        what = f"{key} names {step.image_name} {step.image_version}, which is not registered so, or retired"
        findings.check("agreements", right, what, view.where)


def _check_course(
    findings: Findings, view: View, record: ProcessRecord, before: ProcessRecord | None, key: Key
) -> None:
    """A process takes the course of the changes that its transaction wrote, and no other."""
    expected = Course() if before is None else before.course
    for change in view.of_kind(ChangeRecord):
        expected = expected.after(change.change, record.specification.nodes)
    same = record.course == expected
    findings.check("agreements", same, f"{key} takes another course than its changes", view.where)


def check_acceptance(findings: Findings, view: View, item: Written) -> None:
    """An organisation of the consortium accepts what was proposed once, by its digest, and vouches for it."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, AcceptanceRecord)  # noqa: S101
    own = record.organisation == view.creator.organisation.msp_id
    findings.check("agreements", own, f"{key} was written by another organisation", where)
    fresh = view.before(item.raw_key, AcceptanceRecord) is None
    findings.check("agreements", fresh, f"{key} was overwritten", where)
    process = view.before(keys.process(record.process), ProcessRecord)
    right = (
        process is not None
        and process.status is ProcessState.PROPOSED
        and process.specification_digest == record.specification_digest
        and record.organisation in process.specification.organisations
    )
    findings.check("agreements", right, f"{key} accepts what was not proposed to it", where)
    mark = str(record.specification_digest)
    place = (ORCHESTRATION, record.organisation, keys.process(record.process), mark)
    what = f"{record.organisation} did not vouch for {key}"
    findings.check("agreements", view.has_mark(*place), what, where)


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
    "acceptance": (check_acceptance,),
    "progress": (check_progress,),
}


def _follows(cycle: Lifecycle[T, S], before: S, after: S) -> bool:
    """Whether the life cycle has a way from one state to the other."""
    return any(row[1] is before and row[2] is after for row in cycle.table)
