"""`executor launch --follow`: an organisation's nodes at work for every process that runs, until stopped.

1. Only one service works for an organisation with a state folder: it holds a lock.
2. It reads which processes run, hears of others from the ledger's events, and asks again now and then.
3. A node with something to do gets a launch of its own, in a thread; all of them share the places for tasks.
4. A node that failed is tried again, later each time, or not before the ledger changes.
5. A signal ends running tasks and closes them, as in any launch.
"""

import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from docker import DockerClient

from executor.caller import Caller
from executor.errors import LedgerError, TaskError, UsageError
from executor.exits import exit_code
from executor.launch.account import Account, Keep
from executor.launch.agenda import Agenda, Assignment
from executor.launch.log import Event, LogEntry
from executor.launch.news import News
from executor.launch.node_report import NodeReport
from executor.launch.nodes import account_for, kill_learner, launch_node
from executor.launch.patience import Backoff
from executor.launch.settings import LaunchSettings
from executor.launch.store import held, stores_of
from executor.launch.watchlist import Watchlist
from executor.ledger.chaincodes.orchestration import Orchestration
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.follow import PULSE, Follower
from executor.output import note
from executor.stop import StopSignals
from protocol.agreement.lifecycle import ProcessState
from protocol.errors import AttestreeError
from protocol.ledger.processes import ProcessStatus

READER = "auditor"
"""Reads what there is to do; each node then acts as itself."""
RUNNING = ProcessState.RUNNING.value
FOREVER = 365 * 86_400.0
NODES_AT_ONCE = 1000
EVENTS_AT_ONCE = 1000
"""How many are heard before anything else gets its turn: a peer may make them up without end."""
AWAY = ("LEDGER_UNREACHABLE", "LEDGER_TIMEOUT")
"""What is said of no single process."""


