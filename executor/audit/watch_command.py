"""The command line of `executor audit watch`."""

import json
import time
from contextlib import ExitStack
from pathlib import Path

import click

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.files import open_input
from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.number_range import NumberRange
from executor.output import echo
from executor.stop import StopSignals

_FILE = click.Path(dir_okay=False, path_type=Path)


@click.command("watch")
@click.option("--genesis", metavar="SHA256", help="The hash of the first block, known from elsewhere.")
@click.option("--from", "resume", type=_FILE, help="Go on from a checkpoint of yours; it is an anchor, too.")
@click.option("--checkpoint", type=_FILE, help="Where to write how far it came, when it is stopped.")
@click.option("--seconds", type=NumberRange(min=0), help="Stop after so long. [default: never]")
@caller_options("auditor")
@json_option
@reported
def watch(  # noqa: PLR0917
    genesis: str | None,
    resume: Path | None,
    checkpoint: Path | None,
    seconds: float | None,
    caller: Caller,
    as_json: bool,
) -> None:
    """Follow the channel and verify every block as it comes; exit with 11 at the first violation.

    One line for each block. A signal stops it after the block at hand.
    """
    from executor.audit.watch import Judged, Watch, follow, live_blocks  # noqa: PLC0415 - loads gRPC

    if genesis is None and resume is None:
        raise UsageError("AUDIT_ANCHOR", "a peer cannot vouch for itself")
    anchor = Anchor(None if genesis is None else parse_anchor(genesis))
    end = None if seconds is None else time.monotonic() + seconds

    def tell(judged: Judged) -> None:
        click.echo(json.dumps(judged.to_dict())) if as_json else echo(str(judged))

    with ExitStack() as stack:
        stop = stack.enter_context(StopSignals())
        earlier = None if resume is None else stack.enter_context(open_input(resume))
        watched = Watch(anchor, earlier)
        ledger = stack.enter_context(caller.ledger())
        stack.enter_context(stop.noted())

        def is_over() -> bool:
            return stop.asked or (end is not None and time.monotonic() >= end)

        follow(watched, live_blocks(ledger.transport, watched.chain.height, is_over), tell)
        height = watched.chain.height
        kept = None if checkpoint is None or not height else watched.keep(checkpoint)
    last = {"stopped": True, "height": height, "checkpoint": None if kept is None else str(kept)}
    if as_json:
        click.echo(json.dumps(last))
    else:
        echo(f"stopped at height {height}; everything up to there holds")
