"""The paper's unbalanced split of one table over nodes, with the seeds that reproduce its table of sizes."""

import itertools

import numpy as np
import numpy.typing as npt
from sklearn.model_selection import train_test_split

from experiments.data import DataTable, Floats, Labels
from experiments.errors import ReproductionError, SourceError
from experiments.reference import PAPER_TABLE, PAPER_TEST
from protocol.values import dataclass

PAPER_SEED = 45
PAPER_NODES = 20
IMBALANCE = 0.7
TEST_SEED = 42
TEST_SIZE = 0.1

Rows = npt.NDArray[np.intp]


@dataclass(frozen=True)
class NodeData:
    """The private training rows of one node."""

    name: str
    X: Floats
    y: Labels


@dataclass(frozen=True)
class Split:
    """What every node trains on, and the joint test set that only measures."""

    seed: int
    nodes: tuple[NodeData, ...]
    X_test: Floats
    y_test: Labels

    def sizes(self) -> tuple[tuple[int, int], ...]:
        """Samples and anomalies per node."""
        return tuple((len(node.y), int(node.y.sum())) for node in self.nodes)

    def is_papers(self) -> bool:
        """Whether every row of the paper's table is met exactly."""
        return self.sizes() == PAPER_TABLE and (len(self.y_test), int(self.y_test.sum())) == PAPER_TEST

    def check_papers(self) -> None:
        """Return if the split is the paper's, to the row."""
        if not self.is_papers():
            raise ReproductionError(
                "SPLIT_DIFFERS",
                "the split differs from the paper's table of sizes",
            )


def node_name(index: int, count: int) -> str:
    """`node07`: as many digits as the largest index needs, and at least two."""
    return f"node{index:0{max(2, len(str(count - 1)))}d}"


def split(
    table: DataTable, nodes: int = PAPER_NODES, seed: int = PAPER_SEED, imbalance: float = IMBALANCE
) -> Split:
    """Shuffle, cut anomalous and normal rows into unequal runs, and set a tenth of each node's rows aside."""
    parts = node_rows(table.y, nodes, seed, imbalance)
    train, test = [], []
    for index, rows in enumerate(parts):
        if len(rows) < 2:
            raise SourceError(
                "DATA_TOO_SMALL",
                f"{table.source}: {node_name(index, nodes)} would get {len(rows)} of the {len(table.y)} rows",
                case="node",
            )
        kept, aside = train_test_split(rows, random_state=TEST_SEED, test_size=TEST_SIZE)
        train.append(kept)
        test.append(aside)
    joint = np.concatenate(test)
    if not table.y[joint].any():
        raise SourceError(
            "DATA_TOO_SMALL",
            f"{table.source}: no anomalous row in the test set",
            case="test",
        )
    members = tuple(
        NodeData(node_name(i, nodes), table.X[rows], table.y[rows]) for i, rows in enumerate(train)
    )
    return Split(seed, members, table.X[joint], table.y[joint])


def node_rows(y: Labels, nodes: int, seed: int, imbalance: float) -> list[Rows]:
    """Each node's rows, anomalous first; drawn by numpy's legacy generator, as for the paper's table."""
    shuffled = np.random.RandomState(seed).permutation(len(y))
    random = np.random.RandomState(seed)
    anomalous = _unequal_runs(shuffled[y[shuffled] == 1], nodes, imbalance, random)
    normal = _unequal_runs(shuffled[y[shuffled] == 0], nodes, imbalance, random)
    return [np.concatenate(pair) for pair in zip(anomalous, normal, strict=True)]


def _unequal_runs(rows: Rows, count: int, imbalance: float, random: np.random.RandomState) -> list[Rows]:
    """Consecutive runs whose cut points are moved at random; where two cuts cross, a run is empty.

    The runs before and after a crossing overlap by a few rows: the paper's table counts three frauds twice.
    """
    cuts = np.linspace(0, len(rows), count + 1).astype(int)
    reach = int(imbalance * len(rows) / count)
    if reach > 0:
        cuts[1:-1] += random.randint(-reach, reach, count - 1)
    cuts = np.clip(cuts, 0, len(rows))
    return [rows[start:stop] for start, stop in itertools.pairwise(cuts)]
