"""`executor process`: propose, accept, start, follow and end a process.

Everything is done for one organisation, by the identity that calls: nobody accepts for another.
"""

import json

import click

from executor.caller import Caller, caller_options
from executor.exits import json_option, reported
from executor.number_range import NumberRange
from executor.output import answer, echo, plain
from executor.process import absences, changes, proposals
from executor.process.acceptance import retirements
from executor.process.completion import publish_missing
from executor.process.output import board_of, board_text, brief, processes_text, submitted
from executor.process.report import report
from executor.stop import StopSignals
from protocol.agreement.lifecycle import ProcessState

STATUSES = ("proposed", "running", "completed", "aborted")

_scientist = caller_options("data-scientist")


@click.group()
def process() -> None:
    """Agree on a process, follow it, change it, end it."""


for command in (*proposals.COMMANDS, *changes.COMMANDS, *absences.COMMANDS, report):
    process.add_command(command)


@process.command()
@click.argument("process_id", metavar="PROCESS")
@json_option
@_scientist
@reported
def start(process_id: str, as_json: bool, caller: Caller) -> None:
    """Start PROCESS, once every organisation has accepted it.

    Images of it that were retired meanwhile are named: it runs what was pinned and accepted all the same.
    """
    with caller.ledger() as ledger:
        found = ledger.orchestration.get(process_id)
        retired = retirements(found.specification, ledger.images.get)
        if retired and not as_json:
            echo("\n".join(retired), err=True)
        done = ledger.orchestration.start(process_id)
    submitted(done, f"{process_id} runs", {**brief(done.answer), "retired": retired}, as_json=as_json)


@process.command()
@click.argument("process_id", metavar="PROCESS")
@click.option("--reason", required=True, help="Why; it is kept on the ledger.")
@json_option
@_scientist
@reported
def abort(process_id: str, reason: str, as_json: bool, caller: Caller) -> None:
    """Vote to give PROCESS up, proposed or running; this cannot be taken back.

    A proposal ends with one vote. A running process ends with the votes of more than half of the
    organisations that take part, or with one if its specification says `abort: any`.
    """
    with caller.ledger() as ledger:
        done = ledger.orchestration.abort(process_id, reason)
    found = done.answer
    tally = f"{len(found.voted)} of {found.needed} votes: {', '.join(sorted(found.voted))}"
    state = "is aborted" if found.status is ProcessState.ABORTED else "goes on"
    submitted(done, f"{process_id} {state}, {tally}", found.to_dict(), as_json=as_json)


@process.command()
@click.argument("process_id", metavar="PROCESS")
@json_option
@_scientist
@reported
def complete(process_id: str, as_json: bool, caller: Caller) -> None:
    """End PROCESS, in which every active node has done its last iteration.

    Models that nodes have not published themselves are published for them first, as far as the ledger has
    their trees; a node can send the rest at any time.
    """
    with caller.ledger() as ledger:
        published = publish_missing(ledger, process_id)
        done = ledger.orchestration.complete(process_id)
    models = f", with the models of {', '.join(published)} published for them" if published else ""
    shown = {**brief(done.answer), "published": published}
    submitted(done, f"{process_id} is completed{models}", shown, as_json=as_json)


@process.command()
@click.argument("process_id", metavar="PROCESS")
@json_option
@_scientist
@reported
def status(process_id: str, as_json: bool, caller: Caller) -> None:
    """Show where PROCESS and each of its nodes stand."""
    with caller.ledger() as ledger:
        board, shown = board_of(ledger, process_id)
    if as_json:
        click.echo(json.dumps(shown))
        return
    echo(board_text(board))


@process.command()
@click.argument("process_id", metavar="PROCESS")
@json_option
@_scientist
@reported
def show(process_id: str, as_json: bool, caller: Caller) -> None:
    """Print what PROCESS agreed on, as YAML that can be read again as a federation file."""
    with caller.ledger() as ledger:
        record = ledger.orchestration.get(process_id)
    if as_json:
        click.echo(json.dumps(record.to_dict()))
        return
    import yaml  # noqa: PLC0415

    echo(f"# {process_id} is {record.status}; specification {record.specification_digest}")
    found = record.specification.to_dict()
    text = yaml.safe_dump(found, sort_keys=False, allow_unicode=True)
    if any(plain(line) != line for line in text.splitlines()):
        # Escaped by YAML itself, so that it is read again as what it is.
        text = yaml.safe_dump(found, sort_keys=False, allow_unicode=False)
    echo(text.rstrip("\n"))


@process.command(name="list")
@click.option("--status", "wanted", type=click.Choice(STATUSES), help="Only those that are so.")
@json_option
@_scientist
@reported
def list_(wanted: str | None, as_json: bool, caller: Caller) -> None:
    """List the processes on the ledger."""
    with caller.ledger() as ledger:
        items = list(ledger.orchestration.list(wanted or ""))
    shown = {"processes": [item.to_dict() for item in items]}
    answer(shown, lambda: processes_text(items), as_json=as_json)


@process.command()
@click.argument("process_id", metavar="PROCESS")
@click.option("--seconds", type=NumberRange(0), help="Give up after this time. [default: never]")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@_scientist
@reported
def watch(process_id: str, seconds: float | None, as_json: bool, caller: Caller) -> None:
    """Show what the nodes of PROCESS do, as it happens, until it ends.

    A table on a terminal, lines elsewhere. Ends with exit code 1 if the process is aborted, and with 3 if
    --seconds pass first.
    """
    from executor.process.watch import watch as follow  # noqa: PLC0415

    with StopSignals() as stop, caller.ledger() as ledger:
        follow(ledger, process_id, seconds, stop, as_json=as_json)
