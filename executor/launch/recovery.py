"""What a start does about a task that an earlier executor began and did not end.

The node's lock is held, so nobody works with this directory: what a task left that was begun with it is left
over. What was begun with a copy of the directory, here or elsewhere, is not touched: it may be at work.
"""

import shutil
from collections.abc import Callable

from executor.launch.layout import run_directory
from executor.launch.reasons import SENTENCES
from executor.launch.session import STORE_LABEL, NodeSession
from executor.sandbox.container import reap
from protocol.errors import LifecycleError, StateError
from protocol.task.opening import TaskId


def recover(session: NodeSession, tell: Callable[[str], None]) -> None:
    """Remove the container and its files, and close the task whose key died with the executor.

    A result that did reach the ledger needs nothing: its state was kept before it was sent.
    """
    for name in reap(session.client, session.labels):
        tell(f"removed container {name}, which an earlier executor left")
    shutil.rmtree(run_directory(session.store), ignore_errors=True)
    journal = session.store.begun()
    if journal is None:
        return
    if journal.store != session.labels[STORE_LABEL]:
        # A copy of the directory that began the task: whoever works there closes it, or its time does.
        tell(f"iteration {journal.iteration} was begun with another copy of this node's directory")
        session.store.ended()
        return
    task = TaskId(session.process, session.node, journal.iteration)
    session.lost_keys.extend(filter(None, (journal.public_key, journal.lost_key)))
    key = _key_under_way(session, task)
    if key in session.lost_keys:
        tell(f"closing iteration {task.iteration}, which an earlier executor began")
        _close(session, task, key)
    session.store.ended()


def _close(session: NodeSession, task: TaskId, key: str | None) -> None:
    """Close the task, unless what the earlier executor sent last has ended it meanwhile."""
    try:
        session.ledger.execution.fail(task, "EXECUTOR_LOST", SENTENCES["EXECUTOR_LOST"])
    except LifecycleError:
        if _key_under_way(session, task) == key:
            raise


def check_free(session: NodeSession, task: TaskId) -> None:
    """Refuse to open a task that is under way with a key this host never had, unless its time is over.

    What an executor sent that was killed then may come to the ledger after the next start has looked.
    """
    key = _key_under_way(session, task)
    if key is None:
        return
    if key in session.lost_keys:
        _close(session, task, key)
        return
    try:
        session.ledger.execution.expire(task)
    except StateError as error:
        if error.code != "TASK_NOT_EXPIRED":
            raise
        raise StateError(
            "TASK_BUSY",
            f"task {task} is under way with a key that is not of this host",
        ) from error


def _key_under_way(session: NodeSession, task: TaskId) -> str | None:
    try:
        found = session.ledger.execution.get_task(task)
    except StateError as error:
        if error.code != "TASK_UNKNOWN":
            raise
        return None
    return str(found.opening.public_key) if found.is_under_way and found.opening is not None else None
