"""Figures that are quoted, not measured here: the paper's, and those of methods a user might pick instead."""

from typing import NamedTuple


class Extreme(NamedTuple):
    """The least and greatest improvement that the paper reports, with the node."""

    min_node: int
    min: float
    max_node: int
    max: float


# Samples and frauds of the 20 training sets in the paper, and of the joint test set.
PAPER_TABLE = (
    (14733, 16), (9570, 37), (12992, 0), (15544, 49), (13064, 21), (16036, 13), (11149, 8), (17571, 32),
    (3297, 11), (10820, 34), (18365, 17), (7875, 33), (8298, 9), (28249, 28), (11155, 32), (3363, 12),
    (7894, 25), (13798, 9), (14098, 41), (18450, 11),
)  # fmt: skip
PAPER_TEST = (28489, 57)

# The paper's table of minimal and maximal test improvement over the disconnected case.
PAPER_EXTREMES = {
    "full": {
        "bacc": Extreme(18, -1.75e-2, 2, 3.95e-1),
        "precision": Extreme(10, -5.22e-2, 2, 9.18e-1),
        "recall": Extreme(9, -3.51e-2, 2, 7.89e-1),
    },
    "ring": {
        "bacc": Extreme(7, 3.52e-5, 2, 3.95e-1),
        "precision": Extreme(10, -7.93e-2, 2, 9.38e-1),
        "recall": Extreme(3, 0.0, 2, 7.89e-1),
    },
}
PAPER_GAIN = (0.1, 0.2)  # "a significant increase (0.1-0.2) both in the mean and the median"
PAPER_SILENT = (0, 2, 5, 6, 8, 10)  # nodes whose trees hardly anybody uses, full topology
PAPER_NAMES = {"ring": "pairwise (ring)", "full": "fully connected"}


class PeerFigures(NamedTuple):
    """One method on the paper's split: BAcc, precision, recall, AP, CPU seconds, what a node sends."""

    name: str
    bacc: float
    precision: float
    recall: float
    ap: float
    cpu: float
    traffic: str


# Measured once on the same split and test set with flwr 1.41.0, xgboost-cpu 3.2.0 and scikit-learn 1.9.1,
# by a prototype outside this project; one thread of a shared machine.
PEERS = (
    PeerFigures(
        "Pooled random forest, 50 trees (not a federation)", 0.904, 0.993, 0.807, 0.902, 174, "all rows"
    ),
    PeerFigures("Pooled XGBoost, weight 585 (not a federation)", 0.942, 0.956, 0.883, 0.930, 13, "all rows"),
    PeerFigures(
        "Flower FedXgbBagging, 20 of 20 clients, 5 rounds", 0.903, 0.939, 0.807, 0.899, 1.4, "3.8 MB in all"
    ),
    PeerFigures(
        "Flower FedXgbBagging, quickstart, 50 rounds", 0.897, 0.950, 0.795, 0.903, 1.9, "4.8 MB in all"
    ),
    PeerFigures(
        "FedAvg logistic regression, weight 24, 10 rounds", 0.947, 0.823, 0.895, 0.835, 1.0, "240 B a round"
    ),
    PeerFigures("One mean of 20 local XGBoost models", 0.877, 0.935, 0.754, 0.896, 0.4, "10 kB once"),
    PeerFigures(
        "One exchange of all balanced trees, threshold 0.3", 0.901, 0.938, 0.801, 0.889, 4.4, "1.6 kB once"
    ),
)


class AttackedPeer(NamedTuple):
    """A peer's recall with one hostile client of twenty, clean and under its worst attack tried."""

    name: str
    clean: float
    attacked: float


ATTACKED_PEERS = (
    AttackedPeer("FedXgbBagging, 5 rounds, undefended", 0.807, 0.000),
    AttackedPeer("FedXgbBagging, 10 rounds, leaves bounded", 0.807, 0.754),
    AttackedPeer("FedAvg logistic regression, undefended", 0.895, 0.105),
    AttackedPeer("FedAvg logistic regression, median or trimmed mean", 0.895, 0.895),
)


class EarlierFigure(NamedTuple):
    """What an attack came to against the defence that counted nodes, before it counted organisations."""

    attack: str
    hostile: int
    nodes: int
    topology: str
    metric: str
    value: float


EARLIER_DEFENCE = (
    EarlierFigure("zero", 1, 20, "ring", "recall", 0.801),
    EarlierFigure("zero", 1, 20, "full", "recall", 0.820),
    EarlierFigure("shadow", 1, 20, "full", "recall", 0.817),
    EarlierFigure("zero", 3, 20, "ring", "recall", 0.726),
    EarlierFigure("zero", 3, 20, "full", "recall", 0.661),
    EarlierFigure("shadow", 3, 20, "full", "recall", 0.547),
    EarlierFigure("zero", 5, 20, "ring", "recall", 0.787),
    EarlierFigure("zero", 5, 20, "full", "recall", 0.000),
    EarlierFigure("one", 3, 20, "ring", "precision", 0.344),
    EarlierFigure("one", 3, 20, "full", "precision", 0.002),
    EarlierFigure("one", 5, 20, "ring", "precision", 0.792),
    EarlierFigure("one", 5, 20, "full", "precision", 0.002),
    EarlierFigure("eclipse", 2, 20, "ring", "recall", 0.000),
    EarlierFigure("one", 1, 4, "ring", "precision", 0.207),
    EarlierFigure("zero", 1, 4, "ring", "recall", 0.684),
)
