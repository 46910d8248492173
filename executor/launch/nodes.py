"""The tasks of the nodes of one organisation on this host: one after the other, the nodes side by side."""

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial

from docker import DockerClient

from executor.caller import Caller
from executor.data import Dataset
from executor.errors import IntegrityError, host_failed
from executor.launch.account import Account
from executor.launch.node_report import NodeReport
from executor.launch.parts import Part, PartTimes
from executor.launch.plan import NextTask, TaskPlan, find_following_task, find_next_task, make_plan
from executor.launch.publish import finish
from executor.launch.recovery import check_free, recover
from executor.launch.session import NodeSession, own_labels, session_of
from executor.launch.settings import LaunchSettings
from executor.launch.source import DataSource, remember, source_of
from executor.launch.store import NodeStore
from executor.launch.task_run import TaskSummary, refuse, run_task
from executor.ledger.follow import PULSE, wait_until
from executor.sandbox.container import kill_all
from executor.stop import StopSignals
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.plan import Plan
from protocol.errors import AttestreeError, StateError
from protocol.ledger.processes import TaskContext

_AFTER_LEAVING = ("NODE_INACTIVE", "PROCESS_NOT_RUNNING")
"""What the ledger says to a node that left while its task ran: the process may have ended since."""

FRESH_SECONDS = 1.0
"""How long a task may have waited for a place without its context being read again."""


@dataclass(frozen=True)
class NodeLaunch:
    """One node to work for in one process, and who is told of it."""

    settings: LaunchSettings
    node: str
    account: Account


def launch_nodes(
    caller: Caller, client: DockerClient, launches: list[NodeLaunch], stop: StopSignals
) -> list[NodeReport]:
    """Run the nodes side by side; they wait for each other on the ledger alone, as anywhere else."""
    stopping = threading.Event()
    with stop.noted(), ThreadPoolExecutor(len(launches), thread_name_prefix="node") as pool:
        asked = [
            pool.submit(launch_node, caller, client, each.settings, each.node, each.account, stopping)
            for each in launches
        ]
        # In short waits, since nothing wakes this thread: a handler only notes that it was called.
        while wait(asked, PULSE).not_done:
            if stop.asked:
                stopping.set()
                for each in launches:
                    kill_learner(caller, client, each.settings.process, each.node)
        return [ended.result() for ended in asked]


def kill_learner(caller: Caller, client: DockerClient, process: str, node: str) -> None:
    """Kill the node's container, of this executor alone; what fails is tried again a moment later."""
    store = NodeStore(caller.network.state, caller.organisation, process, node)
    with contextlib.suppress(AttestreeError, OSError):
        kill_all(client, own_labels(caller, store))


def launch_node(  # noqa: PLR0917
    caller: Caller,
    client: DockerClient,
    settings: LaunchSettings,
    node: str,
    account: Account,
    stopping: threading.Event,
) -> NodeReport:
    """Run a node's tasks until as many are done as were asked for, nothing is left, or one fails."""
    report = NodeReport(node, process=settings.process)
    try:
        with _session(caller, client, settings, node, stopping) as session:
            report.beside = session.beside
            try:
                _run(session, settings, report, caller, account)
            except StateError as error:
                report.left = _left(session, error)
                if report.left is None:
                    raise
    except AttestreeError as error:
        report.error = error
    except OSError as error:
        report.error = host_failed(error)
    return report


def _left(session: NodeSession, error: StateError) -> int | None:
    """Return from which iteration on the node is gone, if that is why its task was given up.

    A node leaves by its own organisation's word, so that nothing has failed. One that the others left out
    has not left: its operator has to hear of it.
    """
    if error.code not in _AFTER_LEAVING:
        return None
    return _gone(session.ledger.orchestration.get(session.process).plan, session.node)


def _gone(plan: Plan, node: str) -> int | None:
    if node not in plan.nodes or node in plan.course.left_out:
        return None
    return plan.has_left(node)


def plan_node(caller: Caller, client: DockerClient, settings: LaunchSettings, node: str) -> TaskPlan | None:
    """Plan the next task of a node; pull and open nothing; None when nothing is left to do."""
    with _session(caller, client, settings, node, threading.Event()) as session:
        task = find_next_task(session)
        if task is None:
            return None
        dataset = _source(caller, settings, session.store, node).load(node, settings.rows)
        return make_plan(task, session, dataset, settings.limits, settings.runtime, dry=True)


