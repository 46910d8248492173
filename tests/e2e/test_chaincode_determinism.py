"""Every function of the four chaincodes gives the same bytes on every organisation's peer.

A process lives through its whole life. Each step is one signed proposal that every peer runs; the four
answers are compared byte for byte (response, read-write set, event), and then committed as one transaction.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
from support.channel import (
    DIGESTS,
    IMAGE,
    REPOSITORY,
    Member,
    admin1,
    admin2,
    agreement,
    auditor1,
    scientist1,
    scientist2,
    specification,
    unique,
)
from support.endorsing import Answers, Endorsers
from support.federation import nodes
from support.player import EXECUTION, MODEL, N_MAX, N_NEW, N_SHARE, Player

from chaincode.registry import contract
from protocol.task.result import ensemble_digest

ORCHESTRATION = "orchestration"
CHAINCODES = ("image", ORCHESTRATION, EXECUTION, MODEL)
FUNCTIONS = [(name, function) for name in CHAINCODES for function in sorted(contract(name).functions)]
# Some functions are for another chaincode to call; what they do is part of Complete's and Start's answers.
NOT_FOR_CLIENTS = {(ORCHESTRATION, "Advance"), (EXECUTION, "BindInitial")}
# Peers refuse a proposal whose time is 15 minutes off, so a task that is to expire must be short.
TASK_SECONDS, AHEAD = 300, 600


class Life:
    """The steps of a process on the ledger, and all answers of all peers on the way."""

    def __init__(self, endorsers: Endorsers) -> None:
        self.endorsers = endorsers
        self.answers: dict[tuple[str, str], list[Answers]] = defaultdict(list)

    def ask(self, member: Member, chaincode: str, function: str, *arguments: Any, **options: Any) -> Answers:
        answers = self.endorsers.ask(member, chaincode, function, *arguments, **options)
        self.answers[chaincode, function].append(answers)
        return answers

    def submit(self, member: Member, *call: Any, **options: Any) -> None:
        """Compare, then commit: of peers that disagree there is no transaction to commit."""
        answers = self.ask(member, *call, **options)
        assert len(answers.distinct) == 1, f"the peers disagree about {call[:2]}"
        assert answers.status == 200, answers.first.response.message
        self.endorsers.commit(member, answers)


@pytest.fixture(scope="module")
def endorsers(network: None) -> Iterator[Endorsers]:
    with Endorsers() as made:
        yield made


@pytest.fixture(scope="module")
def life(endorsers: Endorsers) -> Life:
    made = Life(endorsers)
    versions = unique("1"), unique("2")
    live_images(made, versions)
    changing = live_proposal(made, versions[0], iterations=2)
    live_changes(made, changing, versions[1])
    live_coordination(made, versions[0])
    finished = live_proposal(made, versions[0], iterations=1)
    players = live_round(made, finished)
    live_model(made, players[0])
    for other in players[1:]:
        made.submit(scientist1, MODEL, "PublishFor", finished, other.node)
    made.submit(players[1].member, ORCHESTRATION, "Complete", finished)
    live_request(made, players[0])
    for member in (scientist1, scientist2):
        made.submit(member, ORCHESTRATION, "Abort", changing, "a test")
    read_everything(made, players[0], versions[0])
    made.submit(admin1, "image", "Retire", IMAGE, versions[1], "replaced")
    return made


def live_images(life: Life, versions: tuple[str, str]) -> None:
    for version in versions:
        record = (IMAGE, version, DIGESTS[1], DIGESTS[2], REPOSITORY, "ein Prüfstück")
        life.submit(scientist1, "image", "Register", *record)
    life.submit(auditor1, "image", "Attest", IMAGE, versions[0], DIGESTS[5])
    life.ask(auditor1, "image", "ListRebuilds", IMAGE, versions[0])
    life.ask(auditor1, "image", "RebuildHistory", IMAGE, versions[0], "Org1MSP")
    life.ask(auditor1, "image", "Get", IMAGE, versions[0])
    life.ask(auditor1, "image", "List", "Org1MSP", 5, "")
    life.ask(auditor1, "image", "History", IMAGE, versions[0])


def live_proposal(life: Life, version: str, iterations: int, **more: Any) -> str:
    process = unique("process")
    owners = {member.identity: f"Org{member.organisation[3:]}MSP" for member in nodes()}
    made = specification(process, version, owners, iterations=iterations)
    made |= {"task_seconds": TASK_SECONDS, **more}
    made["steps"][0]["parameters"] |= {"n_new": N_NEW, "n_share": N_SHARE, "n_max": N_MAX}
    life.submit(scientist2, ORCHESTRATION, "Create", made)
    for member in (admin1, scientist2):
        life.submit(member, ORCHESTRATION, "Accept", process)
    life.submit(admin2, ORCHESTRATION, "Start", process)
    return process


def live_coordination(life: Life, version: str) -> None:
    process = live_proposal(life, version, iterations=1, coordinator="Org1MSP")
    life.ask(scientist2, ORCHESTRATION, "ReplaceCoordinator", process, "Org2MSP")
    life.submit(scientist1, ORCHESTRATION, "OpenStep", process, "train")
    for member in (scientist1, scientist2):
        life.submit(member, ORCHESTRATION, "Abort", process, "a test")


def live_changes(life: Life, process: str, version: str) -> None:
    life.submit(scientist1, ORCHESTRATION, "ChangeTopology", process, 1, {"kind": "full"})
    life.submit(scientist2, *agreement(process))
    life.submit(scientist1, ORCHESTRATION, "UpdateImage", process, 1, version)
    life.submit(scientist2, *agreement(process))
    life.submit(admin1, ORCHESTRATION, "Join", process, "node99", "Org1MSP", 1)
    life.ask(auditor1, ORCHESTRATION, "Asks", process)
    life.submit(scientist1, ORCHESTRATION, "Withdraw", process, 2)
    silent = nodes()[-1].identity
    life.submit(scientist1, ORCHESTRATION, "LeaveOut", process, silent, "no sign of life")
    life.submit(scientist1, ORCHESTRATION, "LeaveOutOrganisation", process, "Org2MSP", "no sign of life")
    life.ask(auditor1, ORCHESTRATION, "Votes", process)
    life.ask(auditor1, ORCHESTRATION, "Changes", process)
    node = nodes()[0]
    life.submit(node, ORCHESTRATION, "Leave", process, node.identity, 1, "done here")


def live_round(life: Life, process: str) -> list[Player]:
    players = [Player(member, process) for member in nodes()]
    for player in players:
        place = (process, player.node, 0)
        life.submit(player.member, EXECUTION, "Refuse", *place, "IMAGE_MISMATCH", {"found": DIGESTS[9]})
        life.submit(player.member, *player.call_open())
        life.ask(player.member, EXECUTION, "Fail", *place, "OOM", "memory")
        life.ask(player.member, EXECUTION, "Expire", *place, ahead=AHEAD)
        life.ask(player.member, ORCHESTRATION, "Advance", *place)
    for function in ("call_share", "call_complete"):
        for player in players:
            call, options = getattr(player, function)()
            life.submit(player.member, *call, **options)
            life.ask(player.member, *call, **options)
    live_challenge(life, (process, players[0].node, 0))
    return players


def live_challenge(life: Life, task: tuple[str, str, int]) -> None:
    auditor2, auditor3 = Member("org2", "auditor"), Member("org3", "auditor")
    life.submit(auditor2, EXECUTION, "Challenge", *task, [], "too good")
    life.submit(admin1, EXECUTION, "AnswerChallenge", *task, "Org2MSP", "Org3MSP", DIGESTS[3])
    replayed = {"share": DIGESTS[1], "result": DIGESTS[2], "differing": []}
    life.submit(auditor3, EXECUTION, "JudgeChallenge", *task, "Org2MSP", replayed)


def live_model(life: Life, player: Player) -> None:
    call, options = player.call_publish()
    life.submit(player.member, *call, **options)
    live_start_from_model(life, player)
    life.submit(scientist1, MODEL, "Grant", player.process, player.node, "Org9MSP", "2099-01-01T00:00:00Z")
    life.submit(admin1, MODEL, "Revoke", player.process, player.node, "Org9MSP")


def live_request(life: Life, player: Player) -> None:
    """Another organisation asks to read the model, and its owner agrees."""
    model = (player.process, player.node)
    life.submit(Member("org3", "data-scientist"), MODEL, "Request", *model, "to compare")
    (asked,) = auditor1.evaluate(MODEL, "Requests", *model)["items"]
    life.submit(scientist1, MODEL, "Decide", *model, "Org3MSP", 0, asked["digest"], True)
    life.submit(scientist1, MODEL, "RequestRevocation", *model, "Org3MSP", "it is over")


def live_start_from_model(life: Life, player: Player) -> None:
    process, digest = unique("process"), str(ensemble_digest(list(player.ensemble.items())))
    owners = {member.identity: f"Org{member.organisation[3:]}MSP" for member in nodes()}
    model = {"process": player.process, "node": player.node, "digest": digest}
    context = auditor1.evaluate(ORCHESTRATION, "TaskContext", player.process, player.node, 0)
    made = specification(process, context["image"]["version"], owners) | {"initial_model": model}
    life.submit(scientist2, ORCHESTRATION, "Create", made)
    for member in (admin1, scientist2):
        life.submit(member, ORCHESTRATION, "Accept", process)
    life.submit(admin2, ORCHESTRATION, "Start", process)
    life.ask(auditor1, EXECUTION, "InitialModel", process)
    life.ask(admin1, EXECUTION, "BindInitial", process, model, ["Org1MSP"])


def read_everything(life: Life, player: Player, version: str) -> None:
    process, node, tree = player.process, player.node, f"{player.node}/0000"
    for call in (
        (ORCHESTRATION, "Get", process),
        (ORCHESTRATION, "List", "", 5, ""),
        (ORCHESTRATION, "Status", process),
        (ORCHESTRATION, "History", process),
        (ORCHESTRATION, "ProgressHistory", process, node),
        (ORCHESTRATION, "TaskContext", process, node, 0),
        (ORCHESTRATION, "ModelContext", process),
        (EXECUTION, "GetTask", process, node, 0),
        (EXECUTION, "FirstShare", process, node, 0),
        (EXECUTION, "ListTasks", process),
        (EXECUTION, "ImageUses", IMAGE, version),
        (EXECUTION, "ListRefusals", process),
        (EXECUTION, "Artifacts", process, 0),
        (EXECUTION, "ArtifactsOf", process, "Org1MSP"),
        (EXECUTION, "Slots", process, node),
        (EXECUTION, "Offers", process, node, 0),
        (EXECUTION, "Standing", process, node),
        (EXECUTION, "LastResult", process, node),
        (EXECUTION, "Estimator", process, tree),
        (EXECUTION, "Digests", process, [tree, f"{node}/0009"]),
        (EXECUTION, "Twins", process),
        (EXECUTION, "ListChallenges", process),
        (EXECUTION, "Estimators", process, [tree, f"{node}/0009"]),
        (EXECUTION, "Lineage", process, tree),
        (EXECUTION, "History", "task", [process, node, "0"]),
        (MODEL, "Get", process, node),
        (MODEL, "Trees", process, node),
        (MODEL, "Members", process, node),
        (MODEL, "List", process),
        (MODEL, "Access", process, node),
        (MODEL, "AccessHistory", process, node),
        (MODEL, "History", process, node),
        (MODEL, "Uses", process, tree),
        (MODEL, "Unpublished", process, [node]),
        (MODEL, "Catalogue", process),
        (MODEL, "Requests", process),
        (ORCHESTRATION, "AccessTerms", process),
        *((chaincode, "metadata") for chaincode in CHAINCODES),
    ):
        life.ask(auditor1, *call)


@pytest.mark.parametrize(("chaincode", "function"), FUNCTIONS, ids=map("-".join, FUNCTIONS))
def test_e12_every_peer_endorses_the_same_bytes(life: Life, chaincode: str, function: str) -> None:
    assert life.answers[chaincode, function], f"no step of the process calls {function} of {chaincode}"
    for answers in life.answers[chaincode, function]:
        assert list(answers.by_organisation) == life.endorsers.organisations
        assert len(answers.distinct) == 1, {
            name: answer.response for name, answer in answers.by_organisation.items()
        }
        refused = (chaincode, function) in NOT_FOR_CLIENTS
        assert (answers.status == 200) is not refused, answers.first.response.message


@pytest.mark.parametrize("chaincode", CHAINCODES)
def test_e12_functions_of_the_deployed_chaincode_are_those_compared(life: Life, chaincode: str) -> None:
    (answers,) = life.answers[chaincode, "metadata"]
    listed = [function["name"] for function in json.loads(answers.first.response.payload)["functions"]]
    assert [(chaincode, name) for name in listed] == [pair for pair in FUNCTIONS if pair[0] == chaincode]


def test_e12_progress_in_another_chaincode_is_part_of_the_comparison(life: Life) -> None:
    completed = life.answers[EXECUTION, "Complete"][0]
    assert {EXECUTION, ORCHESTRATION} <= set(completed.namespaces)


def test_e12_different_bytes_of_one_peer_are_seen(endorsers: Endorsers) -> None:
    client = endorsers._client(auditor1)
    (tx_id, one), (_, other) = (client.propose("image", ("metadata",)) for _ in range(2))
    last = endorsers.organisations[-1]
    mixed = endorsers.put(lambda name: other if name == last else one)
    assert len(Answers(tx_id, one, mixed).distinct) == 2
