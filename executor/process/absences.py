"""`executor process leave-out`: vote to go on without a node or an organisation that is silent."""

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.process.agreements import absence_text
from executor.process.names import msp_id
from executor.process.output import submitted


@click.command(name="leave-out")
@click.argument("process")
@click.argument("node", required=False)
@click.option("--all-of", "whole", help="A whole organisation, as org2 or Org2MSP, with its say.")
@click.option("--reason", required=True, help="Why; it is kept on the ledger.")
@json_option
@caller_options("data-scientist")
@reported
def leave_out(
    *, process: str, node: str | None, whole: str | None, reason: str, as_json: bool, caller: Caller
) -> None:
    """Vote to leave NODE out of PROCESS, which has been silent for longer than its specification allows.

    It holds with the votes of more than half of the organisations that take part; the others then no longer
    wait for it. A vote that comes too early is kept, and counts when it is repeated in time: vote early, for
    of who could not go on before somebody else did something, the time counts from your own first vote.
    """
    if (node is None) == (whole is None):
        raise UsageError("LEAVE_OUT_WHOM", "neither or both of NODE and --all-of are given")
    with caller.ledger() as ledger:
        done = (
            ledger.orchestration.leave_out_organisation(process, msp_id(whole), reason)
            if whole is not None
            else ledger.orchestration.leave_out(process, node or "", reason)
        )
    found = done.answer
    tally = f"{len(found.voted)} of {found.needed} votes"
    state = "left out" if found.change is not None else tally
    line = f"{process}: {absence_text(found.vote)}; {state}"
    submitted(done, line, found.to_dict(), as_json=as_json)


COMMANDS: tuple[click.Command, ...] = (leave_out,)
