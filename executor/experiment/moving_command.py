"""`executor experiment moving`: a federation that changes while it runs, and what it prints."""

import secrets

import click

from executor.errors import TaskError
from executor.exits import json_option, reported
from executor.output import answer, note


@click.command()
@click.option("--quick", is_flag=True, help="A node of each organisation: half a minute on two free cores.")
@json_option
@reported
def moving(*, quick: bool, as_json: bool) -> None:
    """Let nodes join, leave, return and die on the network of this host, and compare with the simulator.

    Made-up rows; three processes: one whose nodes do not wait, one that shares nodes with it, and one that
    starts from its model. Each is run again in memory, in the order in which things happened, and audited.
    """
    from executor.experiment.moving_federation import MovingFederation, MovingRun  # noqa: PLC0415 - slow
    from executor.network import Network  # noqa: PLC0415
    from experiments.pages import Grid  # noqa: PLC0415

    def shown(run: MovingRun) -> dict[str, object]:
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

    def text(run: MovingRun) -> str:
        rows = [
            (
                process,
                str(run.results[role]),
                "yes" if all(place[0] != role for place in run.differences) else "NO",
            )
            for role, process in run.processes.items()
        ]
        columns = ("Process", "Results", "Equal to the simulator's")
        table = Grid("A federation that changes while it runs", columns, rows).text()
        again = f"{run.again} tasks were begun more than once, and each has one result; {run.seconds:.0f} s"
        audit = f"audit since the first block: {'verified' if run.audited else 'FAILED'}"
        return "\n".join([*(f"- {event}" for event in run.events), "", table, audit, again])

    nodes = 4 if quick else 20
    run = MovingFederation(Network.load(), nodes, secrets.token_hex(4), note).play()
    answer(shown(run), lambda: text(run), as_json=as_json, indent=2)
    if not (run.equals_simulator and run.audited):
        raise TaskError("PAPER_DIFFERS", f"{len(run.differences)} results differ from the simulator's")
