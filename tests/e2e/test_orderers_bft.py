"""Orderers that agree by a quorum: one dies, the leader is silent, one makes a block of its own."""

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from fabric_protos.orderer import ab_pb2
from support.channel import unique
from support.gateway import Gateway, GatewayError
from support.memory.blocks import sign_block
from support.memory.dealt import metadata
from support.network import ROOT, chain, containers, done, kill_process, run, until
from support.own_network import own_network
from support.probe import Probe

from executor.audit.chain import SENTENCES, Anchor, Chain
from executor.audit.fabric import messages as m
from executor.audit.fabric.block import Block
from executor.audit.findings import Findings
from executor.audit.verify import first_configuration
from executor.ledger.gateway.identity import Identity
from executor.network import Network

pytestmark = pytest.mark.timeout(900)

SIZE = ("--orgs", "2", "--consensus", "bft", "--nodes", "2", "--probe")
SECONDS = 240
QUORUM = 3
PYTHON, SCRIPT = "/opt/venv/bin/python", ROOT / "tests" / "support" / "lying_orderer.py"
Commits = Callable[[], None]


@pytest.fixture(scope="module")
def own(network: None) -> Iterator[Network]:
    """A network of this file's own: four orderers of two organisations."""
    with own_network("bft", *SIZE) as made:
        yield made


@pytest.fixture
def commits(own: Network) -> Iterator[Commits]:
    """Wait until a transaction commits, and until every peer has it."""
    client = Gateway(own, "org1")

    def check() -> None:
        until(SECONDS, "a transaction commits", lambda: _succeeds(Probe(client)))
        until(SECONDS, "both peers have it", lambda: chain("org1") == chain("org2"))

    yield check
    client.close()


def test_h18_a_block_carries_the_signatures_of_a_quorum_of_all_organisations(
    own: Network, commits: Commits
) -> None:
    commits()
    _, configuration = first_configuration(block_of(own, 0))
    block = Block.from_bytes(block_of(own))
    signers = block.orderers(configuration)
    assert len(signers) == QUORUM
    assert {signer.organisation.msp_id for signer in signers} == {"Org1MSP", "Org2MSP"}
    assert block.is_ordered(configuration, signers)
    assert not block.is_ordered(configuration, signers[1:])
    assert not configuration.ordering_fault


def test_h18_an_orderer_that_is_killed_is_not_missed(commits: Commits) -> None:
    kill_process("orderer2")
    commits()
    until(SECONDS, "orderer2 runs again", lambda: "orderer2" in containers())


def test_h18_a_silent_leader_is_replaced(own: Network, commits: Commits) -> None:
    before = Block.from_bytes(block_of(own)).view
    leader = containers()[f"orderer{before.view % 4 + 1}"]
    done("docker", "pause", leader)
    try:
        commits()
        assert Block.from_bytes(block_of(own)).view.view > before.view
    finally:
        done("docker", "unpause", leader)


def test_h18_every_peer_refuses_a_block_that_one_orderer_signed(
    own: Network, commits: Commits, tmp_path: Path
) -> None:
    """All but the liar are away, so that each peer has to ask it; the channel goes on when they are back."""
    commits()
    before = chain("org1")
    forged = forge(Block.from_bytes(block_of(own)), own)
    orderers = [containers()[name] for name in own.orderers]
    answer = tmp_path / "answer"
    answer.write_bytes(ab_pb2.DeliverResponse(block=forged).SerializeToString())
    try:
        done("docker", "stop", "--time", "5", *orderers)
        with lying(own, orderers[-1], answer):
            for peer in ("peer.org1", "peer.org2"):
                until(SECONDS, f"{peer} refuses the block", lambda peer=peer: refused(peer, before["height"]))
        assert chain("org1") == chain("org2") == before
    finally:
        done("docker", "start", *orderers)
    commits()
    assert chain("org1")["height"] > before["height"]


def test_h18_the_audit_holds_for_all_that_happened_and_a_revocation(own: Network, commits: Commits) -> None:
    commits()
    done("network/revoke.sh", "org2", "node02")
    commits()
    findings = Findings(SENTENCES)
    walked = Chain(Anchor(Block.from_bytes(block_of(own, 0)).hash), findings)
    for number in range(chain("org1")["height"]):
        list(walked.take(block_of(own, number)))
    assert findings.verified, findings.failures
    assert walked.configuration.sequence == 1
    assert walked.configuration.ordering.quorum == QUORUM


def forge(last: Block, network: Network) -> Any:
    """The block that would be next, of a transaction of the last one, signed by orderer4 for everybody."""
    liar = Identity.load(network.orderer_folder("orderer4") / "msp", network.msp_id("org2"))
    block = m.common.Block()
    block.header.number, block.header.previous_hash = last.number + 1, last.hash
    block.data.data.append(last.data[0])
    block.header.data_hash = last.real_data_hash
    block.metadata.metadata.extend([b""] * 5)
    noted = metadata(last.view.view, last.number + 1)
    said = m.common.OrdererBlockMetadata(last_config={"index": last.last_config}, consenter_metadata=noted)
    sign_block(block, said, [(4, liar), liar, (1, liar), (2, liar)])
    return block


@contextmanager
def lying(network: Network, replaced: str, answer: Path) -> Iterator[None]:
    """Put an orderer that gives everybody one answer in the place of orderer4, with its name and its keys."""
    (where,) = done(
        "docker",
        "inspect",
        "-f",
        "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}} {{end}}",
        replaced,
    ).split()
    user = done("docker", "inspect", "-f", "{{.Config.User}}", replaced).strip()
    tls = network.orderer_folder("orderer4") / "tls"
    liar = done(
        "docker", "run", "--detach", "--label", f"attestree.network={network.project}", "--network", where,
        "--network-alias", "orderer4", "--user", user, "--volume", f"{tls}:/tls:ro",
        "--volume", f"{SCRIPT}:/liar.py:ro", "--volume", f"{answer}:/answer:ro", "--entrypoint", PYTHON,
        network.chaincode_image, "-B", "/liar.py", "/tls", "/answer",
    ).strip()  # fmt: skip
    try:
        yield
    finally:
        done("docker", "rm", "--force", liar)


def refused(peer: str, number: int) -> bool:
    """Whether a peer has said that a block lacks signatures."""
    logs = run("docker", "logs", containers()[peer])
    lines = (logs.stdout + logs.stderr).splitlines()
    words = (f"block [{number}] from orderer", "signature set did not satisfy policy")
    return any(all(word in line for word in words) for line in lines)


def block_of(network: Network, number: int | None = None) -> bytes:
    """A block as org1's peer has it, the newest unless another is named; an orderer may lag behind."""
    number = chain("org1")["height"] - 1 if number is None else number
    with closing(Gateway(network, "org1")) as client:
        arguments = ("GetBlockByNumber", "attestree", str(number))
        return bytes(client.evaluate("qscc", *arguments, orgs=["Org1MSP"]))


def _succeeds(probe: Probe) -> bool:
    try:
        probe.submit("put", unique("key"), "value")
    except GatewayError:
        return False
    return True
