"""What a start does about a round that an earlier executor began and did not end.

The node's lock is held, so nobody on this host works for the node: whatever is left is left over.
"""

import shutil
from collections.abc import Callable

from executor.launch.plan import Bench
from executor.launch.round import run_directory
from executor.sandbox.container import reap
from protocol.errors import LifecycleError, StateError
from protocol.task import TaskId

UNFINISHED = ("open", "shared")


def recover(bench: Bench, process: str, node: str, tell: Callable[[str], None]) -> None:
    """Remove the container and its files, and close the task whose key died with the executor.

    A result that did reach the ledger needs nothing: its state was kept before it was sent.
    """
    for name in reap(bench.client, bench.labels):
        tell(f"removed container {name}, which an earlier executor left")
    shutil.rmtree(run_directory(bench.store), ignore_errors=True)
    journal = bench.store.begun()
    if journal is None:
        return
    task = TaskId(process, node, journal.iteration)
    if _key_of_unfinished(bench, task) == journal.public_key:
        tell(f"closing iteration {task.iteration}, which an earlier executor began")
        _close(bench, task, journal.public_key)
    bench.store.ended()


def _close(bench: Bench, task: TaskId, key: str) -> None:
    """Close the task, unless what the earlier executor sent last has ended it meanwhile."""
    try:
        bench.ledger.execution.fail(task, "EXECUTOR_LOST", "the executor ended before the round did")
    except LifecycleError:
        if _key_of_unfinished(bench, task) == key:
            raise


def check_free(bench: Bench, task: TaskId) -> None:
    """Refuse to open a task that is under way with a key this host never had, unless its time is over."""
    if _key_of_unfinished(bench, task) is None:
        return
    try:
        bench.ledger.execution.expire(task)
    except StateError as error:
        if error.code != "TASK_NOT_EXPIRED":
            raise
        raise StateError(
            "TASK_BUSY",
            f"task {task} is under way with a key that is not of this host",
            "Let the other executor end, or wait until the task's time is over.",
        ) from error


def _key_of_unfinished(bench: Bench, task: TaskId) -> str | None:
    try:
        found = bench.ledger.execution.get_task(task)
    except StateError as error:
        if error.code != "TASK_UNKNOWN":
            raise
        return None
    return str(found["opening"]["public_key"]) if found["state"] in UNFINISHED else None
