"""Rebuilds: each statement is its organisation's own, and processes run what enough rebuilt."""

from executor.audit.findings import Findings
from executor.audit.replay.view import IMAGE, View, Written
from protocol.agreement.course import ChangeKind
from protocol.agreement.lifecycle import ProcessState
from protocol.errors import StateError
from protocol.ledger import keys
from protocol.ledger.changes import ChangeRecord
from protocol.ledger.common import ImageVersion
from protocol.ledger.images import ImageRecord, RebuildRecord, check_attested
from protocol.ledger.processes import ProcessRecord

SENTENCES = {
    "rebuilds": "each statement about a rebuilt image is its organisation's; processes had what they ask for"
}


def check_rebuild(findings: Findings, view: View, item: Written) -> None:
    """A statement is made by the organisation itself, and says truly whether the id is the registered one."""
    record, key = item.record, item.key
    assert isinstance(record, RebuildRecord)  # noqa: S101
    own = view.creator.organisation.msp_id == record.organisation
    findings.check("rebuilds", own, f"{key} was written by another organisation", view.where)
    vouched = view.has_mark(IMAGE, record.organisation, item.raw_key, record.mark)
    findings.check("rebuilds", vouched, f"{record.organisation} did not vouch for {key}", view.where)
    name, version, _ = map(str, key.parts)
    image = view.before(keys.image(name, version), ImageRecord)
    right = (
        image is not None
        and record.image == ImageVersion(name, version)
        and record.same is (record.image_id == image.image.image_id)
    )
    findings.check("rebuilds", right, f"{key} says of another image whether it is the same", view.where)


def check_start(findings: Findings, view: View, item: Written) -> None:
    """A process starts with images that enough of its organisations got from their source."""
    record = item.record
    assert isinstance(record, ProcessRecord)  # noqa: S101
    before = view.before(item.raw_key, ProcessRecord)
    if (
        record.status is ProcessState.RUNNING
        and before is not None
        and before.status is ProcessState.PROPOSED
    ):
        for step in record.specification.steps:
            _check(findings, view, record, step.image_name, step.image_version)


def check_move(findings: Findings, view: View, item: Written) -> None:
    """A process moves to no image version that fewer got from its source."""
    record = item.record
    assert isinstance(record, ChangeRecord)  # noqa: S101
    if record.change.kind is ChangeKind.IMAGE:
        process = view.process(record.process)
        last = process.specification.iterations - 1
        step, _ = process.specification.step_at(min(record.change.iteration, last))
        _check(findings, view, process, step.image_name, str(record.subject["version"]))


RULES = {"rebuild": (check_rebuild,), "process": (check_start,), "change": (check_move,)}


def _check(findings: Findings, view: View, process: ProcessRecord, name: str, version: str) -> None:
    needed = process.specification.image_attestations
    image = view.before(keys.image(name, version), ImageRecord)
    if not needed or image is None:
        return
    consortium = view.plan(process.process).consortium
    said = [
        view.had_word(IMAGE, member, keys.rebuild(name, version, member), RebuildRecord)
        for member in consortium
    ]
    try:
        check_attested(needed, image.image, [found for found in said if found is not None], consortium)
        findings.count("rebuilds")
    except StateError as error:
        findings.fail("rebuilds", f"process {process.process}: {error.cause}", view.where)
