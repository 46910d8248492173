"""`executor experiment moving`: a federation that changes while it runs, and what it prints."""

import secrets
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from executor.errors import TaskError
from executor.exits import gravest, json_option, reported
from executor.experiment.options import docs_option
from executor.output import answer, note

if TYPE_CHECKING:
    from executor.experiment.moving_federation import MovingRun
    from experiments.moving_page import Moved

MOST_TOLD = 5
"""How many differences the error names; --json has them all."""


@click.command()
@click.option("--quick", is_flag=True, help="A node of each organisation: half a minute on two free cores.")
@docs_option
@json_option
@reported
def moving(*, quick: bool, docs: Path | None, as_json: bool) -> None:
    """Let nodes join, leave, return and die on the network of this host, and compare with the simulator.

    Made-up rows; three processes: one whose nodes do not wait, one that shares nodes with it, and one that
    starts from its model. Each is run again in memory, in the order in which things happened, and audited.
    """
    from executor.experiment.moving_federation import MovingFederation  # noqa: PLC0415 - slow
    from executor.network import Network  # noqa: PLC0415
    from experiments import moving_page  # noqa: PLC0415

    if quick and docs is not None:
        raise click.UsageError("--write-docs is for the whole run, without --quick")
    network, nodes = Network.load(), 4 if quick else 20
    run = MovingFederation(network, nodes, secrets.token_hex(4), note).play()
    moved = _moved(run, nodes, len(network.organisations))
    if docs is not None:
        moving_page.write(moved, docs)
    answer(_as_dict(run), lambda: moving_page.text(moved), as_json=as_json, indent=2)
    problems = [found for found in (differing(run), run.audit.problem) if found is not None]
    if problems:
        raise gravest(problems)


def differing(run: "MovingRun") -> TaskError | None:
    """Say which results are not the simulator's, if any is."""
    if run.equals_simulator:
        return None
    named = [f"{role}: {node} iteration {iteration}" for role, node, iteration in run.differences]
    counts = f"{len(named)} of {sum(run.results.values())} results differ from the simulator's"
    return TaskError("PAPER_DIFFERS", "; ".join([counts, *named[:MOST_TOLD]]))


def _moved(run: "MovingRun", nodes: int, organisations: int) -> "Moved":
    """Return the run as its page shows it."""
    from executor.experiment.moving_federation import SEED  # noqa: PLC0415
    from experiments.moving_page import Moved  # noqa: PLC0415

    return Moved(
        nodes=nodes,
        organisations=organisations,
        processes=run.processes,
        events=run.events,
        results=run.results,
        different=Counter(role for role, _, _ in run.differences),
        seed=SEED,
        begun_again=run.again,
        audited=run.audited,
        seconds=run.seconds,
    )


def _as_dict(run: "MovingRun") -> dict[str, object]:
    """Return the run as one object for programs."""
    return {
        "processes": run.processes,
        "events": run.events,
        "results": run.results,
        "begun_again": run.again,
        "differences": [list(place) for place in run.differences],
        "equals_simulator": run.equals_simulator,
        "audited": run.audited,
        "seconds": round(run.seconds, 3),
    }
