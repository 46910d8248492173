"""The options that running a task again has wherever it is asked for, and how a task is named."""

from collections.abc import Callable
from typing import Any

import click

from executor.caller import Caller
from executor.engine import engine
from executor.launch.source import DEFAULT_LABEL, DataSource
from executor.number_range import NumberRange
from executor.replay.run import ReplaySettings
from executor.sandbox.profile import Limits
from protocol.errors import IdentifierError
from protocol.task.opening import TaskId

MIB = 1 << 20


def parse_task(text: str) -> TaskId:
    """Read PROCESS/NODE/ITERATION."""
    words = text.split("/")
    if len(words) != 3 or not (words[2].isascii() and words[2].isdecimal() and len(words[2]) <= 10):
        raise IdentifierError("NAME_SYNTAX", f"{text[:80]!r} names no task")
    return TaskId(words[0], words[1], int(words[2]))


def parse_member(caller: Caller, name: str) -> str:
    """Return the MSP id of an organisation that is given by its name on this network, or by its MSP id."""
    return caller.network.msp_id(name) if name in caller.network.organisations else name


def sandbox_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the bounds of a replay's container."""
    for option in (
        click.option(
            "--timeout", type=NumberRange(1), default=3600, show_default=True, help="Seconds at most."
        ),
        click.option(
            "--memory", type=click.IntRange(64), default=1024, show_default=True, help="MiB for the learner."
        ),
    ):
        command = option(command)
    return command


def data_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add where the node's rows are, as for a launch."""
    for option in (
        click.option("--data", help="CSV or Parquet file of the node's rows. [default: as last launched]"),
        click.option("--label", default=DEFAULT_LABEL, show_default=True, help="The label column of --data."),
        click.option("--drop", multiple=True, help="A column of --data to leave out."),
    ):
        command = option(command)
    return command


def source_given(data: str | None, label: str, drop: tuple[str, ...]) -> DataSource | None:
    """Return the source that the options name; None for that of the last launch."""
    return None if data is None else DataSource(data, label, drop)


def settings_of(caller: Caller, memory: int, timeout: float) -> ReplaySettings:
    """Return where and within which bounds to run."""
    return ReplaySettings(engine(), caller.network, Limits(memory_bytes=memory * MIB), timeout)
