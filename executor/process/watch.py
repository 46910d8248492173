"""`executor process watch`: what a process does, as the ledger announces it, until it ends."""

import json
import sys
import time
from collections.abc import Callable

import click
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from executor.errors import DeadlineError, TaskError
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.follow import HEARTBEAT, PULSE, Announcement, Follower
from executor.output import echo, plain
from executor.process.board import Board, headline
from executor.process.output import COLUMNS, board_of, board_text, cells
from executor.stop import StopSignals

CHAINCODES = ("orchestration", "execution-record", "model")
FOREVER = 365 * 86_400.0
RECENT = 5


def watch(ledger: Ledger, process: str, seconds: float | None, stop: StopSignals, *, as_json: bool) -> None:
    """Show a process until it ends; an aborted one ends with TaskError, lack of time with DeadlineError."""
    # The height comes first: what happens between the two reads is then seen twice, not missed.
    start = ledger.transport.chain_info().height
    board, status = board_of(ledger, process)
    if as_json:
        click.echo(json.dumps({"event": "Snapshot", **status}))
        _follow(ledger, board, start, seconds, stop, _print_json)
        click.echo(json.dumps({"event": "End", "process": process, "status": board.status}))
    elif sys.stdout.isatty():
        _live(ledger, board, start, seconds, stop)
    else:
        echo(board_text(board))
        _follow(ledger, board, start, seconds, stop, lambda _, line: echo(line) if line else None)
        echo(headline(board))
    if board.status == "aborted":
        raise TaskError("PROCESS_ABORTED", f"{process} was aborted")


def _follow(  # noqa: PLR0917
    ledger: Ledger,
    board: Board,
    start: int,
    seconds: float | None,
    stop: StopSignals,
    show: Callable[[Announcement, str | None], object],
) -> None:
    lasting = FOREVER if seconds is None else seconds
    end = time.monotonic() + lasting
    # Only noted, because an exception between any two instructions could leave a thread behind that listens.
    with stop.noted(), Follower(ledger.transport, board.process, start, lasting, CHAINCODES) as follower:
        while not board.ended:
            found = _next(follower, min(end, time.monotonic() + HEARTBEAT), stop)
            if found is not None:
                show(found, board.apply(found.event.name, found.payload))
            elif time.monotonic() >= end:
                raise DeadlineError(
                    "WAIT_TIMEOUT",
                    f"{board.process} has not ended within {seconds:g} s",
                    case="watch",
                )
            if board.ended or found is None or found.event.name == "ProcessChanged":
                # An event is one peer's word, and so is that there was none; one of a change names no node.
                board.update(ledger.orchestration.status(board.process))


def _next(follower: Follower, end: float, stop: StopSignals) -> Announcement | None:
    """Return the next announcement, or None if there is none until then; a stop signal ends the wait."""
    while not stop.asked:
        left = end - time.monotonic()
        found = follower.next(min(left, PULSE))
        if found is not None or left <= 0:
            return found
    raise KeyboardInterrupt


def _print_json(found: Announcement, _: str | None) -> None:
    event = found.event
    head = {"event": event.name, "block": event.block, "transaction": event.tx_id}
    click.echo(json.dumps({**head, **found.payload}))


def _live(ledger: Ledger, board: Board, start: int, seconds: float | None, stop: StopSignals) -> None:
    recent: list[str] = []

    with Live(_table(board, recent), console=Console(), refresh_per_second=4) as live:

        def show(_: Announcement, line: str | None) -> None:
            if line:
                recent.append(line)
                del recent[:-RECENT]
            live.update(_table(board, recent))

        _follow(ledger, board, start, seconds, stop, show)


def _table(board: Board, recent: list[str]) -> Table:
    table = Table(
        title=Text(plain(headline(board))),
        caption=Text("\n".join(plain(line) for line in recent)),
        title_justify="left",
        caption_justify="left",
    )
    for name in COLUMNS:
        table.add_column(name)
    for row in cells(board):
        table.add_row(*(Text(plain(cell)) for cell in row))
    return table
