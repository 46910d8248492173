"""The orchestration chaincode on live peers: a process from proposal to its end, once by the peer CLI."""

import base64
import os
from contextlib import closing

import pytest
from fabric_protos.peer import chaincode_pb2 as chaincode
from fabric_protos.peer import proposal_pb2 as proposals
from support.channel import (
    DIGESTS,
    Member,
    admin1,
    admin2,
    agreement,
    auditor1,
    auditor2,
    gateway,
    register,
    scientist1,
    scientist2,
    specification,
    unique,
)
from support.federation import nodes_of
from support.gateway import Gateway, GatewayError

from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.processes import TaskContext
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId, statement
from protocol.task.possession import prove_possession
from protocol.task.result import TaskResult, ensemble_digest
from protocol.task.statement import Action, sign_statement
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree

HERE = "orchestration"


@pytest.fixture(scope="module")
def nodes(network: None) -> dict[str, str]:
    return {nodes_of("org1")[0].identity: "Org1MSP", nodes_of("org2")[0].identity: "Org2MSP"}


@pytest.fixture(scope="module")
def version(network: None) -> str:
    made = unique("1")
    register(made)
    return made


def started(version: str, nodes: dict[str, str]) -> str:
    """Propose a process, have both organisations accept it, and start it."""
    made = unique("process")
    scientist1.propose(specification(made, version, nodes))
    digest = auditor2.evaluate(HERE, "Get", made)["specification_digest"]
    admin1.submit(HERE, "Accept", made, digest)
    scientist2.submit(HERE, "Accept", made, digest)
    admin2.submit(HERE, "Start", made)
    return made


@pytest.fixture(scope="module")
def process(version: str, nodes: dict[str, str]) -> str:
    """A running process that no test changes."""
    return started(version, nodes)


@pytest.fixture
def changing(version: str, nodes: dict[str, str]) -> str:
    """A running process for one test, which may change it."""
    return started(version, nodes)


def test_process_starts_when_all_have_accepted_what_was_proposed(version: str, nodes: dict[str, str]) -> None:
    made = unique("process")
    scientist1.propose(specification(made, version, nodes))
    digest = auditor2.evaluate(HERE, "Get", made)["specification_digest"]
    assert admin1.code(HERE, "Start", made) == "PROCESS_UNACCEPTED"
    admin1.submit(HERE, "Accept", made, digest)
    assert scientist2.code(HERE, "Accept", made, DIGESTS[0]) == "PROCESS_DIGEST"
    assert admin1.code(HERE, "Start", made) == "PROCESS_UNACCEPTED"
    scientist2.submit(HERE, "Accept", made, digest)
    admin2.submit(HERE, "Start", made)
    assert auditor2.evaluate(HERE, "Status", made)["status"] == "running"


def test_running_process_shows_its_status_history_and_contexts(process: str, nodes: dict[str, str]) -> None:
    status = auditor2.evaluate(HERE, "Status", process)
    assert (status["status"], status["iteration"], status["missing"]) == ("running", 0, [])
    assert [(node["node"], node["next"]) for node in status["nodes"]] == [(name, 0) for name in sorted(nodes)]
    history = auditor1.evaluate(HERE, "History", process, 10, "")
    assert [item["value"]["status"] for item in history["items"]] == [
        "running",
        "proposed",
    ]
    first, second = sorted(nodes)
    context = auditor1.evaluate(HERE, "TaskContext", process, first, 0)
    assert (context["neighbours"], context["image"]["image_id"]) == ([second], DIGESTS[2])
    assert auditor1.evaluate(HERE, "ModelContext", process)["nodes"] == nodes
    listed, bookmark = [], None
    while bookmark != "":
        page = auditor1.evaluate(HERE, "List", "running", 50, bookmark or "")
        listed += [item["process"] for item in page["items"]]
        bookmark = page["bookmark"]
    assert process in listed


def test_c10_specifications_that_cannot_run_are_refused(version: str, nodes: dict[str, str]) -> None:
    name = unique("process")
    good = specification(name, version, nodes)
    assert scientist1.code(HERE, "Create", good | {"organisations": []}) == "PROCESS_CONSORTIUM"
    assert (
        scientist1.code(HERE, "Create", good | {"organisations": ["Org1MSP", "Org2MSP"] * 2})
        == "PROCESS_CONSORTIUM"
    )
    assert scientist1.code(HERE, "Create", good | {"nodes": {}}) == "PROCESS_NODES"
    assert (
        scientist1.code(HERE, "Create", specification(name, version, nodes, iterations=0)) == "PROCESS_VALUE"
    )
    assert scientist1.code(HERE, "Create", specification(name, unique("9"), nodes)) == "IMAGE_UNKNOWN"
    assert scientist1.code(HERE, "Create", "not json") == "BAD_ARGUMENT"


