"""A federation that changed while it ran: what happened to its nodes, what was compared, what was audited."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from experiments import pages
from experiments.pages import Grid
from protocol.values import dataclass

PART = "moving"
TITLE = "A federation that changes while it runs"
COMMAND = "executor experiment moving"
ABOUT = """Made-up rows. `roaming`: nodes that do not wait for each other. `waiting`: a process of some of
them at the same time, whose nodes do wait, but for one of them no longer than until the deadline. `warm`: one
that starts from a model of the first. Each was run again in memory, in the order in which things happened on
the chain."""


@dataclass(frozen=True)
class Moved:
    """How such a run went, beside the same in memory."""

    nodes: int
    organisations: int
    processes: Mapping[str, str]
    """The id of each process, by its role."""
    events: Sequence[str]
    """Who joined, left, returned and died, and what else changed, in its order."""
    results: Mapping[str, int]
    """How many results each process has on the chain, by role."""
    different: Mapping[str, int]
    """How many of them are not the simulator's."""
    seed: int
    begun_again: int
    """How many tasks were begun more than once."""
    audited: bool
    seconds: float


def results_grid(run: Moved) -> Grid:
    """What each process came to."""
    rows = [
        (role, str(run.results[role]), f"{run.results[role] - run.different.get(role, 0)}")
        for role in run.processes
    ]
    return Grid("Results on the chain", ("Process", "Results", "Equal to the simulator's"), rows)


def run_grid(run: Moved) -> Grid:
    """The run as a whole."""
    rows = [
        ("Nodes, organisations", f"{run.nodes}, {run.organisations}"),
        ("Tasks that were begun more than once, each with one result", str(run.begun_again)),
        ("Audit of the whole channel, without a network", "verified" if run.audited else "FAILED"),
        ("From the image to the audit", f"{run.seconds:.0f} s"),
    ]
    return Grid("The run", ("", "Value"), rows)


def story(run: Moved) -> str:
    """What happened, one line each."""
    told = [_by_role(event, run.processes) for event in run.events]
    return "**What happened**\n\n" + "\n".join(f"{place}. {event}" for place, event in enumerate(told, 1))


def text(run: Moved) -> str:
    """All of it, for a terminal."""
    return "\n".join([story(run) + "\n", results_grid(run).text(), run_grid(run).text()])


def write(run: Moved, docs: Path) -> None:
    """Replace this experiment's part of the results page."""
    blocks: list[Grid | str] = [ABOUT, story(run), results_grid(run), run_grid(run)]
    pages.write_part(docs, PART, pages.section(TITLE, COMMAND, (run.seed,), blocks))


def _by_role(event: str, processes: Mapping[str, str]) -> str:
    """Name processes by their roles: their ids differ from run to run."""
    for role, process in processes.items():
        event = event.replace(process, f"`{role}`")
    return event
