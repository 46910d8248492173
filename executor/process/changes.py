"""Changes of a running process: who joins and leaves, the topology, the image version, who opens steps.

What concerns one organisation alone holds at once. The rest holds when enough organisations have agreed, so a
command agrees to what another organisation has asked for if that is the same, and asks for it otherwise;
without --from, for the first iteration that has begun nowhere, or for the present one if all have begun, and
an ask for a later one is not the same. A node comes back from the first iteration on for which the ledger
takes it.
"""

from typing import Any

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.ledger.chaincodes.proxies import Ledger, Submitted
from executor.process.agreements import ask_text, subject_text
from executor.process.asks import agreed, first_of, rejoin
from executor.process.names import msp_id
from executor.process.output import submitted
from protocol.agreement.course import ChangeKind
from protocol.agreement.topology import Kind, Topology
from protocol.ledger.changes import AskStatus

_from = click.option("--from", "iteration", type=click.IntRange(0), help="The first iteration it holds for.")
_scientist = caller_options("data-scientist")


@click.command()
@click.argument("process")
@click.argument("node")
@_from
@click.option("--reason", default="", help="Why; it is kept on the ledger.")
@json_option
@_scientist
@reported
def leave(
    *, process: str, node: str, iteration: int | None, reason: str, as_json: bool, caller: Caller
) -> None:
    """Take NODE, which is your organisation's, out of PROCESS; by default from its next iteration on."""
    with caller.ledger() as ledger:
        first = _next_of(ledger, process, node) if iteration is None else iteration
        done = ledger.orchestration.leave(process, node, first, reason)
    _say(done, as_json=as_json)


@click.command()
@click.argument("process")
@click.argument("node")
@_from
@click.option("--of", "owner", help="The node's organisation, as org2 or Org2MSP. [default: your own]")
@json_option
@_scientist
@reported
def join(
    *, process: str, node: str, iteration: int | None, owner: str | None, as_json: bool, caller: Caller
) -> None:
    """Let NODE take part in PROCESS: all agree for the first time, later its own organisation alone.

    A majority has to agree as well if NODE was left out, or has not completed what it came back for last.
    """
    organisation = msp_id(owner or caller.organisation)
    subject = {"node": node, "organisation": organisation}
    with caller.ledger() as ledger:
        done = agreed(ledger, process, ChangeKind.JOIN, subject, iteration, msp_id(caller.organisation))
        if done is None:
            done = rejoin(ledger, process, node, organisation, iteration)
    _say(done, as_json=as_json)


@click.command()
@click.argument("process")
@click.argument("kind", type=click.Choice([kind.value for kind in Kind]))
@click.option("--edge", "edges", multiple=True, metavar="A:B", help="A pair of neighbours, for explicit.")
@_from
@json_option
@_scientist
@reported
def topology(
    *, process: str, kind: str, edges: tuple[str, ...], iteration: int | None, as_json: bool, caller: Caller
) -> None:
    """Ask for, or agree to, another topology of PROCESS."""
    wanted = _topology(kind, edges)
    with caller.ledger() as ledger:
        done = agreed(ledger, process, ChangeKind.TOPOLOGY, wanted, iteration, msp_id(caller.organisation))
        if done is None:
            first = first_of(ledger, process, iteration)
            done = ledger.orchestration.change_topology(process, first, wanted)
    _say(done, as_json=as_json)


@click.command()
@click.argument("process")
@click.argument("version")
@_from
@json_option
@_scientist
@reported
def image(process: str, version: str, iteration: int | None, as_json: bool, caller: Caller) -> None:
    """Ask for, or agree to, another VERSION of the image that PROCESS runs, until the end of its step.

    It holds when more than half have agreed, with --from also for an iteration that some node has yet to
    complete. A node runs it when its own organisation has agreed, before or after.
    """
    with caller.ledger() as ledger:
        done = agreed(
            ledger, process, ChangeKind.IMAGE, {"version": version}, iteration, msp_id(caller.organisation)
        )
        if done is None:
            done = ledger.orchestration.update_image(process, first_of(ledger, process, iteration), version)
    _say(done, as_json=as_json)


@click.command()
@click.argument("process")
@click.argument("successor", metavar="ORGANISATION")
@json_option
@_scientist
@reported
def coordinator(process: str, successor: str, as_json: bool, caller: Caller) -> None:
    """Ask for, or agree to, ORGANISATION opening the steps of PROCESS that are left.

    It holds when more than half of those who take part have agreed, and ORGANISATION has: whether the
    coordinator has vanished or not.
    """
    wanted = msp_id(successor)
    with caller.ledger() as ledger:
        done = agreed(
            ledger,
            process,
            ChangeKind.COORDINATOR,
            {"coordinator": wanted},
            None,
            msp_id(caller.organisation),
        )
        if done is None:
            done = ledger.orchestration.replace_coordinator(process, wanted)
    _say(done, as_json=as_json)


@click.command(name="open-step")
@click.argument("process")
@click.argument("step", required=False)
@json_option
@_scientist
@reported
def open_step(process: str, step: str | None, as_json: bool, caller: Caller) -> None:
    """Open STEP of PROCESS, which your organisation coordinates; by default the one that comes next."""
    with caller.ledger() as ledger:
        done = ledger.orchestration.open_step(process, step or _next_step(ledger, process))
    change = done.answer
    line = f"{process}: step {subject_text(change.kind, change.subject)} is open"
    submitted(done, line, change.to_dict(), as_json=as_json)


@click.command()
@click.argument("process")
@click.argument("number", type=click.IntRange(0))
@json_option
@_scientist
@reported
def withdraw(process: str, number: int, as_json: bool, caller: Caller) -> None:
    """Withdraw the change with this NUMBER that your organisation has asked for in PROCESS."""
    with caller.ledger() as ledger:
        done = ledger.orchestration.withdraw(process, number)
    asked = done.answer
    what = f"{asked.kind} {subject_text(asked.kind, asked.subject)}"
    submitted(done, f"{process}: {what} is no longer asked for", asked.to_dict(), as_json=as_json)


def _topology(kind: str, edges: tuple[str, ...]) -> dict[str, Any]:
    if (kind == Kind.EXPLICIT.value) != bool(edges):
        raise UsageError(
            "TOPOLOGY_EDGES",
            f"{len(edges)} edges for the topology {kind}",
        )
    pairs = [edge.split(":") for edge in edges]
    for edge, pair in zip(edges, pairs, strict=True):
        if len(pair) != 2:
            raise UsageError("TOPOLOGY_EDGES", f"--edge {edge[:60]} is no pair", case="pair")
    made = Topology.explicit([(a, b) for a, b in pairs]) if edges else Topology(Kind(kind))
    return made.to_dict()


def _next_of(ledger: Ledger, process: str, node: str) -> int:
    # The ledger knows better why a node without work left cannot leave: unknown, gone, or done.
    return ledger.orchestration.status(process).next_of(node) or 0


def _next_step(ledger: Ledger, process: str) -> str:
    # The ledger knows better why nothing is left to open: all are, or nobody has to.
    steps = ledger.orchestration.status(process).steps
    return next((step.name for step in steps if not step.opened), steps[-1].name)


def _say(done: Submitted[AskStatus], *, as_json: bool) -> None:
    ask = done.answer
    submitted(done, f"{ask.process}: {ask_text(ask)}", {**ask.to_dict(), "holds": ask.holds}, as_json=as_json)


COMMANDS: tuple[click.Command, ...] = (leave, join, topology, image, coordinator, open_step, withdraw)
