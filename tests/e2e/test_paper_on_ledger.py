"""The paper's experiment through the ledger: containers, chain and simulator come to the same bytes."""

import json

import pytest
from support.network import done
from support.printed import EXECUTOR


@pytest.mark.large
@pytest.mark.timeout(3600)
def test_twenty_nodes_on_the_ledger_equal_the_simulator_and_the_papers_claims_are_judged() -> None:
    report = json.loads(done(EXECUTOR, "experiment", "paper", "--ledger", "--json", seconds=3600))
    assert report["equals_simulator"] is True
    assert report["compared"] == 240
    assert report["table_exact"] is True
    assert report["claims"]


@pytest.mark.timeout(900)
def test_small_instance_on_the_ledger_equals_the_simulator_and_is_audited() -> None:
    words = ("experiment", "paper", "--ledger", "--quick", "--json")
    report = json.loads(done(EXECUTOR, *words, seconds=900))
    assert report["equals_simulator"] is True
    # Three topologies, four nodes, two iterations; a network that is kept from run to run has them already.
    assert report["compared"] == 24
    assert report["tasks"] in {24, 0}
    assert report["audited"] is True
    assert set(report["processes"]) == {"disconnected", "ring", "full"}
    if report["tasks"]:
        assert {"agree", "executor", "commits", "container", "imports", "learning"} <= set(report["parts"])
        assert set(report["topology_parts"]) == set(report["processes"])
        for parts in report["topology_parts"].values():
            assert sum(parts.values()) + report["parts"]["agree"] == pytest.approx(
                report["seconds"], rel=0.02
            )
    assert sum(report["parts"].values()) == pytest.approx(report["seconds"], rel=0.02)
    assert report["seconds"] > 0 < report["simulator_seconds"]

    # Run again, it finds everything done.
    again = json.loads(done(EXECUTOR, *words, seconds=900))
    assert again["processes"] == report["processes"]
    assert again["tasks"] == 0
    assert again["gains"] == report["gains"]
