"""How a federation on the ledger grows with its nodes: on a ring and fully connected, in real containers.

A network of its own has as many nodes as the largest size. Each size runs one process per topology, all
nodes on this host, within its places. What a node costs is the time in which nodes were at work by nodes and
iterations: on a ring it must not grow with the nodes, and fully connected no faster than the neighbours. The
executors' own start and end is left out: it is the same for few nodes as for many, so that counted in it
would make few nodes look dear and growth small.
"""

import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

import numpy as np

from bench._launch_network import IMAGE, PORTS, PROJECT, run
from bench.report import Goal, Report
from executor.experiment.files import write_files
from executor.experiment.local_federation import LocalFederation
from executor.experiment.paper_ledger import owners
from executor.network import Network
from experiments.data import synthetic

SIZES = (4, 8, 16, 32)
ITERATIONS = 2
TOPOLOGIES = ("ring", "full")
ROWS_PER_NODE = 600
LARGEST_GROWTH = 0.1


@dataclass(frozen=True)
class Measured:
    """One process of so many nodes."""

    nodes: int
    seconds: float
    """From the executors' start to their end."""
    parts: dict[str, float]
    """Where that went, in the mean of all nodes; they add up to it."""
    blocks: int
    bytes: int

    @property
    def tasks(self) -> int:
        """How many tasks there were."""
        return self.nodes * ITERATIONS

    @property
    def work_seconds(self) -> float:
        """How long nodes were at work: the whole without the executors' start and end."""
        return self.seconds - self.parts["executor"]

    @property
    def node_seconds(self) -> float:
        """What one iteration of one node costs this host."""
        return self.work_seconds / self.tasks

    @property
    def node_bytes(self) -> float:
        """What one iteration of one node adds to the chain of a peer."""
        return self.bytes / self.tasks

    @property
    def commit_seconds(self) -> float:
        """How long a node waits for one of its three commits."""
        return self.parts["commits"] / (3 * ITERATIONS + 2)


def measure(sizes: Sequence[int] = SIZES) -> Report:
    """Measure every size on every topology."""
    with network(max(sizes)) as found, TemporaryDirectory() as folder:
        federations = {size: Sized(found, size, Path(folder)) for size in sizes}
        image = next(iter(federations.values())).federation.publish(IMAGE)
        runs = {
            topology: [federations[size].measured(topology, image) for size in sizes]
            for topology in TOPOLOGIES
        }
    exponents = {topology: exponent(measured) for topology, measured in runs.items()}
    added = added_bytes(runs)
    return Report(
        title=f"Federation: {', '.join(map(str, sizes))} nodes, {ITERATIONS} iterations",
        ratios={
            **{f"exponent of a node's cost, {name}": value for name, value in exponents.items()},
            "bytes that one more neighbour adds / bytes of a node's iteration on a ring": added,
        },
        figures={
            f"{topology}, {measured.nodes} nodes: {what}": value
            for topology, several in runs.items()
            for measured in several
            for what, value in figures(measured).items()
        },
        goals=[
            Goal("exponent of a node's cost, ring", LARGEST_GROWTH, "at most", exponents["ring"]),
            Goal("exponent of a node's cost, full", 1.0, "at most", exponents["full"]),
            Goal("bytes that one more neighbour adds / a node's iteration on a ring", 0.1, "at most", added),
        ],
    )


def figures(measured: Measured) -> dict[str, float]:
    """What is shown of one run."""
    return {
        "the whole (s)": measured.seconds,
        "without the executors' start and end (s)": measured.work_seconds,
        "an iteration of a node (s)": measured.node_seconds,
        "a commit as a node sees it (s)": measured.commit_seconds,
        "blocks": measured.blocks,
        "bytes on the ledger by iteration of a node": measured.node_bytes,
        **{f"mean of a node, {name} (s)": value for name, value in measured.parts.items()},
    }


def exponent(measured: Sequence[Measured]) -> float:
    """The power of the number of nodes with which the cost of one grows, by least squares."""
    sizes = [math.log(each.nodes) for each in measured]
    if len(sizes) < 2:
        return 0.0
    costs = [math.log(each.node_seconds) for each in measured]
    return float(np.polyfit(sizes, costs, 1)[0])


def added_bytes(runs: dict[str, list[Measured]]) -> float:
    """What a neighbour more adds to a node's bytes, by those of a ring: its trees must not be among it."""
    ring, full = runs["ring"][-1], runs["full"][-1]
    more = (full.nodes - 1) - min(2, full.nodes - 1)
    return (full.node_bytes - ring.node_bytes) / more / ring.node_bytes if more else 0.0


class Sized:
    """The federation of some nodes of each organisation."""

    def __init__(self, found: Network, size: int, folder: Path) -> None:
        self.owners = owners(found, size)
        self.rows = folder / f"rows-{size}"
        write_files(synthetic(rows=ROWS_PER_NODE * size), list(self.owners), 1, self.rows)
        organisations = tuple(dict.fromkeys(self.owners.values()))
        self.federation = LocalFederation(found, organisations, folder / f"work-{size}")

    def measured(self, topology: str, image: str) -> Measured:
        """Run a process to its end."""
        process = f"bench-{topology}-{len(self.owners)}"
        content = {
            "process": process,
            "nodes": self.owners,
            "topology": topology,
            "image": image,
            "iterations": ITERATIONS,
            "n_new": 10,
            "n_max": 50,
            "n_share": 10,
            "seed": 7,
            "schema_from": str(next(self.rows.glob("node*.csv"))),
            "label": "Class",
        }
        self.federation.agree(content, lambda _: None)
        before, began = self._height(), monotonic()
        reports = self.federation.launch([process], f"{self.rows}/{{node}}.csv", lambda _: None)
        seconds, after = monotonic() - began, self._height()
        with self.federation.ledger(self.federation.organisations[0], "auditor") as ledger:
            size = sum(len(ledger.transport.block(number)) for number in range(before, after))
        return Measured(len(self.owners), seconds, reports.parts_of(seconds), after - before, size)

    def _height(self) -> int:
        with self.federation.ledger(self.federation.organisations[0], "auditor") as ledger:
            return ledger.transport.chain_info().height


@contextmanager
def network(nodes: int) -> Iterator[Network]:
    """Start a network with that many nodes; it is removed afterwards."""
    os.environ.update(ATTESTREE_PROJECT=PROJECT, ATTESTREE_PORTS=PORTS)
    try:
        run("network/up.sh", "--fresh", "--nodes", str(nodes))
        yield Network.load()
    finally:
        run("network/down.sh", "--purge")
