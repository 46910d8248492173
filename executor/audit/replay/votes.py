"""Decisions of a running process: who has a say, how many votes they take, and how long a silence lasted.

Everything is computed from what stood before the block, by the code of `protocol` that the chaincode runs.
"""

from functools import partial

from executor.audit.findings import Findings
from executor.audit.replay.view import ORCHESTRATION, View, Written
from protocol.agreement.consent import consent_to, needed_to_abort
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.onset import check_onset
from protocol.agreement.progress import Progress
from protocol.errors import RecordError, StateError
from protocol.ledger import keys
from protocol.ledger.changes import AbortVote, AbsenceVote, ChangeRecord
from protocol.ledger.common import Provenance
from protocol.ledger.processes import ProcessRecord
from protocol.ledger.silence import Silence
from protocol.ledger.tasks import ShareRecord
from protocol.task.opening import TaskId

SENTENCES = {
    "quorums": "each change and each abort had the votes that it takes, of those who had a say",
    "onsets": "no change altered what a task that had begun was to work with",
    "silence": "each vote to leave somebody out counts if, and only if, the silence had lasted long enough",
}


def check_quorum(findings: Findings, view: View, item: Written) -> None:
    """A change holds by the consent of as many of those who take part as its kind needs."""
    record, key = item.record, item.key
    assert isinstance(record, ChangeRecord)  # noqa: S101
    process = _running(view, record.process)
    progress, _ = view.progress(process)
    consent = consent_to(record.change, progress)
    same = record.members == consent.members
    findings.check("quorums", same, f"{key} names others than those who had a say", view.where)
    given = consent.is_given(record.agreed)
    what = f"{key} holds with {len(record.agreed)} agreements, and {consent.needed} are needed"
    findings.check("quorums", given, what, view.where)
    empty = progress.plan.left_empty(record.change)
    findings.check("quorums", empty is None, f"{key} leaves nobody for iteration {empty}", view.where)
    next_one = record.number == process.course.count
    findings.check("quorums", next_one, f"{key} is not the next change of its process", view.where)


def check_past(findings: Findings, view: View, item: Written) -> None:
    """A change holds from an iteration on in which it alters nothing that a task has begun with."""
    record = item.record
    assert isinstance(record, ChangeRecord)  # noqa: S101
    progress, _ = view.progress(_running(view, record.process))
    try:
        check_onset(record.change, progress)
        findings.count("onsets")
    except StateError as error:
        findings.check("onsets", False, f"{item.key} holds too early: {error.cause}", view.where)


def check_abort(findings: Findings, view: View, item: Written) -> None:
    """A process is given up by as many votes as its specification needs."""
    record = item.record
    assert isinstance(record, ProcessRecord)  # noqa: S101
    before = view.before(item.raw_key, ProcessRecord)
    if before is None or record.status is not ProcessState.ABORTED or before.status is record.status:
        return
    progress, _ = view.progress(before)
    needed = needed_to_abort(record.specification, before.status, progress)
    voted = sum(_has_voted(view, record.process, name) for name in progress.present())
    if before.status is ProcessState.RUNNING:
        left = bool(progress.unfinished())
        findings.check("quorums", left, f"{item.key} was aborted when all work was done", view.where)
    what = f"{item.key} was aborted by {voted} votes, and {needed} are needed"
    findings.check("quorums", voted >= needed, what, view.where)


def check_silence(findings: Findings, view: View, item: Written) -> None:
    """A vote says of a silence what the ledger says: who owes what, since when, and whether it is enough."""
    record, key, where = item.record, item.key, view.where
    assert isinstance(record, AbsenceVote)  # noqa: S101
    process = _running(view, record.process)
    progress, done = view.progress(process)
    nodes = _owed(progress, record, str(key.parts[1]))
    silence = Silence(process, progress.plan, done, record.organisation, nodes, record.whole)
    share_of = partial(_first_share, view)
    owing = silence.owes and record.nodes == nodes and all(map(progress.plan.is_open, nodes.values()))
    findings.check("silence", owing, f"{key} is about nodes that owe nothing", where)
    waiting = silence.waits(share_of)
    findings.check("silence", not waiting, f"{key} is about nodes that wait for others", where)
    voter = record.by.organisation
    last = view.before(item.raw_key, AbsenceVote)
    if last is not None and not view.had_mark(ORCHESTRATION, voter, item.raw_key, last.mark):
        last = None
    change_of = partial(_change, view, record.process)
    acts, waited = silence.last_acts(share_of, change_of), silence.waited(share_of, change_of)
    expected = silence.vote(acts, waited, last, record.by)
    same = expected == record
    what = f"{key} counts since {record.since}, and the ledger says {expected.since}"
    if expected.since == record.since:
        what = f"{key} says {_counts(record)}, and the ledger says {_counts(expected)}"
    findings.check("silence", same, what, where)


RULES = {
    "change": (check_quorum, check_past),
    "process": (check_abort,),
    "absence": (check_silence,),
    "departure": (check_silence,),
}


def _running(view: View, name: str) -> ProcessRecord:
    found = view.before(keys.process(name), ProcessRecord)
    if found is None or found.started is None:
        raise RecordError("RECORD_VALUE", f"process {name} did not run")
    return found


def _owed(progress: Progress, record: AbsenceVote, about: str) -> dict[str, int]:
    """Return the nodes that a vote can be about, with the iteration that each owes."""
    unfinished = progress.unfinished()
    names = progress.plan.nodes_of(record.organisation) if record.whole else (about,)
    return {node: unfinished[node] for node in names if node in unfinished}


def _has_voted(view: View, process: str, organisation: str) -> bool:
    key = keys.abort(process, organisation)
    found = view.find(key, AbortVote)
    if found is None:
        return False
    place = (ORCHESTRATION, organisation, key, found.mark)
    return view.has_mark(*place) if key in view.written else view.had_mark(*place)


def _first_share(view: View, task: TaskId) -> Provenance | None:
    found = view.before(keys.share(task.process, task.iteration, task.node), ShareRecord)
    return None if found is None else found.signed.by


def _change(view: View, process: str, number: int) -> ChangeRecord:
    found = view.before(keys.change(process, number), ChangeRecord)
    if found is None:
        raise RecordError("RECORD_VALUE", f"process {process} has no change {number}")
    return found


def _counts(vote: AbsenceVote) -> str:
    return "that it counts" if vote.counts else "that it does not count yet"
