"""An executor that kills itself at one instant, without any clean-up: `crashing.py INSTANT launch ...`."""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from executor.cli import main
from executor.launch.store import NodeStore
from executor.ledger.chaincodes.execution import ExecutionRecord
from executor.ledger.chaincodes.models import Models
from executor.sandbox.container import Container

INSTANTS: dict[str, tuple[str, type, str]] = {
    "the key is made": ("before", NodeStore, "begin"),
    "the journal is written": ("after", NodeStore, "begin"),
    "the task is open": ("after", ExecutionRecord, "open_task"),
    "the container is created": ("after", Container, "create"),
    "the container is started": ("after", Container, "start"),
    "the share is signed": ("before", ExecutionRecord, "share"),
    "the share is on the ledger": ("after", ExecutionRecord, "share"),
    "it waits for neighbours": ("after", ExecutionRecord, "offers"),
    "the state is kept": ("after", NodeStore, "keep_state"),
    "the result is on the ledger": ("after", ExecutionRecord, "complete"),
    "the container is removed": ("after", Container, "remove"),
    "the journal is struck out": ("before", NodeStore, "ended"),
    "the model is published": ("after", Models, "publish"),
}


def arm(instant: str) -> None:
    """Put the kill before or behind the function of this instant."""
    when, owner, name = INSTANTS[instant]
    honest: Any = getattr(owner, name)
    bound = isinstance(owner.__dict__[name], classmethod)

    def deadly(*given: Any, **named: Any) -> Any:
        if when == "before":
            os.kill(os.getpid(), signal.SIGKILL)
        honest(*given, **named)
        os.kill(os.getpid(), signal.SIGKILL)

    wrapped: Callable[..., Any] | staticmethod[..., Any] = staticmethod(deadly) if bound else deadly
    setattr(owner, name, wrapped)


if __name__ == "__main__":
    arm(sys.argv[1])
    main(sys.argv[2:])
