"""`executor challenge`, `answer` and `judge`: doubt a task, open it to an auditor, have it run again."""

from pathlib import Path

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.ledger.chaincodes.proxies import Ledger
from executor.process.output import submitted
from executor.replay.comparison import compare
from executor.replay.errors import EvidenceError
from executor.replay.evidence import Evidence
from executor.replay.files import read_evidence, write_evidence
from executor.replay.options import (
    data_options,
    parse_member,
    parse_task,
    sandbox_options,
    settings_of,
    source_given,
)
from executor.replay.own import own_evidence
from executor.replay.recorded import read_recorded
from executor.replay.run import ReplaySettings, run_again
from executor.stop import StopSignals
from protocol.digest import Digest
from protocol.ledger.challenges import ChallengeEvidence, Replayed
from protocol.task.opening import TaskId

_TASK = click.argument("name", metavar="PROCESS/NODE/ITERATION")
_CHALLENGER = click.option("--challenger", help="Who challenged. [default: the only one who did]")
_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@_TASK
@click.option("--auditor", "auditors", multiple=True, help="Whose verdict counts. [default: any third one's]")
@click.option("--reason", default="", help="Why; it is kept on the ledger.")
@caller_options("auditor")
@json_option
@reported
def challenge(caller: Caller, as_json: bool, name: str, auditors: tuple[str, ...], reason: str) -> None:
    """Doubt that a task of another organisation ran as the ledger says.

    It shows in every audit until the owner has had it run again before an auditor of a third organisation.
    """
    task = parse_task(name)
    with caller.ledger() as ledger:
        done = ledger.execution.challenge(task, [parse_member(caller, each) for each in auditors], reason)
    found = done.answer
    named = ", ".join(found.auditors)
    told = f"task {task} is challenged; {found.challenged} may answer before {named}"
    submitted(done, told, found.to_dict(), as_json=as_json)


@click.command()
@_TASK
@_CHALLENGER
@click.option("--auditor", required=True, help="To whom to open the inputs: one whom the challenge names.")
@click.option("--out", type=_FILE, required=True, help="Where to write it; give it to the auditor alone.")
@data_options
@caller_options("data-scientist")
@json_option
@reported
def answer(  # noqa: PLR0917 - one per option
    caller: Caller,
    as_json: bool,
    name: str,
    challenger: str | None,
    auditor: str,
    out: Path,
    data: str | None,
    label: str,
    drop: tuple[str, ...],
) -> None:
    """Answer a challenge of your task: write its inputs to a file for an auditor, and its digest down.

    The file holds the node's rows, their salt, the state before and what the slots held.
    """
    task = parse_task(name)
    with caller.ledger() as ledger:
        doubt = _challenge_of(caller, ledger, task, challenger).challenge
        recorded = read_recorded(ledger, task)
        evidence = own_evidence(caller, ledger, recorded, source_given(data, label, drop))
        raw = evidence.to_bytes()
        write_evidence(out, raw)
        done = ledger.execution.answer_challenge(
            task, doubt.organisation, parse_member(caller, auditor), Digest.of(raw)
        )
    told = f"answered; give {out} to the auditor of {done.answer.auditor}, and to nobody else"
    submitted(done, told, done.answer.to_dict(), as_json=as_json)


@click.command()
@_TASK
@_CHALLENGER
@click.option("--evidence", type=_FILE, help="The file that the owner gave you.")
@click.option("--unopened", is_flag=True, help="Say that the owner never gave it to you.")
@sandbox_options
@caller_options("auditor")
@json_option
@reported
def judge(  # noqa: PLR0917 - one per option
    caller: Caller,
    as_json: bool,
    name: str,
    challenger: str | None,
    evidence: Path | None,
    unopened: bool,
    memory: int,
    timeout: float,
) -> None:
    """Run a challenged task again before the ledger, and record what came out as your verdict.

    `same`, `differs`, or `unopened` if the evidence does not open what the task committed to.
    """
    if (evidence is None) is not unopened:
        raise UsageError("JUDGE_EVIDENCE", "either the owner's file is run, or it was never given")
    task = parse_task(name)
    with StopSignals(), caller.ledger() as ledger:
        found = _challenge_of(caller, ledger, task, challenger)
        replayed = None
        if evidence is not None:
            settings = settings_of(caller, memory, timeout)
            replayed = _replayed(caller, settings, ledger, found, evidence)
        done = ledger.execution.judge_challenge(task, found.challenge.organisation, replayed)
    verdict = done.answer
    told = f"task {task}: {verdict.verdict}"
    submitted(done, told, verdict.to_dict(), as_json=as_json)


def _replayed(
    caller: Caller, settings: ReplaySettings, ledger: Ledger, found: ChallengeEvidence, file: Path
) -> Replayed | None:
    """Run the task on the file that the owner announced; None if that does not open the commitment."""
    raw = read_evidence(file)
    mine = caller.network.msp_id(caller.organisation)
    announced = [answer.evidence for answer in found.answers if answer.auditor == mine]
    if Digest.of(raw) not in announced:
        raise EvidenceError("EVIDENCE_OTHER", f"{file} is not what was announced to {mine}")
    recorded = read_recorded(ledger, found.challenge.task)
    try:
        return compare(recorded, run_again(settings, recorded, Evidence.from_bytes(raw))).replayed
    except EvidenceError:
        return None


def _challenge_of(caller: Caller, ledger: Ledger, task: TaskId, challenger: str | None) -> ChallengeEvidence:
    """Return the challenge that is meant: by whom it is named, or the only one of the task."""
    wanted = None if challenger is None else parse_member(caller, challenger)
    found = [
        each
        for each in ledger.execution.list_challenges(task.process, task.node)
        if each.challenge.task == task and wanted in (None, each.challenge.organisation)
    ]
    if len(found) != 1:
        names = ", ".join(each.challenge.organisation for each in found) or "nobody"
        raise UsageError("CHALLENGE_WHICH", f"task {task} was challenged by {names}")
    return found[0]
