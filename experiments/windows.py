"""Transactions over nodes and time: a node per address, a window of time per iteration, the last one to test.

Nothing is shuffled: what a node learns from lies before what it is tested on, and in each iteration it has
the rows of that window, alone or with those before it, so the world changes under the federation as it does
outside.
"""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256

import numpy as np

from experiments.data import Labels
from experiments.errors import SourceError
from experiments.kept import rows_digest
from experiments.split import node_name
from experiments.transactions import Transactions, Values, Whole
from learning.rows import Rows
from protocol.values import dataclass

NODES, WINDOWS = 20, 5
DAY = 86_400


@dataclass(frozen=True)
class AlertTest:
    """The rows that measure: all nodes' last window, with the day and the worth of each."""

    X: Values
    y: Labels
    day: Whole
    amount: Values


@dataclass(frozen=True)
class WindowedSplit:
    """What every node trains on, window by window, and the joint test set that only measures."""

    nodes: dict[str, tuple[Rows, ...]]
    test: AlertTest

    @property
    def iterations(self) -> int:
        """As many as there are windows to train on."""
        return len(next(iter(self.nodes.values())))

    def digest(self) -> str:
        """A digest of all rows."""
        test = rows_digest(self.test.X, self.test.y, self.test.day, self.test.amount)
        parts = (rows.digest.hex() for windows in self.nodes.values() for rows in windows)
        return sha256(" ".join([test, *parts]).encode()).hexdigest()[:16]

    def sizes(self) -> dict[str, list[tuple[int, int]]]:
        """Rows and frauds per node and window."""
        return {
            name: [(len(rows), int(rows.y.sum())) for rows in windows] for name, windows in self.nodes.items()
        }

    def past(self) -> "WindowedSplit":
        """The same with the rows of all windows so far in each iteration."""
        nodes = {
            name: tuple(_joined(windows[: last + 1]) for last in range(len(windows)))
            for name, windows in self.nodes.items()
        }
        return replace(self, nodes=nodes)

    def pooled(self) -> tuple[Rows, ...]:
        """Everybody's rows of each window, which no member of a federation ever has."""
        by_window = zip(*self.nodes.values(), strict=True)
        return tuple(_joined(parts) for parts in by_window)


def windowed(
    table: Transactions, nodes: int = NODES, windows: int = WINDOWS, *, last: int | None = None
) -> WindowedSplit:
    """Give the largest addresses a node each and cut the time into equal windows.

    The last window tests, or the one that is called the last, as if those after it had not happened yet.
    """
    tests = windows - 1 if last is None else last - 1
    found, counts = np.unique(table.address[~np.isnan(table.address)], return_counts=True)
    largest = found[np.argsort(-counts, kind="stable")[:nodes]]
    if len(largest) < nodes:
        raise SourceError("DATA_TOO_SMALL", f"{len(largest)} addresses for {nodes} nodes", case="node")
    first, last = int(table.seconds.min()), int(table.seconds.max())
    window = (table.seconds - first) * windows // (last - first + 1)
    members = {}
    for place, address in enumerate(largest):
        own = table.address == address
        parts = [own & (window == number) for number in range(tests)]
        if not all(part.any() for part in parts):
            raise SourceError(
                "DATA_TOO_SMALL", f"{node_name(place, nodes)} has a window without a row", case="node"
            )
        members[node_name(place, nodes)] = tuple(Rows.of(table.X[part], table.y[part]) for part in parts)
    tested = table.only(np.isin(table.address, largest) & (window == tests))
    if not tested.y.any():
        raise SourceError("DATA_TOO_SMALL", f"no fraud in window {tests + 1}", case="test")
    return WindowedSplit(members, AlertTest(tested.X, tested.y, tested.seconds // DAY, tested.amount))


def _joined(parts: Sequence[Rows]) -> Rows:
    if len(parts) == 1:
        return parts[0]
    return Rows.of(np.concatenate([rows.X for rows in parts]), np.concatenate([rows.y for rows in parts]))
