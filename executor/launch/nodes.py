"""The tasks of the nodes of one organisation on this host: one after the other, the nodes side by side."""

import contextlib
import threading
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager

from docker import DockerClient

from executor.caller import Caller
from executor.errors import host_failed
from executor.launch.account import Account
from executor.launch.node_report import NodeReport
from executor.launch.node_tasks import data_source, gone_from, run_tasks
from executor.launch.plan import TaskPlan, find_next_task, make_plan
from executor.launch.session import NodeSession, own_labels, session_of
from executor.launch.settings import LaunchSettings
from executor.launch.store import NodeStore
from executor.ledger.follow import PULSE
from executor.sandbox.container import kill_all
from executor.stop import StopSignals
from protocol.errors import AttestreeError, StateError
from protocol.values import dataclass

_AFTER_LEAVING = ("NODE_INACTIVE", "PROCESS_NOT_RUNNING")
"""What the ledger says to a node that left while its task ran: the process may have ended since."""


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
                run_tasks(session, settings, report, caller, account)
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
    return gone_from(session.ledger.orchestration.get(session.process).plan, session.node)


def plan_node(caller: Caller, client: DockerClient, settings: LaunchSettings, node: str) -> TaskPlan | None:
    """Plan the next task of a node; pull and open nothing; None when nothing is left to do."""
    with _session(caller, client, settings, node, threading.Event()) as session:
        task = find_next_task(session)
        if task is None:
            return None
        dataset = data_source(caller, settings, session.store, node).load(node, settings.rows)
        return make_plan(task, session, dataset, settings.limits, settings.runtime, dry=True)


def _session(
    caller: Caller, client: DockerClient, settings: LaunchSettings, node: str, stopping: threading.Event
) -> AbstractContextManager[NodeSession]:
    return session_of(
        caller, client, settings.process, node, settings.seconds, stopping, settings.places, settings.trees
    )


def account_for(report: NodeReport, account: Account, again_in: float | None = None) -> None:
    """Say how a node's part of a launch ended."""
    for error in report.failures:
        account.failed(report.node, error, again_in)
    if report.left is not None:
        account.left(report.node, report.left)
    if report.finished is not None:
        account.finished(report.node, report.finished["model"], report.finished["process"])
