"""`executor experiment paper --ledger`: the experiment on the network of this host, and what it prints."""

from pathlib import Path

from executor.errors import TaskError
from executor.experiment.paper_ledger import FULL, QUICK, LedgerRun, PaperOnLedger
from executor.network import Network
from executor.output import answer, note
from experiments import paper_page
from experiments.claims import Claim, claims_grid
from experiments.data import load_fraud, synthetic
from experiments.metrics import all_gains
from experiments.paper import PaperResult
from experiments.split import PAPER_NODES

QUICK_ROWS = 4000


def run_on_ledger(data: Path | None, *, quick: bool, jobs: int, as_json: bool) -> None:
    """Run the experiment, print it, and fail unless the chain holds what the simulator computes."""
    table = synthetic(rows=QUICK_ROWS) if quick and data is None else load_fraud(data, note)
    run = PaperOnLedger(Network.load(), table, QUICK if quick else FULL, note).run(jobs)
    answer(as_dict(run), lambda: as_text(run), as_json=as_json, indent=2)
    if not (run.equals_simulator and run.audited):
        raise TaskError("PAPER_DIFFERS", f"{len(run.differences)} of {run.compared} ensembles differ")


def as_dict(run: LedgerRun) -> dict[str, object]:
    """Return the run as one object for programs."""
    result = run.result()
    parts = {name: round(seconds, 3) for name, seconds in run.seconds.items()}
    return {
        "table_exact": result.split.is_papers(),
        "gains": all_gains(result.paper),
        "claims": [vars(claim) for claim in claims(result)],
        "processes": run.processes,
        "tasks": len(run.tasks),
        "compared": run.compared,
        "differences": [vars(difference) for difference in run.differences],
        "equals_simulator": run.equals_simulator,
        "audited": run.audited,
        "seconds": round(run.ledger_seconds, 3),
        "simulator_seconds": parts["simulator"],
        "parts": parts,
    }


def claims(result: PaperResult) -> list[Claim]:
    """Return the paper's claims, judged; they are about its twenty nodes."""
    return result.claims() if len(result.split.nodes) == PAPER_NODES else []


def as_text(run: LedgerRun) -> str:
    """Return the paper's tables from the chain, what was compared, and where the time went."""
    result = run.result()
    tables = (
        paper_page.extremes(result.paper),
        paper_page.typical(result.paper),
        paper_page.levels(result.paper),
    )
    same = "the same" if run.equals_simulator else f"NOT the same ({len(run.differences)} differ)"
    judged = claims(result)
    lines = [
        *([claims_grid(judged).listed()] if judged else []),
        *(grid.text() for grid in tables),
        f"{run.compared} ensembles on the chain and in memory: {same}",
        f"audit since the first block: {'verified' if run.audited else 'FAILED'}",
        f"{run.ledger_seconds:.0f} s on the ledger, {run.seconds['simulator']:.0f} s in memory",
        *(f"  {part:10}{seconds:8.1f} s" for part, seconds in run.seconds.items()),
    ]
    return "\n".join(lines)
