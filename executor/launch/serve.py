"""What `executor launch --follow` refuses to be told, and what it shows."""

import contextlib
import threading

import click
from docker import DockerClient

from executor.caller import Caller
from executor.errors import UsageError
from executor.launch.agenda import Assignment
from executor.launch.log import LaunchLog, LogEntry
from executor.launch.service import Service
from executor.launch.settings import LaunchSettings
from executor.output import note, plain
from executor.stop import StopSignals
from protocol.errors import AttestreeError


def check_alone(*given: object) -> None:
    """Refuse what says for whom and how much to work: a service works for all, until all is done."""
    names = ("--process", "--node", "--all-local", "--iterations", "--until-complete", "--data")
    for name, value in zip((*names, "--label", "--drop", "--dry-run"), given, strict=True):
        if value:
            raise UsageError("LAUNCH_OPTIONS", f"--follow and {name} exclude each other", case="follow")


def serve(caller: Caller, client: DockerClient, settings: LaunchSettings, as_json: bool) -> None:
    """Serve until a signal comes: a line for each event, kept and shown."""
    log, lock = LaunchLog(caller.network.state, caller.organisation), threading.Lock()

    def keep(entry: LogEntry) -> None:
        log.write(entry)
        with lock, contextlib.suppress(OSError):  # nobody may be left to read it, which ends no task
            click.echo(entry.to_line() if as_json else plain(entry))

    def explain(of: Assignment, error: AttestreeError) -> None:
        if not as_json:
            note(f"executor: {of.process} {of.node}: {error}")

    with StopSignals() as stop:
        Service(caller, client, settings, keep, explain, stop).run()
