"""`executor logs`: what launches and the service on this host did."""

import re
import time
from datetime import UTC, datetime, timedelta

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.launch.log import LaunchLog, LogEntry, LogReader, stamp
from executor.launch.service import READER
from executor.ledger.follow import PULSE
from executor.output import echo
from executor.stop import StopSignals

UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


@click.command()
@click.option("--process", help="Of one process only.")
@click.option("--node", help="Of one node only.")
@click.option("--since", metavar="WHEN", help="What is not older: 90s, 15m, 2h, 3d, or a time.")
@click.option("--follow", "-f", is_flag=True, help="Go on with what happens from now on, until stopped.")
@json_option
@caller_options(READER)
@reported
def logs(  # noqa: PLR0917 - one per option
    caller: Caller,
    as_json: bool,
    process: str | None,
    node: str | None,
    since: str | None,
    follow: bool,
) -> None:
    """Print what launches and the service of an organisation did on this host, oldest first.

    Nobody is asked: the lines are from this host's disk, which keeps the newest 5 MiB of them. With --json,
    each is printed as it was kept.
    """
    earliest = "" if since is None else _earliest(since)

    def show(line: bytes) -> None:
        entry = LogEntry.from_line(line)
        if entry is None or entry.time < earliest:
            return
        if process in (None, entry.process) and node in (None, entry.node):
            click.echo(entry.to_line()) if as_json else echo(str(entry))

    log = LaunchLog(caller.network.state, caller.organisation)
    with StopSignals() as stop, stop.noted(), LogReader(log) as reader:
        while True:
            for line in reader.lines():
                show(line)
            if stop.asked or not follow:
                return
            time.sleep(PULSE)  # files wake nobody


def _earliest(since: str) -> str:
    """Return the time that an option means, as lines have theirs."""
    found = re.fullmatch(r"([0-9]{1,5})([smhd])", since)
    if found:
        span = timedelta(**{UNITS[found[2]]: int(found[1])})
        return stamp(datetime.now(UTC) - span)
    try:
        at = datetime.fromisoformat(since)
        return stamp(at if at.tzinfo is not None else at.replace(tzinfo=UTC))
    except (ValueError, OverflowError) as error:
        raise UsageError("LOGS_SINCE", f"--since {since[:40]!r} is no span and no time") from error
