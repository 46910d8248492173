"""The paper's experiment runs on the real data from the command line, and rebuilds the paper's table."""

import json

import pytest
from support.network import done
from support.printed import EXECUTOR

FIGURES = {"mean", "median", "min", "min_node", "max", "max_node"}


@pytest.mark.timeout(900)
def test_quick_paper_experiment_prints_one_object() -> None:
    report = json.loads(done(EXECUTOR, "experiment", "paper", "--quick", "--json", seconds=900))
    assert report["table_exact"] is True
    assert report["seeds"]
    assert report["versions"]
    for topology in ("ring", "full"):
        for rows in ("test", "train"):
            for metric in ("bacc", "precision", "recall"):
                assert set(report["gains"][topology][rows][metric]) >= FIGURES
        test = report["gains"][topology]["test"]
        assert test["bacc"]["max_node"] == 2
        assert test["bacc"]["max"] >= 0.28
        assert report["gains"][topology]["train"]["bacc"]["mean"] < 0
