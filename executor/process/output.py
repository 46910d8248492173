"""Processes on stdout: one table for people, one JSON object for programs."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import click

from executor.ledger.chaincodes.proxies import Ledger, Submitted
from executor.output import echo, table
from executor.process.agreements import Agreements
from executor.process.board import Board, headline
from protocol.agreement.lifecycle import ProcessState
from protocol.errors import StateError
from protocol.ledger.processes import ProcessBrief, ProcessRecord, ProcessStatus
from protocol.ledger.tasks import TaskRecord
from protocol.task.opening import TaskId

COLUMNS = ("Node", "Organisation", "Iteration", "Action", "Detail")


def submitted(done: Submitted[Any], line: str, shown: Mapping[str, Any], *, as_json: bool) -> None:
    """Say what a transaction did, and which one it was."""
    if as_json:
        receipt = {"transaction": done.receipt.tx_id, "block": done.receipt.block}
        click.echo(json.dumps({**shown, **receipt}))
    else:
        echo(f"{line} (transaction {done.receipt.tx_id[:16]}…, block {done.receipt.block})")


def brief(record: ProcessRecord) -> dict[str, Any]:
    """Return of a process's record what a command that changed it shows."""
    shown = record.to_dict()
    names = ("process", "status", "specification_digest", "ended")
    return {**{name: shown[name] for name in names}, "accepted": sorted(record.accepted)}


def board_of(ledger: Ledger, process: str) -> tuple[Board, dict[str, Any]]:
    """Read where a process and the task of each of its nodes stand, and how `--json` shows it."""
    status = ledger.orchestration.status(process)
    tasks = {}
    if status.status is ProcessState.RUNNING:
        for entry in status.nodes:
            task = None if entry.next is None else _task(ledger, process, entry.node, entry.next)
            if task is not None:
                tasks[entry.node] = task
    agreements = Agreements.read(ledger, process)
    shown = {
        **status.to_dict(),
        **agreements.to_dict(),
        "tasks": [_shown(task) for task in tasks.values()],
    }
    return Board.of(status, tasks, (*steps_lines(status), *agreements.lines())), shown


def steps_lines(status: ProcessStatus) -> Iterator[str]:
    """Say which steps the coordinator has opened, where there is one."""
    if status.coordinator is None or status.status is not ProcessState.RUNNING:
        return
    closed = [step.name for step in status.steps if not step.opened]
    rest = f"has yet to open {', '.join(closed)}" if closed else "has opened every step"
    yield f"{status.coordinator} coordinates and {rest}"


def _shown(task: TaskRecord) -> dict[str, Any]:
    return {
        "node": task.node,
        "iteration": task.iteration,
        "state": task.state.value,
        "attempt": task.attempt,
        "expires": task.expires,
    }


def board_text(board: Board) -> str:
    """Return the table of a board, and what there is to say below it."""
    return "\n".join([table(headline(board), COLUMNS, cells(board), figures=False), *board.notes])


def cells(board: Board) -> list[tuple[str, ...]]:
    """Return the rows of a board as text."""
    return [
        (
            row.node,
            row.organisation,
            "" if row.iteration is None else str(row.iteration),
            row.action,
            row.detail,
        )
        for _, row in sorted(board.rows.items())
    ]


def processes_text(items: Iterable[ProcessBrief]) -> str:
    """Return a table of processes in brief."""
    rows = [
        (
            item.process,
            item.status.value,
            ", ".join(item.organisations),
            item.created.time,
            item.description[:60],
        )
        for item in items
    ]
    columns = ("Process", "Status", "Organisations", "Proposed", "Description")
    return table("Processes", columns, rows, figures=False) if rows else "no process"


def _task(ledger: Ledger, process: str, node: str, iteration: int) -> TaskRecord | None:
    try:
        return ledger.execution.get_task(TaskId(process, node, iteration))
    except StateError as error:
        if error.code != "TASK_UNKNOWN":
            raise
        return None
