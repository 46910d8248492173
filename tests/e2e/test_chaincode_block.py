"""E9 on live peers: every node of the network opens, shares and completes, all at once each time."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from support.channel import (
    Member,
    as_text,
    auditor1,
    client_of,
    committed_everywhere,
    register,
    scientist1,
    specification,
    unique,
)
from support.federation import nodes_of
from support.gateway import VALID
from support.player import EXECUTION, N_FEATURES, N_NEW, N_SHARE, Call, Player

from executor.network import Network

STEPS: dict[str, Callable[[Player], Call]] = {
    "OpenTask": lambda player: (player.call_open(), {}),
    "Share": lambda player: player.call_share(),
    "Complete": lambda player: player.call_complete(n_max=100),
}


@pytest.fixture
def players(network: None) -> list[Player]:
    """Every node of the network, in a process of all organisations that runs."""
    found = Network.load()
    members = [member for organisation in found.organisations for member in nodes_of(organisation)]
    process, version = unique("process"), unique("1")
    register(version)
    owners = {member.identity: found.msp_id(member.organisation) for member in members}
    made = specification(process, version, owners)
    made["topology"] = {"kind": "full"}
    made["steps"][0]["parameters"] |= {"n_new": N_NEW, "n_share": N_SHARE, "n_max": 100}
    assert made["steps"][0]["parameters"]["limits"]["n_features"] == N_FEATURES
    scientist1.propose(made)
    for organisation in found.organisations:
        Member(organisation, "admin").submit("orchestration", "Accept", process)
    Member("org1", "admin").submit("orchestration", "Start", process)
    return [Player(member, process) for member in members]


def in_one_go(players: list[Player], calls: list[Call]) -> list[tuple[int, int]]:
    """Endorse all calls first, then order them together; returns code and block of each."""
    with ThreadPoolExecutor(len(players)) as pool:
        endorsed = list(pool.map(_endorse, players, calls))
        list(pool.map(lambda player, made: client_of(player.member).order(*made), players, endorsed))
        waited = pool.map(lambda player, made: client_of(player.member).committed(made[0]), players, endorsed)
        verdicts = [(found.code, found.block) for found in waited]
        if {code for code, _ in verdicts} == {VALID}:
            list(pool.map(lambda made: committed_everywhere(made[0]), endorsed))
    return verdicts


def _endorse(player: Player, call: Call) -> tuple[str, Any]:
    (chaincode, *arguments), options = call
    tx_id, envelope, _ = client_of(player.member).endorse(chaincode, *as_text(tuple(arguments)), **options)
    return tx_id, envelope


def test_e9_all_nodes_commit_together_without_a_conflict(players: list[Player]) -> None:
    for name, call in STEPS.items():
        verdicts = in_one_go(players, [call(player) for player in players])
        assert [code for code, _ in verdicts] == [VALID] * len(players), name
        print(f"{name}: {len(players)} nodes in {len({block for _, block in verdicts})} blocks")  # noqa: T201
    status = auditor1.evaluate("orchestration", "Status", players[0].process)
    assert [node["completed"] for node in status["nodes"]] == [0] * len(players)
    artifacts = auditor1.evaluate(EXECUTION, "Artifacts", players[0].process, 0, 100)["items"]
    assert len(artifacts) == len(players)
