"""Whose trees are in whose ensemble, iteration by iteration, from the chain alone.

For a process: the share of each node's and each organisation's trees in everybody's ensemble, as the results
that tasks signed name them. That is the paper's heat map of origins.
"""

import csv
import io
from collections import Counter
from dataclasses import dataclass, field

from executor.audit.replay.view import View, Written
from protocol.ledger.tasks import ResultRecord

Matrix = tuple[list[str], list[str], list[list[float]]]
"""Owners of ensembles, creators, and the share of each creator in each."""


COLUMNS = ("iteration", "node", "organisation", "creator", "creator_organisation", "trees", "share")


@dataclass(frozen=True)
class Contribution:
    """How many trees of a creator stood in a node's ensemble after an iteration."""

    iteration: int
    node: str
    organisation: str
    creator: str
    creator_organisation: str
    trees: int
    of: int

    @property
    def share(self) -> float:
        """Its part of the ensemble."""
        return self.trees / self.of if self.of else 0.0


@dataclass
class Contributions:
    """The origins of every ensemble of a process, gathered as the blocks are read."""

    process: str
    found: list[Contribution] = field(default_factory=list)

    def observe(self, view: View, item: Written) -> None:
        """Take note of a result of the process."""
        record = item.record
        if not isinstance(record, ResultRecord) or record.process != self.process:
            return
        owners = view.plan(record.process).nodes
        counted = Counter(member.id.creator for member in record.ensemble)
        for creator, trees in sorted(counted.items()):
            self.found.append(
                Contribution(
                    record.iteration,
                    record.node,
                    record.organisation,
                    creator,
                    owners.get(creator, ""),
                    trees,
                    len(record.ensemble),
                )
            )

    @property
    def last(self) -> int:
        """The last iteration that any node completed."""
        return max((row.iteration for row in self.found), default=0)

    def matrix(self, iteration: int, *, organisations: bool = False) -> Matrix:
        """Return owners of ensembles, creators, and the share of each creator in each, in one iteration."""
        rows = [row for row in self.found if row.iteration == iteration]
        held: Counter[tuple[str, str]] = Counter()
        whole: Counter[str] = Counter()
        for row in rows:
            owner = row.organisation if organisations else row.node
            creator = row.creator_organisation if organisations else row.creator
            held[owner, creator] += row.trees
            whole[owner] += row.trees
        owners, creators = sorted(whole), sorted({creator for _, creator in held})
        return owners, creators, [[held[o, c] / whole[o] for c in creators] for o in owners]

    def csv(self) -> str:
        """Return every figure as a table for other programs."""
        file = io.StringIO()
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        for row in sorted(self.found, key=lambda row: (row.iteration, row.node, row.creator)):
            writer.writerow(
                [row.iteration, row.node, row.organisation, row.creator, row.creator_organisation, row.trees,
                 f"{row.share:.4f}"]
            )  # fmt: skip
        return file.getvalue()


def draw(contributions: Contributions, path: str) -> None:
    """Draw the origins of the last iteration's ensembles as a heat map, in the format of the name."""
    # Slow to load, and only those who draw have it.
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    owners, creators, shares = contributions.matrix(contributions.last)
    figure = Figure(figsize=(2 + 0.4 * len(creators), 1.5 + 0.35 * len(owners)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    image = axes.imshow(shares, cmap="viridis", vmin=0, aspect="auto")
    axes.set_xticks(range(len(creators)), creators, rotation=90)
    axes.set_yticks(range(len(owners)), owners)
    axes.set_xlabel("created by")
    axes.set_ylabel("ensemble of")
    axes.set_title(f"{contributions.process}, after iteration {contributions.last}")
    figure.colorbar(image, label="share of the ensemble")
    # Without a date and random names in the file, the same chain gives the same bytes.
    metadata = {"Date": None} if path.endswith(".svg") else {"Software": None}
    with rc_context({"svg.hashsalt": "attestree"}):
        figure.savefig(path, metadata=metadata)
