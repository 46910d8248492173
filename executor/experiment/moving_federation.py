"""A federation that changes while it runs, on the network of this host: nodes come, go and die.

1. All organisations agree on a process whose nodes do not wait for each other, on another topology and
   another image from its third iteration on, and on a node that joins then.
2. Every node does two iterations. In the second, one dies while its task is open and has left; it returns
   for the fourth.
3. They go on to the end. One organisation's executor is killed in the middle of its tasks and started again.
   At the same time some of the nodes work for a second process, whose nodes do wait; there, too, an executor
   is killed. One of its nodes is never heard of again after its first iteration: the others wait for it until
   the deadline of the process, and a majority leaves it out.
4. A third process starts from a model that the first one published.
5. Each process is run again in memory, in the order in which things happened, and audited.
"""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

from executor.experiment.federation_changes import ask_all, leave_out, other_version
from executor.experiment.files import IMBALANCE, write_split
from executor.experiment.history import ChainRun
from executor.experiment.launches import Launches
from executor.experiment.local_federation import SCIENTIST, Audit, LocalFederation
from executor.experiment.paper_ledger import LEARNER, owners
from executor.launch.log import Event, LogEntry
from executor.ledger.chaincodes.proxies import Ledger
from executor.model.content import fetch
from executor.network import Network
from executor.output import Say
from experiments.data import LABEL, synthetic
from experiments.split import PAPER_SEED, split
from learning.actions import EMPTY
from learning.ensemble import Ensemble
from learning.rows import Rows

ROWS_PER_NODE = 200
FEATURES = 5
ANOMALOUS = 0.06
ITERATIONS = 4
CHANGED = 2
"""The first iteration of the other topology and image, and of the node that joins."""
SEED = 7
SILENCE = 5
"""Seconds after which a majority may leave a node out of the process whose nodes wait for each other."""
SMALL = {"n_new": 3, "n_share": 2, "n_max": 8, "seed": SEED}


@dataclass
class MovingRun:
    """What came of it."""

    processes: dict[str, str] = field(default_factory=dict)
    events: list[str] = field(default_factory=list)
    results: dict[str, int] = field(default_factory=dict)
    again: int = 0
    """How many tasks were begun more than once."""
    differences: list[tuple[str, str, int]] = field(default_factory=list)
    audit: Audit = field(default_factory=Audit)
    seconds: float = 0.0

    @property
    def equals_simulator(self) -> bool:
        """Whether every result of every process is the simulator's."""
        return bool(self.results) and not self.differences

    @property
    def audited(self) -> bool:
        """Whether the audit found nothing wrong."""
        return self.audit.verified


