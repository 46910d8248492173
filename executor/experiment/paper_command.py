"""`executor experiment paper --ledger`: the experiment on the network of this host, and what it prints."""

from collections.abc import Mapping
from pathlib import Path

from executor.errors import TaskError
from executor.exits import gravest
from executor.experiment.paper_ledger import FULL, QUICK, LedgerRun, PaperOnLedger
from executor.network import Network
from executor.output import answer, note
from experiments.data import load_fraud, synthetic
from experiments.ledger_page import OnLedger, ledger_text, write_ledger
from experiments.metrics import all_gains
from experiments.split import PAPER_NODES

QUICK_ROWS = 4000
MOST_TOLD = 5
"""How many differences the error names; --json has them all."""


def run_on_ledger(
    data: Path | None, *, quick: bool, jobs: int, out: Path | None, docs: Path | None, as_json: bool
) -> None:
    """Run the experiment, print it, and fail unless the chain holds what the simulator computes."""
    table = synthetic(rows=QUICK_ROWS) if quick and data is None else load_fraud(data, note)
    run = PaperOnLedger(Network.load(), table, QUICK if quick else FULL, note).run(jobs)
    result, facts = run.result(), on_ledger(run)
    write_ledger(result, facts, out, docs)
    answer(as_dict(run), lambda: ledger_text(result, facts), as_json=as_json, indent=2)
    problems = [found for found in (differing(run), run.audit.problem) if found is not None]
    if problems:
        raise gravest(problems)


def differing(run: LedgerRun) -> TaskError | None:
    """Say what is not the simulator's, if anything is."""
    if run.equals_simulator:
        return None
    counts = f"{run.different} of {run.compared} ensembles and {len(run.other_models)} models differ"
    return TaskError("PAPER_DIFFERS", "; ".join([counts, *map(str, run.differences[:MOST_TOLD])]))


def on_ledger(run: LedgerRun) -> OnLedger:
    """Return how the run went, as its page shows it."""
    return OnLedger(
        nodes=len(run.split.nodes),
        iterations=run.iterations,
        tasks=run.tasks,
        compared=run.compared,
        different=run.different,
        other_models=len(run.other_models),
        audited=run.audited,
        seconds=run.ledger_seconds,
        simulator_seconds=run.seconds["simulator"],
        separate_seconds=run.separate_seconds,
        parts=run.parts,
    )


def as_dict(run: LedgerRun) -> dict[str, object]:
    """Return the run as one object for programs."""
    result = run.result()
    judged = result.claims() if len(run.split.nodes) == PAPER_NODES else []
    besides = ("image", "simulator", "read", "audit")
    return {
        "table_exact": result.split.is_papers(),
        "gains": all_gains(result.paper),
        "claims": [vars(claim) for claim in judged],
        "processes": run.processes,
        "tasks": run.tasks,
        "compared": run.compared,
        "differences": [vars(difference) for difference in run.differences],
        "equals_simulator": run.equals_simulator,
        "audited": run.audited,
        "seconds": round(run.ledger_seconds, 3),
        "simulator_seconds": round(run.seconds["simulator"], 3),
        "separate_seconds": round(run.separate_seconds, 3),
        "parts": _rounded(run.parts),
        "topology_parts": {name: _rounded(parts) for name, parts in run.topology_parts.items()},
        "besides": {name: round(run.seconds[name], 3) for name in besides},
    }


def _rounded(parts: Mapping[str, float]) -> dict[str, float]:
    return {name: round(seconds, 3) for name, seconds in parts.items()}
