"""What of the paper's experiment on the ledger is compared with the simulator, and how a miss is reported."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from executor.audit.errors import AuditError
from executor.experiment import moving_command, paper_command
from executor.experiment.local_federation import Audit
from executor.experiment.moving_federation import MovingRun
from executor.experiment.paper_ledger import (
    Deviation,
    LedgerRun,
    PaperOnLedger,
    ensembles_apart,
    figures_apart,
    models_apart,
)
from experiments.metrics import METRICS, RunOutcome
from learning.ensemble import Ensemble
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree

ONE, OTHER = Digest.of(b"one"), Digest.of(b"other")
NO_SPLIT = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.5])


def ensemble(*counters: int) -> Ensemble:
    return Ensemble(tuple(Estimator(EstimatorId("node01", counter), NO_SPLIT) for counter in counters))


def outcome(**changes: Any) -> RunOutcome:
    figures = np.full((2, len(METRICS)), 0.5)
    nothing = np.zeros((0, 0))
    fields = {"test": figures, "train": figures.copy(), **changes}
    return RunOutcome(
        seed=0, scores=nothing, thresholds=np.zeros(2), origins=nothing.astype(np.int64), **fields
    )


def test_results_of_either_side_alone_are_differences() -> None:
    here = {("node01", 0): ONE, ("node01", 1): ONE, ("node02", 0): ONE}
    there = {("node01", 0): ONE, ("node01", 1): OTHER, ("node09", 0): ONE}
    assert list(ensembles_apart("ring", here, there)) == [
        Deviation("ring", "node01", 1, f"the ensemble is {OTHER}, in memory {ONE}"),
        Deviation("ring", "node02", 0, "the chain has no result"),
        Deviation("ring", "node09", 0, "the simulator has no result"),
    ]
    assert list(ensembles_apart("ring", here, dict(here))) == []


def test_a_model_with_other_trees_is_a_difference() -> None:
    here = {"node01": ensemble(0, 1), "node02": ensemble(2)}
    (found,) = models_apart("full", here, here | {"node02": ensemble(3)})
    assert (found.node, found.iteration) == ("node02", None)
    assert str(found).startswith("full: node02 model: the model is sha256:")


@pytest.mark.parametrize("part", ["test", "train"])
def test_a_figure_that_is_not_the_same_number_is_a_difference(part: str) -> None:
    other = np.full((2, len(METRICS)), 0.5)
    other[1, METRICS.index("recall")] = np.nextafter(0.5, 1.0)
    nodes = ["node01", "node02"]
    (found,) = figures_apart("ring", nodes, outcome(), outcome(**{part: other}))
    assert (found.node, found.iteration) == ("node02", None)
    assert found.what == f"Recall on {part} rows is 0.5000000000000001, in memory 0.5"
    assert list(figures_apart("ring", nodes, outcome(), outcome())) == []


def run(differences: list[Deviation], audit: Audit) -> Any:
    class Found(LedgerRun):
        def result(self) -> Any:
            return "the tables"

    found = Found(split=None, iterations=4)  # type: ignore[arg-type]
    found.differences, found.audit, found.compared = differences, audit, 240
    return found


FAILED = Audit(False, AuditError("AUDIT_FAILED", "1 things: results: x was overwritten"))
APART = [
    Deviation("ring", "node03", 2, "the chain has no result"),
    Deviation("full", "node01", None, "recall"),
]


@pytest.mark.parametrize(
    ("differences", "audit", "code", "said"),
    [
        (
            APART,
            Audit(True),
            "PAPER_DIFFERS",
            "1 of 240 ensembles and 1 models differ; ring: node03 iteration 2",
        ),
        ([], FAILED, "AUDIT_FAILED", "x was overwritten"),
        (APART, FAILED, "AUDIT_FAILED", "x was overwritten"),
    ],
)
def test_tables_are_written_before_a_run_that_differs_or_fails_its_audit_ends(  # noqa: PLR0917
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    differences: list[Deviation],
    audit: Audit,
    code: str,
    said: str,
) -> None:
    made, written = run(differences, audit), []
    monkeypatch.setattr(PaperOnLedger, "__init__", lambda *_: None)
    monkeypatch.setattr(PaperOnLedger, "run", lambda *_: made)
    monkeypatch.setattr(paper_command.Network, "load", lambda: None)
    monkeypatch.setattr(paper_command, "on_ledger", lambda run: run.different)
    monkeypatch.setattr(paper_command, "as_dict", lambda run: {"audited": run.audited})
    monkeypatch.setattr(paper_command, "write_ledger", lambda *given: written.append(given))
    with pytest.raises(AttestreeError, match=code) as caught:
        paper_command.run_on_ledger(None, quick=True, jobs=1, out=tmp_path, docs=None, as_json=True)
    assert said in caught.value.cause
    assert written == [("the tables", made.different, tmp_path, None)]
    assert json.loads(capsys.readouterr().out) == {"audited": audit.verified}


def test_a_moving_run_that_differs_says_where() -> None:
    found = moving_command.differing(MovingRun(results={"warm": 2}, differences=[("warm", "node01", 0)]))
    assert found is not None
    assert found.code == "PAPER_DIFFERS"
    assert found.cause == "1 of 2 results differ from the simulator's; warm: node01 iteration 0"
    assert moving_command.differing(MovingRun(results={"warm": 2})) is None
