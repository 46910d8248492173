"""The end of the life of confidential trees: no peer gives them out, and what names them stays."""

import os
from pathlib import Path
from typing import Any

import pytest
from support.channel import Member, register, unique
from support.coalition import chosen
from support.federation import node_of
from support.gateway import VALID, GatewayError
from support.launching import height, launch, ledger, running
from support.network import until
from support.player import EXECUTION, N_FEATURES, N_SHARE, Player, fitted

from executor.experiment.files import write_files
from experiments.data import synthetic
from protocol.task.opening import TaskId

MEMBERS = ("org1", "org2", "org3")
LIFE = int(os.environ.get("ATTESTREE_CONFIDENTIAL_BLOCKS", "1000").split()[0])


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of as many features as the players' trees have."""
    folder = tmp_path_factory.mktemp("rows") / "split"
    write_files(synthetic(rows=200, features=N_FEATURES, anomalous=0.1), ["node01"], 1, folder)
    return folder / "{node}.csv"


@pytest.fixture(scope="module")
def sharers(learner: str, rows: Path) -> list[Player]:
    """Two of three nodes have shared in a process whose trees live shortly, and the trees' time is over."""
    found = [node for node in map(node_of, MEMBERS) if node is not None]
    nodes = {node.identity: node.organisation for node in found}
    process = running(learner, rows, nodes, confidential=True, confidential_blocks=LIFE)
    first = height()
    made = [Player(node, process) for node in found[1:]]
    for player in made:
        assert chosen(player.member, (player.call_open(), {})) == VALID
        assert chosen(player.member, player.call_share()) == VALID

    def gone() -> bool:
        register(unique("block"))
        return all(is_gone(player, name) for player in made for name in MEMBERS)

    until(240, "the trees are gone from the peers of all members", gone)
    assert height() > first + LIFE
    return made


def is_gone(player: Player, organisation: str) -> bool:
    """Whether an organisation's own peer no longer has a tree; what it does have is as it was shared."""
    try:
        answer = Member(organisation, "auditor").evaluate(EXECUTION, "Estimator", *first_of(player))
    except GatewayError as refusal:
        if refusal.code != "TREES_GONE":
            raise
        return True
    assert answer["digest"] == str(fitted(player.node)[0].tree.digest)
    return False


def first_of(player: Player) -> tuple[str, str]:
    return player.process, f"{player.node}/0000"


def test_digests_signatures_and_lineage_outlive_the_trees(sharers: list[Player]) -> None:
    for player in sharers:
        wanted = {str(made.id): str(made.tree.digest) for made in fitted(player.node)[:N_SHARE]}
        for organisation in (*MEMBERS, "org4"):
            auditor = Member(organisation, "auditor")
            kept = auditor.evaluate(EXECUTION, "Digests", player.process, list(wanted))
            assert {found["id"]: found["digest"] for found in kept["estimators"]} == wanted
            lineage = auditor.evaluate(EXECUTION, "Lineage", *first_of(player))
            assert lineage["offers"][0]["sender"] == player.node
        task = ledger().execution.get_task(TaskId(player.process, player.node, 0))
        assert task.share is not None
        assert task.share.signature


def test_a_launch_that_needs_the_trees_says_that_they_are_gone(sharers: list[Player], rows: Path) -> None:
    process, waiting = sharers[0].process, node_of("org1")
    assert waiting is not None
    ran = launch(process, "--node", waiting.identity, "--data", str(rows).format(node="node01"))
    assert ran.code == 13, ran.out + ran.err
    error: Any = ran.answer["nodes"][0]["error"]
    assert error["code"] == "TREES_GONE"
    assert "is offered and no longer kept by the peers" in error["cause"]
    assert "confidential_blocks" in error["remedy"]
    closed = ledger().execution.get_task(TaskId(process, waiting.identity, 0)).closed
    assert closed is not None
    assert closed.code == "TREES_GONE"
