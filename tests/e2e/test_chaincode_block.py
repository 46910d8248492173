"""E9 on live peers: every node of the network opens, shares and completes, all at once each time."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from support.channel import Member, auditor1, gateway, register, scientist1, specification, unique
from support.federation import ORGANISATIONS
from support.gateway import Gateway
from support.player import EXECUTION, N_FEATURES, N_NEW, N_SHARE, Call, Player

pytestmark = pytest.mark.alone

VALID = 0


@dataclass(frozen=True)
class Direct(Member):
    """A member that reads through the Gateway, because twenty nodes by the CLI take minutes."""

    client: Gateway

    def evaluate(self, chaincode: str, *arguments: Any, transient: dict[str, bytes] | None = None) -> Any:
        texts = [part if isinstance(part, str) else json.dumps(part) for part in arguments]
        return json.loads(self.client.evaluate(chaincode, *texts, transient=transient))


def everybody() -> dict[str, str]:
    """The nodes the network was made with, by organisation; those enrolled later may have been revoked."""
    lines = (ORGANISATIONS.parent / "network.env").read_text().splitlines()
    count = int(dict(line.split("=", 1) for line in lines)["NODES"])
    wanted = {f"node{number:02d}" for number in range(1, count + 1)}
    found = sorted(ORGANISATIONS.glob("org*/users/node*"))
    return {path.name: path.parent.parent.name for path in found if path.name in wanted}


@pytest.fixture
def players(network: None) -> Iterator[list[Player]]:
    nodes = everybody()
    process, version = unique("process"), unique("1")
    register(version)
    made = specification(
        process, version, {node: f"Org{org.removeprefix('org')}MSP" for node, org in nodes.items()}
    )
    made["topology"] = {"kind": "full"}
    made["steps"][0]["parameters"] |= {"n_new": N_NEW, "n_share": N_SHARE, "n_max": 100}
    assert made["steps"][0]["parameters"]["limits"]["n_features"] == N_FEATURES
    scientist1.submit("orchestration", "Create", made)
    for org in sorted(set(nodes.values())):
        Member(org, "admin").submit("orchestration", "Accept", process)
    Member("org1", "admin").submit("orchestration", "Start", process)
    clients = [gateway(org, node) for node, org in nodes.items()]
    members = [Direct(org, node, client) for (node, org), client in zip(nodes.items(), clients, strict=True)]
    yield [Player(member, process) for member in members]
    for client in clients:
        client.close()


def in_one_go(players: list[Player], calls: list[Call]) -> list[tuple[int, int]]:
    """Endorse all calls first, then order them together; returns code and block of each."""
    with ThreadPoolExecutor(len(players)) as pool:
        endorsed = list(pool.map(_endorse, players, calls))
        list(pool.map(lambda player, made: player.member.client.order(*made), players, endorsed))
        waited = pool.map(lambda player, made: player.member.client.committed(made[0]), players, endorsed)
        return [(found.code, found.block) for found in waited]


def _endorse(player: Player, call: Call) -> tuple[str, Any]:
    (chaincode, *arguments), options = call
    texts = [part if isinstance(part, str) else json.dumps(part) for part in arguments]
    tx_id, envelope, _ = player.member.client.endorse(chaincode, *texts, **options)
    return tx_id, envelope


def test_e9_all_nodes_commit_together_without_a_conflict(players: list[Player]) -> None:
    steps = {
        "OpenTask": lambda player: (player.call_open(), {}),
        "Share": lambda player: player.call_share(),
        "Complete": lambda player: player.call_complete(n_max=100),
    }
    for name, call in steps.items():
        verdicts = in_one_go(players, [call(player) for player in players])
        assert [code for code, _ in verdicts] == [VALID] * len(players), name
        print(f"{name}: {len(players)} nodes in {len({block for _, block in verdicts})} blocks")  # noqa: T201
    status = auditor1.evaluate("orchestration", "Status", players[0].process)
    assert [node["completed"] for node in status["nodes"]] == [0] * len(players)
    artifacts = auditor1.evaluate(EXECUTION, "Artifacts", players[0].process, 0, 100)["items"]
    assert len(artifacts) == len(players)
