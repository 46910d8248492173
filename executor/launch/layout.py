"""What a task lays out on disk for its container to read, in a directory that is its operator's alone."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from executor.launch.plan import TaskPlan
from executor.launch.store import NodeStore
from executor.sandbox.container import Mounts

READABLE = 0o444
"""For the container's user, who does not exist on the host; the directory around it is private."""


@contextmanager
def laid_out(plan: TaskPlan, store: NodeStore) -> Iterator[Path]:
    """Lay out what the container reads; the rows are a copy, so nothing can change under the learner."""
    directory = run_directory(store)
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700, parents=True)
    try:
        for name, content in (("rows", plan.dataset.table.to_bytes()), ("state", plan.state)):
            if content is not None:
                (directory / name).write_bytes(content)
                (directory / name).chmod(READABLE)
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def run_directory(store: NodeStore) -> Path:
    """Where a task lays out what its container reads."""
    return store.directory / "run"


def mounts_of(plan: TaskPlan, directory: Path) -> Mounts:
    """Return what is mounted of it, the broker's socket included, which is still to be made."""
    state = directory / "state" if plan.state is not None else None
    return Mounts(directory / "rows", state, directory / "broker.sock")
