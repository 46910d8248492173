"""The tasks of one node in a process, one after the other, and what follows the last of them."""

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

from executor.caller import Caller
from executor.data import Dataset
from executor.errors import IntegrityError
from executor.launch.account import Account
from executor.launch.node_report import NodeReport
from executor.launch.parts import Part, PartTimes
from executor.launch.plan import NextTask, TaskPlan, find_following_task, find_next_task, make_plan
from executor.launch.publish import LastTask, finish
from executor.launch.recovery import check_free, recover
from executor.launch.session import NodeSession
from executor.launch.settings import LaunchSettings
from executor.launch.source import DataSource, remember, source_of
from executor.launch.store import NodeStore
from executor.launch.task_run import TaskSummary, refuse, run_task
from executor.ledger.follow import wait_until
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.plan import Plan
from protocol.ledger.processes import TaskContext
from protocol.values import dataclass

FRESH_SECONDS = 1.0
"""How long a task that was read may have waited for a place without its context being read again."""


@dataclass(frozen=True)
class DoneTask:
    """A task that this launch has completed."""

    task: NextTask
    summary: TaskSummary

    @property
    def last(self) -> LastTask | None:
        """What the node's model is published from, if the task was its last."""
        context = self.task.context
        return LastTask(context, self.summary.result.state) if context.is_last else None

    def find_following(self, session: NodeSession) -> NextTask | None:
        """Read what the node has to do after it."""
        return find_following_task(session, self.task, self.summary.result.state)


def run_tasks(
    session: NodeSession, settings: LaunchSettings, report: NodeReport, caller: Caller, account: Account
) -> None:
    """Run a node's tasks until as many are done as were asked for or nothing is left to do."""
    tell = partial(account.step, report.node, None)
    session.check_going_on()
    with report.parts.timed(Part.READING):
        recover(session, tell)
        task = find_next_task(session)
        if task is not None:
            check_free(session, task.id)
            dataset = _rows(caller, settings, session.store, report.node)
    done: DoneTask | None = None
    while task is not None and len(report.tasks) != settings.iterations:
        session.check_going_on()
        found = _run_one(session, settings, report, done or task, dataset, account)
        if isinstance(found, DoneTask):
            done = found
            report.tasks.append(done.summary)
            account.done(done.summary)
            if done.task.context.is_last or len(report.tasks) == settings.iterations:
                with report.parts.timed(Part.READING):
                    task = done.find_following(session)
        else:
            done, task = None, found
            if task is not None:
                with report.parts.timed(Part.WAITING):
                    task = _opened(session, settings, task, tell)
    if task is None:
        with report.parts.timed(Part.COMMITS):
            last = None if done is None else done.last
            report.finished = finish(session, tell, last, for_silent=settings.for_silent)
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
    before: NextTask | DoneTask,
    dataset: Dataset,
    account: Account,
) -> DoneTask | NextTask | None:
    """Run the task that was read, or the one after a task that is done, once there is a place to work at.

    What follows is read when there is one: what was agreed on meanwhile holds for it. Returns the task as it
    is if its step is not open, and None if nothing is left to do.
    """
    parts, asked = PartTimes(), time.monotonic()
    try:
        with settings.places.taken(session.check_going_on):
            waited = time.monotonic() - asked
            parts.add(Part.WAITING, waited)
            with parts.timed(Part.READING):
                task = _up_to_date(session, before, waited)
                report.context = report.context if task is None else task.context
                if task is None or not task.context.step.opened:
                    return task
                plan = _planned(session, settings, task, dataset)
            tell = partial(account.step, report.node, task.id.iteration)
            return DoneTask(task, run_task(plan, session, tell, parts))
    finally:
        report.parts.include(parts)


def _up_to_date(session: NodeSession, before: NextTask | DoneTask, waited: float) -> NextTask | None:
    if isinstance(before, DoneTask):
        return before.find_following(session)
    if waited <= FRESH_SECONDS:
        return before
    return replace(before, context=session.ledger.orchestration.task_context(before.id))


def _take_no_part(session: NodeSession, report: NodeReport) -> None:
    """Note that a node has no model to publish; once the process is over, it never will."""
    record = session.ledger.orchestration.get(session.process)
    report.left = gone_from(record.plan, session.node)
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
    dataset = data_source(caller, settings, store, node).load(node, settings.rows)
    remember(settings.source, store)
    return dataset


def data_source(caller: Caller, settings: LaunchSettings, store: NodeStore, node: str) -> DataSource:
    """Return where a node's rows are."""
    places = caller.network.state / "executor" / caller.organisation / "data"
    return source_of(settings.source, store, places, node)


def gone_from(plan: Plan, node: str) -> int | None:
    """Return from which iteration on a node is gone by its own organisation's word."""
    if node not in plan.nodes or node in plan.course.left_out:
        return None
    return plan.has_left(node)
