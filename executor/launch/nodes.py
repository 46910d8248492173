"""The tasks of the nodes of one organisation on this host: one after the other, the nodes side by side."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from docker import DockerClient

from executor.caller import Caller
from executor.data import Dataset
from executor.errors import IntegrityError
from executor.launch.plan import NextTask, TaskPlan, find_next_task, make_plan
from executor.launch.publish import finish
from executor.launch.recovery import check_free, recover
from executor.launch.session import NodeSession, labels_of, session_of
from executor.launch.source import DataSource, source_of
from executor.launch.store import NodeStore
from executor.launch.task_run import TaskSummary, refuse, run_task
from executor.ledger.follow import PULSE
from executor.sandbox.container import kill_all
from executor.sandbox.profile import Limits
from protocol.errors import AttestreeError

Tell = Callable[[str, int | None, str], None]
"""Hears of a node, its iteration and what happens."""


@dataclass(frozen=True)
class LaunchSettings:
    """What holds for every node of a launch."""

    process: str
    iterations: int | None
    """How many to run; None for all that remain."""
    source: DataSource | None
    limits: Limits
    seconds: float


@dataclass
class NodeReport:
    """What a launch came to for one node."""

    node: str
    tasks: list[TaskSummary] = field(default_factory=list)
    finished: dict[str, str] | None = None
    error: AttestreeError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as `--json` prints it."""
        failed = None
        if self.error is not None:
            failed = {"code": self.error.code, "cause": self.error.cause, "remedy": self.error.remedy}
        tasks = [summary.to_dict() for summary in self.tasks]
        return {"node": self.node, "rounds": tasks, "finished": self.finished, "error": failed}


def launch_nodes(
    caller: Caller, client: DockerClient, settings: LaunchSettings, nodes: list[str], tell: Tell
) -> list[NodeReport]:
    """Run the nodes side by side; they wait for each other on the ledger alone, as anywhere else."""
    stopping = threading.Event()
    with ThreadPoolExecutor(len(nodes), thread_name_prefix="node") as pool:
        asked = [pool.submit(launch_node, caller, client, settings, node, tell, stopping) for node in nodes]
        try:
            # In short waits: a signal that another thread takes does not wake this one, which handles it.
            while wait(asked, PULSE).not_done:
                pass
        except KeyboardInterrupt:
            stopping.set()
            for node in nodes:
                kill_all(client, labels_of(caller, settings.process, node))
        return [each.result() for each in asked]


def launch_node(  # noqa: PLR0917
    caller: Caller,
    client: DockerClient,
    settings: LaunchSettings,
    node: str,
    tell: Tell,
    stopping: threading.Event,
) -> NodeReport:
    """Run a node's tasks until as many are done as were asked for, nothing is left, or one fails."""
    report = NodeReport(node)
    try:
        with _session(caller, client, settings, node, stopping) as session:
            _run(session, settings, report, caller, tell)
    except AttestreeError as error:
        report.error = error
    return report


def plan_node(caller: Caller, client: DockerClient, settings: LaunchSettings, node: str) -> TaskPlan | None:
    """Plan the next task of a node and change nothing; None when nothing is left to do."""
    with _session(caller, client, settings, node, threading.Event()) as session:
        task = find_next_task(session)
        if task is None:
            return None
        dataset = _source(caller, settings, session.store, node).load(node)
        return make_plan(task, session, dataset, settings.limits)


def _session(
    caller: Caller, client: DockerClient, settings: LaunchSettings, node: str, stopping: threading.Event
) -> AbstractContextManager[NodeSession]:
    return session_of(caller, client, settings.process, node, settings.seconds, stopping)


def _run(
    session: NodeSession, settings: LaunchSettings, report: NodeReport, caller: Caller, tell: Tell
) -> None:
    node = report.node
    recover(session, partial(tell, node, None))
    task = find_next_task(session)
    dataset = None
    while task is not None and len(report.tasks) != settings.iterations:
        check_free(session, task.id)
        dataset = dataset or _source(caller, settings, session.store, node).load(node)
        plan = _planned(session, settings, task, dataset)
        say = partial(tell, node, task.id.iteration)
        report.tasks.append(run_task(plan, session, say))
        say("done")
        task = find_next_task(session)
    if task is None:
        report.finished = finish(session, partial(tell, node, None))


def _planned(session: NodeSession, settings: LaunchSettings, task: NextTask, dataset: Dataset) -> TaskPlan:
    """Plan a task; an image that is not the ledger's is refused, and the refusal is evidence too."""
    try:
        return make_plan(task, session, dataset, settings.limits)
    except IntegrityError as error:
        refuse(session, task.id, error)
        raise


def _source(caller: Caller, settings: LaunchSettings, store: NodeStore, node: str) -> DataSource:
    places = caller.network.state / "executor" / caller.organisation / "data"
    return source_of(settings.source, store, places, node)