def _session(
    caller: Caller, client: DockerClient, settings: LaunchSettings, node: str, stopping: threading.Event
) -> AbstractContextManager[NodeSession]:
    return session_of(
        caller, client, settings.process, node, settings.seconds, stopping, settings.places, settings.trees
    )


def _run(
    session: NodeSession, settings: LaunchSettings, report: NodeReport, caller: Caller, account: Account
) -> None:
    node = report.node
    tell = partial(account.step, node, None)
    session.check_going_on()
    with report.parts.timed(Part.READING):
        recover(session, tell)
        task = find_next_task(session)
    dataset = None
    while task is not None and len(report.tasks) != settings.iterations:
        session.check_going_on()
        with report.parts.timed(Part.READING):
            check_free(session, task.id)
            dataset = dataset or _rows(caller, settings, session.store, node)
        report.context = task.context
        with report.parts.timed(Part.WAITING):
            task = _opened(session, settings, task, tell)
        report.tasks.append(_run_one(session, settings, report, task, dataset, account))
        account.done(report.tasks[-1])
        with report.parts.timed(Part.READING):
            task = find_following_task(session, task, report.tasks[-1].result.state)
    if task is None:
        with report.parts.timed(Part.COMMITS):
            report.finished = finish(session, tell, for_silent=settings.for_silent)
        if report.finished is not None:
            session.store.finished()
        else:
            _take_no_part(session, report)


def _opened(
    session: NodeSession, settings: LaunchSettings, task: NextTask, tell: Callable[[str], None]
) -> NextTask:
    """Return the task once its step is open: where a coordinator opens steps, it may take its time."""
    step = task.context.step
    if step.opened or not settings.waits:
        task.context.check_opened()
        return task
    tell(f"waiting until step {step.name} is opened")

    def check() -> TaskContext | None:
        found = session.ledger.orchestration.task_context(task.id)
        found.check_running()
        return found if found.step.opened else None

    try:
        what = f"step {step.name} to be opened"
        found = wait_until(
            session.ledger, session.process, check, session.seconds, what, stop=session.stopping
        )
    except ConnectionAbortedError:
        session.check_going_on()
        raise
    return replace(task, context=found)


def _run_one(  # noqa: PLR0917
    session: NodeSession,
    settings: LaunchSettings,
    report: NodeReport,
    task: NextTask,
    dataset: Dataset,
    account: Account,
) -> TaskSummary:
    """Run a task, once there is a place to work at."""
    parts, asked = PartTimes(), time.monotonic()
    try:
        with settings.places.taken(session.check_going_on):
            waited = time.monotonic() - asked
            parts.add(Part.WAITING, waited)
            with parts.timed(Part.READING):
                if waited > FRESH_SECONDS:
                    task = replace(task, context=session.ledger.orchestration.task_context(task.id))
                plan = _planned(session, settings, task, dataset)
            return run_task(plan, session, partial(account.step, report.node, task.id.iteration), parts)
    finally:
        report.parts.include(parts)


def _take_no_part(session: NodeSession, report: NodeReport) -> None:
    """Note that a node has no model to publish; once the process is over, it never will."""
    record = session.ledger.orchestration.get(session.process)
    report.left = _gone(record.plan, session.node)
    if record.status is not ProcessState.RUNNING:
        session.store.finished()


def _planned(session: NodeSession, settings: LaunchSettings, task: NextTask, dataset: Dataset) -> TaskPlan:
    """Plan a task; an image that is not the ledger's is refused, and the refusal is evidence too."""
    try:
        return make_plan(task, session, dataset, settings.limits, settings.runtime)
    except IntegrityError as error:
        refuse(session, task.id, error)
        raise


def _rows(caller: Caller, settings: LaunchSettings, store: NodeStore, node: str) -> Dataset:
    """Read the node's rows; where they are is remembered once they have been read."""
    dataset = _source(caller, settings, store, node).load(node, settings.rows)
    remember(settings.source, store)
    return dataset


def _source(caller: Caller, settings: LaunchSettings, store: NodeStore, node: str) -> DataSource:
    places = caller.network.state / "executor" / caller.organisation / "data"
    return source_of(settings.source, store, places, node)


def account_for(report: NodeReport, account: Account, again_in: float | None = None) -> None:
    """Say how a node's part of a launch ended."""
    for error in report.failures:
        account.failed(report.node, error, again_in)
    if report.left is not None:
        account.left(report.node, report.left)
    if report.finished is not None:
        account.finished(report.node, report.finished["model"], report.finished["process"])
