"""The rounds of the nodes of one organisation on this host: one after the other, the nodes side by side."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from docker import DockerClient

from executor.caller import Caller
from executor.data import Dataset
from executor.errors import IntegrityError
from executor.launch.finish import finish
from executor.launch.plan import Bench, Plan, Terms, make_plan, read_terms
from executor.launch.recovery import check_free, recover
from executor.launch.round import Summary, run_round
from executor.launch.source import Source, source_of
from executor.launch.store import NodeStore
from executor.ledger.waiting import PULSE
from executor.sandbox.container import kill_all
from executor.sandbox.profile import Limits
from protocol.errors import AttestreeError

Tell = Callable[[str, int | None, str], None]
"""Hears of a node, its iteration and what happens."""


@dataclass(frozen=True)
class Settings:
    """What holds for every node of a launch."""

    process: str
    rounds: int | None
    """None for all that remain."""
    source: Source | None
    limits: Limits
    seconds: float


@dataclass
class NodeReport:
    """What a launch came to for one node."""

    node: str
    rounds: list[Summary] = field(default_factory=list)
    finished: dict[str, str] | None = None
    error: AttestreeError | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as `--json` prints it."""
        failed = None
        if self.error is not None:
            failed = {"code": self.error.code, "cause": self.error.cause, "remedy": self.error.remedy}
        rounds = [summary.to_dict() for summary in self.rounds]
        return {"node": self.node, "rounds": rounds, "finished": self.finished, "error": failed}


def launch_nodes(
    caller: Caller, client: DockerClient, settings: Settings, nodes: list[str], tell: Tell
) -> list[NodeReport]:
    """Run the nodes side by side; they wait for each other on the ledger alone, as anywhere else."""
    stopping = threading.Event()
    with ThreadPoolExecutor(len(nodes), thread_name_prefix="node") as pool:
        asked = [pool.submit(launch_node, caller, client, settings, node, tell, stopping) for node in nodes]
        try:
            # In short waits: a signal that another thread takes does not wake this one, which must act on it.
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
    settings: Settings,
    node: str,
    tell: Tell,
    stopping: threading.Event,
) -> NodeReport:
    """Run a node's rounds until as many are done as were asked for, nothing is left, or one fails."""
    report = NodeReport(node)
    try:
        with working(caller, client, settings, node, stopping) as bench:
            _run(bench, settings, report, caller, tell)
    except AttestreeError as error:
        report.error = error
    return report


def plan_node(caller: Caller, client: DockerClient, settings: Settings, node: str) -> Plan | None:
    """Plan the next round of a node and change nothing; None when nothing is left to do."""
    with working(caller, client, settings, node, threading.Event()) as bench:
        terms = read_terms(bench.ledger, settings.process, node)
        if terms is None:
            return None
        dataset = _source(caller, settings, bench.store, node).load(node)
        return make_plan(terms, bench, dataset, settings.limits)


@contextmanager
def working(
    caller: Caller, client: DockerClient, settings: Settings, node: str, stopping: threading.Event
) -> Iterator[Bench]:
    """Hold the node on this host and the ledger as the node."""
    store = NodeStore(caller.network.state, caller.organisation, settings.process, node)
    labels = labels_of(caller, settings.process, node)
    with store.locked(), replace(caller, identity=node).ledger() as ledger:
        yield Bench(ledger, client, store, labels, settings.seconds, stopping)


def labels_of(caller: Caller, process: str, node: str) -> dict[str, str]:
    """Return the labels by which a later start finds the containers of a node."""
    return {
        "attestree.network": caller.network.project,
        "attestree.role": "learner",
        "attestree.process": process,
        "attestree.node": node,
    }


def _run(bench: Bench, settings: Settings, report: NodeReport, caller: Caller, tell: Tell) -> None:
    process, node = settings.process, report.node
    recover(bench, process, node, partial(tell, node, None))
    terms = read_terms(bench.ledger, process, node)
    dataset = None
    while terms is not None and len(report.rounds) != settings.rounds:
        check_free(bench, terms.task)
        dataset = dataset or _source(caller, settings, bench.store, node).load(node)
        plan = _planned(bench, settings, terms, dataset)
        say = partial(tell, node, terms.task.iteration)
        report.rounds.append(run_round(plan, bench, say))
        say("done")
        terms = read_terms(bench.ledger, process, node)
    if terms is None:
        report.finished = finish(bench, process, node, partial(tell, node, None))


def _planned(bench: Bench, settings: Settings, terms: Terms, dataset: Dataset) -> Plan:
    """Plan a round; an image that is not the ledger's is refused, and the refusal is evidence too."""
    try:
        return make_plan(terms, bench, dataset, settings.limits)
    except IntegrityError as error:
        bench.ledger.execution.refuse(terms.task, error.code, error.evidence)
        raise


def _source(caller: Caller, settings: Settings, store: NodeStore, node: str) -> Source:
    places = caller.network.state / "executor" / caller.organisation / "data"
    return source_of(settings.source, store, places, node)
