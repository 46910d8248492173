"""The paper's experiment as it ran through a ledger: its tables, what was compared, where the time went."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments import figures, pages, paper_page
from experiments.claims import Goal, claims_grid, goals_grid
from experiments.pages import Grid
from experiments.paper import PaperResult
from experiments.split import PAPER_NODES
from protocol.values import dataclass

PART = "paper-ledger"
TITLE = "The paper's experiment through the ledger"
BAR = 40
MOST_TIMES = 3
"""The goal: how many times the simulator's time the ledger may take."""
PARTS: dict[str, str] = {
    "agree": "proposing, accepting and starting the processes",
    "executor": "the executors' start and end",
    "reading": "asking the ledger and the engine, reading rows and trees",
    "commits": "transactions, until enough organisations have them",
    "container": "containers, as far as they are waited for: creating, comparing, starting, removing",
    "imports": "the learner's start, to its first question",
    "learning": "FIT, SHARE and GET",
    "waiting": "for neighbours, and for a place to work at",
    "done": "nodes that are done before the last one",
}
"""Where the time goes, in the mean of all nodes, which work side by side."""


@dataclass(frozen=True)
class OnLedger:
    """How a run on the ledger went, beside the same in memory."""

    nodes: int
    iterations: int
    tasks: int
    """How many this run did; one that was taken up again did fewer than there are."""
    compared: int
    different: int
    other_models: int
    """How many models have other trees or figures than the simulator's."""
    audited: bool
    seconds: float
    simulator_seconds: float
    separate_seconds: float
    parts: Mapping[str, float]

    @property
    def is_whole(self) -> bool:
        """Whether all tasks were done in this run: only then its time is that of the experiment."""
        return self.tasks >= self.compared

    @property
    def ratio(self) -> float | None:
        """How many times the simulator's time it took; None of a run that was taken up again."""
        return self.seconds / self.simulator_seconds if self.is_whole else None

    @property
    def separate_ratio(self) -> float | None:
        """The same for the time with every topology's trees trained for it, as the nodes do."""
        return self.seconds / self.separate_seconds if self.is_whole else None


def tables(result: PaperResult, run: OnLedger) -> list[Grid]:
    """Every table: the paper's beside what the chain has, then how the run went."""
    return [
        *([claims_grid(result.claims())] if run.nodes == PAPER_NODES else []),
        paper_page.extremes(result.paper),
        paper_page.typical(result.paper),
        paper_page.levels(result.paper),
        run_grid(run),
        *([goals_grid("Goals of the run", goals(run))] if run.ratio is not None else []),
        parts_grid(run),
    ]


def run_grid(run: OnLedger) -> Grid:
    """What was compared, and how long it took."""
    rows = [
        ("Nodes, iterations, topologies", f"{run.nodes}, {run.iterations}, 3"),
        ("Tasks, each in a container", str(run.tasks)),
        (
            "Ensembles on the chain equal to the simulator's",
            f"{run.compared - run.different} of {run.compared}",
        ),
        ("Audit since the first block", "verified" if run.audited else "FAILED"),
        ("On the ledger, agreement and tasks", f"{run.seconds:.1f} s"),
        ("In memory, every tree trained once", f"{run.simulator_seconds:.1f} s"),
        ("In memory, trained for each topology, as on the ledger", f"{run.separate_seconds:.1f} s"),
    ]
    if run.other_models:
        rows.append(("Models with other trees or figures than the simulator's", str(run.other_models)))
    if run.ratio is not None:
        rows += [
            ("Ratio to the first of these", f"{run.ratio:.2f}"),
            ("Ratio to the second", f"{run.separate_ratio:.2f}"),
        ]
    else:
        rows.append(("Ratio", f"none: of {run.compared} tasks this run did {run.tasks}"))
    return Grid("The run", ("", "Value"), rows)


def goals(run: OnLedger) -> list[Goal]:
    """What the ledger may take, held against what it took: a miss is said as one."""
    times = (
        ("On the ledger / in memory, every tree trained once", run.ratio),
        ("On the ledger / in memory, trained for each topology", run.separate_ratio),
    )
    return [
        Goal(text, f"at most {MOST_TIMES}", f"{ratio:.2f}", ratio <= MOST_TIMES)
        for text, ratio in times
        if ratio is not None
    ]


def parts_grid(run: OnLedger) -> Grid:
    """Where the time on the ledger went, as a bar of its parts."""
    total = sum(run.parts.values()) or 1.0
    rows = [
        (
            meaning,
            f"{run.parts.get(name, 0.0):.1f}",
            f"{run.parts.get(name, 0.0) / total:.0%}",
            _bar(run, name),
        )
        for name, meaning in PARTS.items()
    ]
    note = "Mean of all nodes, which work side by side on this host: the parts add up to the time of the run."
    return Grid("Where the time on the ledger went", ("Part", "Seconds", "Share", "Bar"), rows, note)


def _bar(run: OnLedger, name: str) -> str:
    """Return a part's place in the whole: the bars of all parts, read downwards, make up one."""
    total = sum(run.parts.values()) or 1.0
    ends, sofar = [], 0.0
    for part in PARTS:
        sofar += run.parts.get(part, 0.0)
        ends.append(round(BAR * sofar / total))
    place = list(PARTS).index(name)
    start = ends[place - 1] if place else 0
    return ("." * start + "#" * (ends[place] - start)).ljust(BAR, ".")


def ledger_text(result: PaperResult, run: OnLedger) -> str:
    """All tables one after the other, the claims as a list."""
    grids = tables(result, run)
    first = [grids.pop(0).listed()] if run.nodes == PAPER_NODES else []
    return "\n".join([*first, *(grid.text() for grid in grids)])


def write_ledger(
    result: PaperResult, run: OnLedger, out: Path | None = None, docs: Path | None = None
) -> None:
    """CSV, figures and a page into `out`; the page's part and its figures into `docs`."""
    for directory in (out, docs):
        if directory is not None:
            _draw(result, run, directory / pages.FIGURES)
    if out is not None:
        paper_page.write_tables(result, out)
        pages.write_csv(out / "parts.csv", ("part", "seconds"), list(run.parts.items()))
        (out / f"{PART}.md").write_text(_section(result, run), encoding="utf-8")
    if docs is not None:
        pages.write_part(docs, PART, _section(result, run))


def _section(result: PaperResult, run: OnLedger) -> str:
    captions: Sequence[tuple[str, str]] = (
        ("improvement", "Mean and median improvement over disconnected nodes, from the models on the chain"),
        ("parts", "Where the time on the ledger went, and the simulator's beside it"),
    )
    pictures = [pages.figure(f"{PART}-{name}", caption) for name, caption in captions]
    command = "executor experiment paper --ledger"
    return pages.section(TITLE, command, result.seeds, [*tables(result, run), *pictures])


def _draw(result: PaperResult, run: OnLedger, directory: Path) -> None:
    figures.improvement_bars(result.paper, directory / f"{PART}-improvement")
    shown = {name: run.parts.get(name, 0.0) for name in PARTS}
    figures.stacked_parts(shown, {"simulator": run.simulator_seconds}, directory / f"{PART}-parts")