@dataclass
class Service:
    """The nodes of one organisation on this host."""

    caller: Caller
    client: DockerClient
    settings: LaunchSettings
    """What holds for every launch; the process is another for each."""
    keep: Keep
    explain: Callable[[Assignment, AttestreeError], None]
    """Hears the whole of an error, which may quote what no log should have."""
    stop: StopSignals
    _stopping: threading.Event = field(default_factory=threading.Event, init=False)
    _at_work: "dict[Future[NodeReport], Assignment]" = field(default_factory=dict, init=False)
    _watchlist: Watchlist = field(default_factory=Watchlist, init=False)
    _lost: Backoff = field(default_factory=Backoff, init=False)
    _agenda: Agenda = field(init=False)
    _news: News = field(init=False)
    _msp: str = field(init=False)

    def __post_init__(self) -> None:
        self._news = News(self._say)
        self._msp = self.caller.network.msp_id(self.caller.organisation)
        self._agenda = Agenda(self._msp, self._is_local)

    def run(self) -> None:
        """Serve until a signal comes."""
        with self._alone(), self.stop.noted(), ThreadPoolExecutor(NODES_AT_ONCE, "node") as pool:
            self._say(Event.SERVICE_STARTED, "works for every process that the organisation accepted")
            try:
                while not self.stop.asked:
                    self._connect(pool)
            finally:
                self._end()
        self._say(Event.SERVICE_STOPPED, "has ended; nothing of it is left running")

    def _connect(self, pool: ThreadPoolExecutor) -> None:
        """Serve while the ledger answers; while it does not, who is at work goes on as in any launch."""
        try:
            with replace(self.caller, identity=READER).ledger() as ledger:
                start = ledger.transport.chain_info().height
                self._watchlist.poll_again()
                with Follower(ledger.transport, None, start, FOREVER, (Orchestration.chaincode,)) as follower:
                    self._serve(ledger, follower, pool)
        except LedgerError as error:
            again_in = round(self._lost.failed(), 1)
            told = {"code": error.code, "exit_code": exit_code(error), "again_in": again_in}
            self._say(Event.LEDGER_LOST, "the ledger does not answer", **told)
            self._rest(again_in)

    def _rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        while not self.stop.asked and (left := end - time.monotonic()) > 0:
            self._stopping.wait(min(left, PULSE))

    def _serve(self, ledger: Ledger, follower: Follower, pool: ThreadPoolExecutor) -> None:
        self._poll(ledger)
        self._adopt(ledger)
        while not self.stop.asked:
            self._poll(ledger)
            for assignment in self._agenda.due(time.monotonic()):
                self._begin(pool, assignment)
            self._hear(follower)
            for ended in [each for each in self._at_work if each.done()]:
                self._note(ended)

    def _poll(self, ledger: Ledger) -> None:
        """Read the processes that something happened to, and from time to time all of this organisation."""
        now = time.monotonic()
        if self._watchlist.polls(now):
            running = ledger.orchestration.list(RUNNING)
            self._watchlist.add(brief.process for brief in running if self._msp in brief.organisations)
            self._watchlist.add(self._agenda.processes)
        for process in self._watchlist.take(now):
            if self.stop.asked:
                return
            self._look(ledger, process)
        if self._lost.failures:
            self._lost.succeeded()
            self._say(Event.LEDGER_FOUND, "the ledger answers again")

    def _look(self, ledger: Ledger, process: str) -> ProcessStatus | None:
        """Read where a process stands; one that cannot be read keeps no other from being worked for."""
        try:
            status = self._agenda.look(ledger, process)
        except AttestreeError as error:
            if error.code in AWAY:
                raise
            self._news.unread(process, error)
            return None
        self._news.read(process, status, is_ours=process in self._agenda.processes)
        return status

    def _adopt(self, ledger: Ledger) -> None:
        """See to what an earlier executor left in processes that have ended since."""
        for store in stores_of(self.caller.network.state, self.caller.organisation):
            if self.stop.asked:
                return
            if store.process in self._agenda.processes or not self._is_local(store.node):
                continue
            if store.is_settled:
                continue
            status = self._look(ledger, store.process)
            if status is not None and (store.has_remains or status.status is ProcessState.COMPLETED):
                self._agenda.adopt(Assignment(store.process, store.node))

    def _begin(self, pool: ThreadPoolExecutor, assignment: Assignment) -> None:
        process, node = assignment
        for_silent = self._agenda.begun(assignment)
        settings = replace(self.settings, process=process, for_silent=for_silent, waits=False)
        asked = pool.submit(
            launch_node, self.caller, self.client, settings, node, self._account(process), self._stopping
        )
        self._at_work[asked] = assignment

    def _hear(self, follower: Follower) -> None:
        """Wait for an event, though not for long: a signal only leaves a note."""
        wait_for = 0.0 if self._watchlist.has_more else PULSE
        for _ in range(EVENTS_AT_ONCE):
            found = follower.next(wait_for)
            if found is None:
                return
            self._watchlist.announced(found.payload["process"], time.monotonic())
            wait_for = 0.0

    def _note(self, ended: "Future[NodeReport]") -> None:
        """Take in how a node's launch ended, and when it is worked for again."""
        assignment = self._at_work.pop(ended)
        report = _report(ended, assignment.node)
        error, progress = report.error, bool(report.tasks)
        now, again_in = time.monotonic(), None
        if error is None:
            self._agenda.done(assignment, now, progress)
        else:
            again_in = self._agenda.failed(assignment, error, report.context, now, progress)
        for failure in report.failures:
            self.explain(assignment, failure)
        if self.stop.asked or not self._news.is_running(assignment.process):
            again_in = None  # it is over, for the service or for the process
        account_for(self._news.of(assignment, report), self._account(assignment.process), again_in)
        self._watchlist.add([assignment.process])

    def _end(self) -> None:
        """Have those at work end and close their tasks; learners are killed until none is left."""
        self._stopping.set()
        self._say(Event.SERVICE_STOPPING, f"ends {len(self._at_work)} launches")
        while wait(self._at_work, PULSE).not_done:
            for process, node in self._at_work.values():
                kill_learner(self.caller, self.client, process, node)
        for ended in list(self._at_work):
            self._note(ended)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        folder = self.caller.network.state / "executor" / self.caller.organisation
        for part in (folder.parent, folder):
            part.mkdir(mode=0o700, exist_ok=True)
        cause = (
            f"another `executor launch --follow` works for {self.caller.organisation} with {folder.parent}"
        )
        with held(folder / "service.lock", UsageError("SERVICE_BUSY", cause)):
            yield

    def _is_local(self, node: str) -> bool:
        return self.caller.network.msp_folder(self.caller.organisation, node).is_dir()

    def _account(self, process: str) -> Account:
        return Account(self.caller.organisation, process, self.keep)

    def _say(self, event: Event, text: str, **more: Any) -> None:
        self.keep(LogEntry.now(event, self.caller.organisation, text, **more))


def _report(ended: "Future[NodeReport]", node: str) -> NodeReport:
    """Return what a launch came to; a defect of ours ends one launch, not the service."""
    fault = ended.exception()
    if fault is None:
        return ended.result()
    # Where and what it is, without its own words: they may quote a row.
    traceback.print_tb(fault.__traceback__)
    note(type(fault).__name__)
    return NodeReport(node, error=TaskError("EXECUTOR_FAULT", type(fault).__name__))
