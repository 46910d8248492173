"""The service on the channel in memory: run until a line says that it is over; what was said meanwhile."""

import threading
from collections.abc import Callable
from typing import Any

import pytest

from executor.caller import Caller
from executor.launch import patience, service, watchlist
from executor.launch.agenda import Assignment
from executor.launch.log import Event, LogEntry
from executor.launch.places import Places
from executor.launch.service import Service
from executor.launch.settings import LaunchSettings
from executor.network import Network
from executor.sandbox.profile import Limits
from executor.stop import StopSignals
from protocol.errors import AttestreeError
from support.memory.launches import Host

Heard = Callable[[LogEntry], bool]
LONG = 150.0
"""Seconds after which nothing is to be expected any more: a service that sleeps would sleep for ever."""


def impatient(patch: pytest.MonkeyPatch) -> None:
    """Let a service try again at once, and hear of what is new by events alone."""
    patch.setattr(patience, "FIRST", 0.01)
    patch.setattr(service, "PULSE", 0.05)
    patch.setattr(watchlist, "POLL", 1e9)


def service_of(
    host: Host,
    keep: Callable[[LogEntry], None],
    explain: Callable[[Assignment, AttestreeError], None] = lambda *_: None,
    places: int = 2,
) -> Service:
    """Make the service of the host's organisation; it is asked to end by `stop`."""
    settings = LaunchSettings("", None, None, Limits(), 60.0, places=Places(places))
    caller = Caller(Network.load(), "org1", "the node")
    client: Any = host.engine
    return Service(caller, client, settings, keep, explain, StopSignals())


def serve(
    host: Host,
    is_over: Heard,
    places: int = 2,
    explain: Callable[[Assignment, AttestreeError], None] = lambda *_: None,
) -> list[LogEntry]:
    """Serve until a line says that it is over; returns all lines."""
    said: list[LogEntry] = []

    def keep(entry: LogEntry) -> None:
        said.append(entry)
        made.stop.asked = is_over(entry) or made.stop.asked

    def give_up() -> None:
        too_late.set()
        made.stop.asked = True

    made, too_late = service_of(host, keep, explain, places), threading.Event()
    watch = threading.Timer(LONG, give_up)
    watch.start()
    try:
        made.run()
    finally:
        watch.cancel()
    assert not too_late.is_set(), "what was waited for was never said"
    assert [said[0].event, *(entry.event for entry in said[-1:])] == [
        Event.SERVICE_STARTED,
        Event.SERVICE_STOPPED,
    ]
    return said


def of(said: list[LogEntry], event: Event) -> list[tuple[str | None, str | None, str | None]]:
    """What the lines of an event are about: process, node and code, in order."""
    return sorted((entry.process, entry.node, entry.code) for entry in said if entry.event is event)


def all_of(event: Event, *wanted: tuple[str, str]) -> Heard:
    """Whether an event has come for each of these nodes of processes."""
    left = set(wanted)

    def heard(entry: LogEntry) -> bool:
        if entry.event is event:
            left.discard((str(entry.process), str(entry.node)))
        return not left

    return heard
