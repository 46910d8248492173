"""Images and processes: registered once, agreed by those who have to, changed along the life cycle."""

from enum import StrEnum
from typing import TypeVar

from executor.audit.findings import Findings
from executor.audit.replay.view import View, Written
from protocol.agreement.lifecycle import IMAGE, PROCESS, ImageState, Lifecycle, ProcessState
from protocol.ledger import keys
from protocol.ledger.images import ImageNameRecord, ImageRecord
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
    if record.status is ProcessState.RUNNING and was is ProcessState.PROPOSED:
        missing = ", ".join(record.missing)
        findings.check("agreements", not missing, f"{key} runs, not accepted by {missing}", where)


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
    "progress": (check_progress,),
}


def _follows(cycle: Lifecycle[T, S], before: S, after: S) -> bool:
    """Whether the life cycle has a way from one state to the other."""
    return any(row[1] is before and row[2] is after for row in cycle.table)
