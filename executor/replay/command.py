"""`executor replay`: run a recorded task again and compare; nothing is written to the ledger."""

import sys
from pathlib import Path
from typing import Any

import click

from executor.caller import Caller, caller_options
from executor.exits import exit_code, json_option, message, reported
from executor.output import answer
from executor.replay.comparison import Comparison, compare
from executor.replay.errors import ReplayError
from executor.replay.evidence import Evidence
from executor.replay.files import read_evidence
from executor.replay.options import data_options, parse_task, sandbox_options, settings_of, source_given
from executor.replay.own import own_evidence
from executor.replay.recorded import read_recorded
from executor.replay.run import run_again
from executor.stop import StopSignals
from protocol.task.opening import TaskId


@click.command()
@click.option("--task", "name", required=True, metavar="PROCESS/NODE/ITERATION", help="Which task.")
@click.option(
    "--evidence",
    type=click.Path(dir_okay=False, path_type=Path),
    help="What the task's owner opened to you, in place of your own node's data.",
)
@data_options
@sandbox_options
@caller_options("auditor")
@json_option
@reported
def replay(  # noqa: PLR0917 - one per option
    caller: Caller,
    as_json: bool,
    name: str,
    evidence: Path | None,
    data: str | None,
    label: str,
    drop: tuple[str, ...],
    memory: int,
    timeout: float,
) -> None:
    """Run a task again from its recorded image, inputs and seed, and compare what comes out.

    The owner does it on its own data; an auditor on the evidence that the owner gave it. The container is
    that of a launch. Exits with 0 if everything is the same, with 11 and the trees that differ otherwise.
    """
    task = parse_task(name)
    with StopSignals():
        settings = settings_of(caller, memory, timeout)
        with caller.ledger() as ledger:
            recorded = read_recorded(ledger, task)
            if evidence is None:
                given = own_evidence(caller, ledger, recorded, source_given(data, label, drop))
            else:
                given = Evidence.from_bytes(read_evidence(evidence))
        found = compare(recorded, run_again(settings, recorded, given))
    answer(shown(task, found), lambda: text(task, found), as_json=as_json)
    if not found.same:
        refusal = ReplayError("REPLAY_DIFFERS", f"task {task} gives something else than the ledger has")
        click.echo(message(refusal), err=True)
        sys.exit(exit_code(refusal))


def shown(task: TaskId, found: Comparison) -> dict[str, Any]:
    """Return the object that `--json` prints."""
    return {
        "task": str(task),
        "same": found.same,
        **found.replayed.to_dict(),
        "differences": list(found.differences),
    }


def text(task: TaskId, found: Comparison) -> str:
    """Say what came out, for people."""
    if found.same:
        return f"✓ task {task} gives the same trees, share and result again"
    return "\n".join((f"✗ task {task} gives something else:", *(f"  {line}" for line in found.differences)))
