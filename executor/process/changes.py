"""Changes of a running process: who joins and leaves, the topology, the image version.

What concerns one organisation alone holds at once. The rest holds when every organisation of the consortium
has asked for the same, so without --from a command agrees to what another organisation has asked for, or asks
for the first iteration that has begun nowhere.
"""

from collections.abc import Mapping
from typing import Any

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.ledger.chaincodes.proxies import Ledger, Submitted
from executor.process.names import msp_id
from executor.process.output import subject_text, submitted
from protocol.agreement.topology import Kind, Topology
from protocol.ledger.processes import ChangeRecord

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
        _say(ledger.orchestration.leave(process, node, first, reason), process, as_json=as_json)


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
    """Let NODE take part in PROCESS: its own organisation alone if it was there before, else all agree."""
    organisation = msp_id(owner or caller.organisation)
    subject = {"node": node, "organisation": organisation}
    with caller.ledger() as ledger:
        first = _agreed_or_first(ledger, process, "join", subject, iteration)
        _say(ledger.orchestration.join(process, node, organisation, first), process, as_json=as_json)


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
        first = _agreed_or_first(ledger, process, "topology", wanted, iteration)
        _say(ledger.orchestration.change_topology(process, first, wanted), process, as_json=as_json)


@click.command()
@click.argument("process")
@click.argument("version")
@_from
@json_option
@_scientist
@reported
def image(process: str, version: str, iteration: int | None, as_json: bool, caller: Caller) -> None:
    """Ask for, or agree to, another VERSION of the image that PROCESS runs, until the end of its step."""
    with caller.ledger() as ledger:
        first = _agreed_or_first(ledger, process, "image", {"version": version}, iteration)
        _say(ledger.orchestration.update_image(process, first, version), process, as_json=as_json)


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


def _agreed_or_first(
    ledger: Ledger, process: str, kind: str, subject: Mapping[str, Any], iteration: int | None
) -> int:
    """Return the given iteration, that of the same change waiting for agreement, or the first to come."""
    if iteration is not None:
        return iteration
    status = ledger.orchestration.status(process)
    for change in status.changes:
        if change.kind == kind and not change.holds and change.subject == subject:
            return change.iteration
    begun = [number for entry in status.nodes for number in (entry.next, entry.completed)]
    return max((number for number in begun if number is not None), default=0) + 1


def _say(done: Submitted[ChangeRecord], process: str, *, as_json: bool) -> None:
    entry = done.answer
    missing = list(entry.missing)
    state = "holds" if entry.holds else f"waits for {', '.join(missing)}"
    line = f"{process}: {entry.kind} {subject_text(entry)} from iteration {entry.iteration} {state}"
    submitted(done, line, {"process": process, **entry.to_dict(), "missing": missing}, as_json=as_json)


COMMANDS: tuple[click.Command, ...] = (leave, join, topology, image)
