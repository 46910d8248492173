"""Where processes are listed, each under its status alone, and how many an organisation has open."""

from executor.audit.findings import Findings
from executor.audit.replay.view import View, Written
from protocol.agreement.lifecycle import ProcessState
from protocol.ledger import keys
from protocol.ledger.processes import MAX_ON_SHELF, BriefRecord, OpenProcesses, ProcessRecord, shelf_of

SENTENCES = {
    "lists": "each process is listed under the status that it has; no organisation has more open than it may"
}


def check_listed(findings: Findings, view: View, item: Written) -> None:
    """A process is written with its brief, leaves its former place, and counts against its proposer."""
    record, where = item.record, view.where
    assert isinstance(record, ProcessRecord)  # noqa: S101
    brief = BriefRecord.of(record)
    findings.check("lists", view.written.get(brief.key) == brief, f"{item.key} is not listed", where)
    before = view.before(item.raw_key, ProcessRecord)
    if before is None:
        place = keys.openprocesses(record.created.organisation, shelf_of(record.process))
        counted = view.written.get(place)
        noted = isinstance(counted, OpenProcesses) and record.process in counted.processes
        findings.check("lists", noted, f"{item.key} was not counted", where)
    elif before.status is not record.status:
        left = keys.brief(before.status.value, record.process) in view.removed
        findings.check("lists", left, f"{item.key} is still listed as {before.status}", where)


def check_brief(findings: Findings, view: View, item: Written) -> None:
    """A brief comes with the process that it is of."""
    process = view.written.get(keys.process(str(item.key.parts[1])))
    findings.check("lists", process is not None, f"{item.key} was written without its process", view.where)


def check_open(findings: Findings, view: View, item: Written) -> None:
    """An organisation counts its own processes, and only what has ended is forgotten."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, OpenProcesses)  # noqa: S101
    own = view.creator.organisation.msp_id == record.organisation
    findings.check("lists", own, f"{key} was written by another organisation", where)
    few = len(record.processes) <= MAX_ON_SHELF
    findings.check("lists", few, f"{key} has {len(record.processes)} open processes", where)
    before = view.before(item.raw_key, OpenProcesses)
    for process in before.processes if before else ():
        kept = process in record.processes or not _is_open(view, process)
        findings.check("lists", kept, f"{key} leaves out {process}", where)


def check_removals(findings: Findings, view: View) -> None:
    """A brief is removed where its process has got another status, and only there."""
    for name in view.removed:
        key = keys.parse(name)
        process = view.written.get(keys.process(str(key.parts[1])))
        moved = isinstance(process, ProcessRecord) and process.status.value != key.parts[0]
        findings.check("lists", moved, f"{key} was removed", view.where)


RULES = {"process": (check_listed,), "brief": (check_brief,), "openprocesses": (check_open,)}


def _is_open(view: View, process: str) -> bool:
    found = view.before(keys.process(process), ProcessRecord)
    return found is not None and found.status in (ProcessState.PROPOSED, ProcessState.RUNNING)