@pytest.mark.parametrize("pinned", ["image_id", "manifest_digest"])
def test_t9_a_specification_that_pins_other_bytes_than_are_registered_is_refused(
    version: str, nodes: dict[str, str], pinned: str
) -> None:
    """A name and a version are nobody's word for what runs: the digests are."""
    made = specification(unique("process"), version, nodes)
    made["steps"][0]["image"][pinned] = DIGESTS[9]
    assert scientist1.code(HERE, "Create", made) == "IMAGE_PIN"
    del made["steps"][0]["image"]["image_id"], made["steps"][0]["image"]["manifest_digest"]
    assert scientist1.code(HERE, "Create", made) == "IMAGE_PIN"


def test_process_id_is_unique(process: str, version: str, nodes: dict[str, str]) -> None:
    assert scientist2.code(HERE, "Create", specification(process, version, nodes)) == "PROCESS_EXISTS"


def test_c1_organisation_outside_the_consortium_is_denied(version: str, nodes: dict[str, str]) -> None:
    name = unique("process")
    own = {node: organisation for node, organisation in nodes.items() if organisation == "Org1MSP"}
    assert scientist2.code(HERE, "Create", specification(name, version, own)) == "ACCESS_ORGANISATION"
    scientist1.propose(specification(name, version, own))
    assert admin2.code(HERE, "Accept", name) == "ACCESS_ORGANISATION"
    assert admin2.code(HERE, "Abort", name, "not mine") == "ACCESS_ORGANISATION"
    assert auditor1.code(HERE, "Accept", name) == "ACCESS_ROLE"
    admin1.submit(HERE, "Abort", name, "a test")
    assert auditor2.evaluate(HERE, "Get", name)["ended"]["reason"] == "a test"


def test_c2_progress_is_written_by_execution_record_alone(process: str, nodes: dict[str, str]) -> None:
    node = min(nodes)
    member = Member("org1", node)
    assert member.code(HERE, "Advance", process, node, 0) == "ACCESS_CHAINCODE"
    assert member.code("probe", "relay", HERE, ["Advance", process, node, "0"]) == "ACCESS_CHAINCODE"
    assert admin1.code(HERE, "Complete", process) == "PROCESS_UNFINISHED"


@pytest.mark.parametrize(
    ("addressed", "named", "code"),
    [
        ("orchestration", "execution-record", "ACCESS_CHAINCODE"),
        ("execution-record", "orchestration", "UNKNOWN_FUNCTION"),
    ],
)
def test_c2_proposal_that_names_two_chaincodes_runs_the_addressed_one(
    process: str, nodes: dict[str, str], addressed: str, named: str, code: str
) -> None:
    node = min(nodes)
    with closing(gateway("org1", node, Liar)) as liar:
        liar.named = named
        with pytest.raises(GatewayError) as refusal:
            liar.evaluate(addressed, "Advance", process, node, 0)
    assert refusal.value.code == code


class Liar(Gateway):
    """A client whose proposal addresses one chaincode in its header and names another in its payload."""

    named = ""

    def _proposal(self, name, arguments, transient):
        tx_id, signed = super()._proposal(name, arguments, transient)
        made = proposals.Proposal.FromString(signed.proposal_bytes)
        payload = proposals.ChaincodeProposalPayload.FromString(made.payload)
        call = chaincode.ChaincodeInvocationSpec.FromString(payload.input)
        call.chaincode_spec.chaincode_id.name = self.named
        payload.input = call.SerializeToString()
        made.payload = payload.SerializeToString()
        raw = made.SerializeToString()
        return tx_id, proposals.SignedProposal(proposal_bytes=raw, signature=self._sign(raw))


def test_c2_nobody_makes_another_organisations_node_leave(process: str, nodes: dict[str, str]) -> None:
    assert admin2.code(HERE, "Leave", process, min(nodes), 1) == "ACCESS_ORGANISATION"