class MovingFederation:
    """The scenario on some nodes of each organisation."""

    def __init__(self, network: Network, nodes: int, run: str, say: Say) -> None:
        """Take how many nodes there are in all, and a word that tells this run from others."""
        self.network, self.say = network, say
        self.owners = owners(network, nodes)
        self.name = f"moving-{run}"
        folder = network.state / "moving" / self.name
        table = synthetic(rows=ROWS_PER_NODE * nodes, features=FEATURES, anomalous=ANOMALOUS)
        parts = split(table, nodes, PAPER_SEED, IMBALANCE)
        named = zip(parts.nodes, self.owners, strict=True)
        self.split = replace(parts, nodes=tuple(replace(part, name=name) for part, name in named))
        wanted = {"source": table.source, "nodes": list(self.owners), "seed": PAPER_SEED}
        write_split(lambda: self.split, table.features, wanted, folder / "rows")
        self.data = folder / "rows"
        self.rows = {node.name: Rows.of(node.X, node.y) for node in self.split.nodes}
        self.federation = LocalFederation(network, tuple(dict.fromkeys(self.owners.values())), folder)
        self.run = MovingRun()

    def nodes_of(self, organisation: str) -> list[str]:
        """Return an organisation's nodes, ascending."""
        return [node for node, owner in self.owners.items() if owner == organisation]

    def play(self) -> MovingRun:
        """Do everything, in its order; the image that was made for it is gone afterwards."""
        began = time.monotonic()
        image = self.federation.publish(LEARNER)
        with other_version(self.federation, image) as other:
            self._play(image, other)
        self._judge()
        self.run.seconds = time.monotonic() - began
        return self.run

    def _play(self, image: str, other: str) -> None:
        first, second, third, fourth = self.federation.organisations[:4]
        late, leaver = self.nodes_of(fourth)[-1], self.nodes_of(third)[-1]
        roaming = self._agree("roaming", image, set(self.owners) - {late}, topology="ring", synchronous=False)
        self._change(roaming, other, late)
        self._two_iterations(roaming, leaver, late)
        self._submit(third, lambda ledger: self._return(ledger, roaming, leaver))
        together = {self.nodes_of(owner)[0] for owner in (first, second, third)}
        synchronous: dict[str, Any] = {"topology": "full", "iterations": 2, "silence_seconds": SILENCE}
        waiting = self._agree("waiting", image, together, **synchronous)
        self._to_the_end(roaming, waiting, (first, second), self.nodes_of(third)[0])
        model, one = self._model(roaming), {self.nodes_of(first)[0]}
        warm = self._agree("warm", image, one, topology="disconnected", iterations=1, initial_model=model)
        with Launches(self.network, self.federation.folder) as launches:
            self._start(launches, first, warm, "--all-local", "--until-complete")
            launches.wait(self._hear)

    def _agree(self, role: str, image: str, nodes: set[str], **fields: Any) -> str:
        chosen = {node: owner for node, owner in self.owners.items() if node in nodes}
        content = {
            "process": f"{self.name}-{role}",
            "description": f"A federation that changes while it runs: {role}",
            "nodes": chosen,
            "image": image,
            "iterations": ITERATIONS,
            "schema_from": f"{self.data}/{next(iter(chosen))}.csv",
            "label": LABEL,
            **SMALL,
            **fields,
        }
        parties = tuple(dict.fromkeys(chosen.values()))
        agreed = replace(self.federation, organisations=parties).agree(content, self.say)
        self.run.processes[role] = agreed.process
        return agreed.process

    def _change(self, process: str, image: str, late: str) -> None:
        """Have all agree on what changes, before anybody has begun the iteration it is for.

        The node joins before the image is asked for: its organisation, too, has to agree to what it runs.
        """
        version, msp = image.rpartition(":")[2], self.network.msp_id(self.owners[late])
        ask_all(self.federation, lambda here: here.change_topology(process, CHANGED, {"kind": "full"}))
        ask_all(self.federation, lambda here: here.join(process, late, msp, CHANGED))
        ask_all(self.federation, lambda here: here.update_image(process, CHANGED, version))
        self._tell(f"topology full, {late} and image {version} from iteration {CHANGED} on")

    def _two_iterations(self, process: str, leaver: str, late: str) -> None:
        """Let everybody but one do two iterations; in the second, one dies in the middle of its task."""
        with Launches(self.network, self.federation.folder) as launches:
            dying: list[str] = []

            def hear(entry: LogEntry) -> None:
                if dying and (entry.process, entry.node, entry.iteration) == (process, leaver, 1):
                    launches.kill(dying.pop())
                    self._submit(self.owners[leaver], lambda ledger: self._leave(ledger, process, leaver))
                self._hear(entry)

            for organisation in self.federation.organisations:
                here = self.nodes_of(organisation)
                alone = {leaver, late} & set(here)
                chosen = (
                    [("--node", node) for node in here if node not in alone] if alone else [("--all-local",)]
                )
                for nodes in chosen:
                    self._start(launches, organisation, process, *nodes, "--iterations", "2")
            owner = self.owners[leaver]
            dying.append(self._start(launches, owner, process, "--node", leaver, "--iterations", "2"))
            launches.wait(hear)

    def _leave(self, ledger: Ledger, process: str, node: str) -> None:
        ledger.orchestration.leave(process, node, 1, "it died")
        self._tell(f"{node} dies while its task is open, and has left from iteration 1 on")

    def _return(self, ledger: Ledger, process: str, node: str) -> None:
        msp = self.network.msp_id(self.owners[node])
        ledger.orchestration.join(process, node, msp, CHANGED + 1)
        self._tell(f"{node} returns from iteration {CHANGED + 1} on")

    def _to_the_end(self, roaming: str, waiting: str, two: tuple[str, str], gone: str) -> None:
        """Finish both processes at once; an executor of each is killed as a node shares, then begins anew.

        A third node of the waiting process does one iteration and no more: the two vote to leave it out.
        """
        rest = ("--all-local", "--until-complete")
        with (
            ThreadPoolExecutor(1, "vote") as voting,
            Launches(self.network, self.federation.folder) as launches,
        ):
            victims: dict[tuple[str | None, str], str] = {}
            votes: list[Future[None]] = []

            def hear(entry: LogEntry) -> None:
                if (entry.process, entry.node, entry.event) == (waiting, gone, Event.TASK_DONE):
                    # The others wait meanwhile, and nothing is heard of them.
                    votes.append(voting.submit(self._leave_out, waiting, gone, two))
                place = (entry.process, entry.organisation)
                if entry.text.startswith("SHARE") and place in victims:
                    launches.kill(victims.pop(place))
                    self._tell(f"the executor of {entry.organisation} for {entry.process} is killed")
                    self._start(launches, entry.organisation, str(entry.process), *rest)
                self._hear(entry)

            for organisation in self.federation.organisations:
                name = self._start(launches, organisation, roaming, *rest)
                if organisation == two[1]:
                    victims[roaming, organisation] = name
            for organisation in two:
                name = self._start(launches, organisation, waiting, *rest)
                if organisation == two[0]:
                    victims[waiting, organisation] = name
            self._start(launches, self.owners[gone], waiting, "--node", gone, "--iterations", "1")
            launches.wait(hear)
            for vote in votes:
                vote.result()

    def _leave_out(self, process: str, node: str, voters: tuple[str, str]) -> None:
        self._tell(f"{node} is never heard of again in {process} after its first iteration")
        leave_out(self.federation, voters, process, node)
        self._tell(f"{' and '.join(voters)}, a majority, leave {node} out after {SILENCE} s of silence")

    def _start(self, launches: Launches, organisation: str, process: str, *options: str) -> str:
        return launches.start(organisation, process, *options, "--data", f"{self.data}/{{node}}.csv")

    def _hear(self, entry: LogEntry) -> None:
        if entry.event is Event.TASK_DONE and entry.process in self.run.processes.values():
            self.say(f"{entry.process}: {entry.node} iteration {entry.iteration} is done")

    def _model(self, process: str) -> dict[str, str]:
        node = next(iter(self.owners))
        with self.federation.ledger(self.owners[node], node) as ledger:
            return {"process": process, "node": node, "digest": str(ledger.models.get(process, node).digest)}

    def _judge(self) -> None:
        """Run each process again in memory and compare; then have an auditor check the whole channel."""
        auditor = self.federation.organisations[0]
        for role, process in self.run.processes.items():
            with self.federation.ledger(auditor, "auditor") as ledger:
                chain = ChainRun.read(ledger, process)
                tasks = list(ledger.execution.list_tasks(process))
            found = chain.differences(chain.replayed(self.rows, self._initial(chain)))
            self.run.differences += [(role, node, iteration) for node, iteration in found]
            self.run.results[role] = len(chain.results)
            self.run.again += sum(task.attempt > 1 for task in tasks)
        self.run.audit = self.federation.audit_channel(next(iter(self.run.processes.values())))

    def _initial(self, chain: ChainRun) -> Ensemble:
        initial = chain.specification.initial_model
        if initial is None:
            return EMPTY
        with self.federation.ledger(self.owners[initial.node], initial.node) as ledger:
            return fetch(ledger, initial.process, initial.node).ensemble

    def _submit(self, organisation: str, act: Callable[[Ledger], Any]) -> Any:
        with self.federation.ledger(organisation, SCIENTIST) as ledger:
            return act(ledger)

    def _tell(self, text: str) -> None:
        self.run.events.append(text)
        self.say(text)