def test_topology_and_image_change_by_consent_of_both(changing: str, nodes: dict[str, str]) -> None:
    process = changing
    topology = (HERE, "ChangeTopology", process, 2, {"kind": "disconnected"})
    scientist1.submit(*topology)
    assert auditor1.evaluate(HERE, "TaskContext", process, min(nodes), 2)["neighbours"] == [max(nodes)]
    assert scientist1.code(*agreement(process)) == "PROCESS_ACCEPTED"
    scientist2.submit(*agreement(process))
    assert auditor1.evaluate(HERE, "TaskContext", process, min(nodes), 2)["neighbours"] == []
    newer = unique("2")
    register(newer)
    update = (HERE, "UpdateImage", process, 3, newer)
    admin1.submit(*update)
    admin2.submit(*agreement(process))
    assert auditor2.evaluate(HERE, "TaskContext", process, max(nodes), 3)["image"]["version"] == newer
    assert auditor2.evaluate(HERE, "TaskContext", process, max(nodes), 2)["image"]["version"] != newer


def test_c11_c12_nodes_join_and_leave(changing: str) -> None:
    process, other = changing, nodes_of("org1")[1].identity
    admin1.submit(HERE, "Join", process, other, "Org1MSP", 1)
    assert auditor2.code(HERE, "TaskContext", process, other, 1) == "NODE_UNKNOWN"
    admin2.submit(*agreement(process))
    assert auditor2.evaluate(HERE, "TaskContext", process, other, 1)["active"] is True
    assert admin1.code(HERE, "Join", process, other, "Org1MSP", 2) == "NODE_ACTIVE"
    Member("org1", other).submit(HERE, "Leave", process, other, 2, "done here")
    assert auditor2.evaluate(HERE, "TaskContext", process, other, 2)["active"] is False
    kinds = [change["kind"] for change in auditor2.evaluate(HERE, "Changes", process)["items"]]
    assert kinds == ["join", "leave"]


def test_single_step_runs_to_completion_by_the_peer_cli_alone(version: str, nodes: dict[str, str]) -> None:
    name, node = unique("process"), min(nodes)
    member, auditor = Member("org1", node).cli, auditor2.cli
    single = specification(name, version, {node: "Org1MSP"}, kind="single", iterations=1)
    scientist1.cli.propose(single)
    admin1.cli.submit(HERE, "Accept", name)
    admin1.cli.submit(HERE, "Start", name)
    play_single_task(member, name, node)
    status = auditor.evaluate(HERE, "Status", name)
    assert (status["iteration"], status["nodes"][0]["completed"]) == (None, 0)
    assert admin2.cli.code(HERE, "Complete", name) == "ACCESS_ORGANISATION"
    assert member.code(HERE, "Complete", name) == "PROCESS_UNPUBLISHED"
    member.submit("model", "PublishFor", name, node)
    member.submit(HERE, "Complete", name)
    assert auditor.evaluate(HERE, "Get", name)["status"] == "completed"
    assert admin1.code(HERE, "Abort", name, "too late") == "LIFECYCLE_TRANSITION"


def play_single_task(member: Member, process: str, node: str) -> None:
    """Open the task, sign a result with one single-leaf tree, complete."""
    context = TaskContext.from_dict(member.evaluate(HERE, "TaskContext", process, node, 0))
    key = SigningKey(os.urandom(32))
    data, profile = Digest.parse(DIGESTS[7]), '{"container":"none"}'
    sandbox = Digest.of(profile.encode())
    opening = Opening.for_task(context, key.verify_key, state=None, data=data, sandbox=sandbox)
    task = TaskId(process, node, 0)
    proof = prove_possession(key, task, context.organisation, opening).hex()
    member.submit("execution-record", "OpenTask", process, node, 0, opening.to_dict(), proof, profile)
    tree = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.0], limits=context.limits)
    estimator = Estimator(EstimatorId(node, 0), tree)
    result = TaskResult(
        first=0,
        created=(tree.digest,),
        slots=(),
        ensemble=(estimator.id,),
        ensemble_digest=ensemble_digest([(estimator.id, tree.digest)]),
        state=Digest.of(b"state"),
        metrics={},
    )
    raw = result.to_bytes()
    signature = sign_statement(key, statement(task, opening, Action.COMPLETE, Digest.of(raw)))
    payload = base64.b64encode(raw).decode()
    member.submit(
        "execution-record", "Complete", process, node, 0, str(Digest.of(raw)), signature.hex(), payload
    )
