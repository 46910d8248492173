"""Orderers that agree by a quorum: one dies, the leader is silent, one or two make blocks of their own."""

import hashlib
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
from executor.audit.errors import AuditError
from executor.audit.fabric import messages as m
from executor.audit.fabric.block import Block
from executor.audit.findings import Findings
from executor.audit.verify import first_configuration
from executor.audit.watch import Watch, follow
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
    last, liar = Block.from_bytes(block_of(own)), orderer(own, 4)
    forged = forge(last, last.data[0], [(4, liar), liar, (1, liar), (2, liar)])
    show(own, {"Org1MSP": forged, "Org2MSP": forged}, commits, tmp_path)


def test_h18_each_peer_and_the_audit_refuse_their_own_of_two_blocks_that_two_orderers_signed(
    own: Network, commits: Commits, tmp_path: Path
) -> None:
    """One less than a quorum, all of one organisation, shows each peer another next block: two chains."""
    commits()
    height = chain("org1")["height"]
    blocks = [block_of(own, number) for number in range(height)]
    last, before = Block.from_bytes(blocks[-1]), Block.from_bytes(blocks[-2])
    signers = [(number, orderer(own, number)) for number in (2, 4)]
    told = {
        "Org1MSP": forge(last, last.data[0], signers),
        "Org2MSP": forge(last, before.data[0], signers),
    }
    assert len({Block.from_bytes(block.SerializeToString()).hash for block in told.values()}) == len(told)
    for block in told.values():
        watch = Watch(Anchor(Block.from_bytes(blocks[0]).hash))
        with pytest.raises(AuditError) as ended:
            follow(watch, iter([*blocks, block.SerializeToString()]), lambda judged: None)
        assert ended.value.code == "AUDIT_VIOLATION"
        assert ended.value.cause.startswith(
            f"block {height}: orderers: it is signed by orderer2, orderer4, and"
        )
    show(own, told, commits, tmp_path)


def show(network: Network, told: dict[str, Any], commits: Commits, folder: Path) -> None:
    """Have one orderer tell each organisation's peer its next block; the peers refuse, and go on later."""
    before = chain("org1")
    orderers = [containers()[name] for name in network.orderers]
    answers = folder / "answers"
    answers.mkdir()
    for msp_id, block in told.items():
        (answers / msp_id).write_bytes(ab_pb2.DeliverResponse(block=block).SerializeToString())
    try:
        done("docker", "stop", "--time", "5", *orderers)
        with lying(network, orderers[-1], answers):
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


def orderer(network: Network, number: int) -> Identity:
    """An orderer's own key and certificate; the even ones are org2's."""
    folder = network.orderer_folder(f"orderer{number}") / "msp"
    return Identity.load(folder, network.msp_id("org1" if number % 2 else "org2"))


def forge(last: Block, envelope: bytes, signers: list[Any]) -> Any:
    """The block that would be next, of a transaction that there was before, signed by these."""
    block = m.common.Block()
    block.header.number, block.header.previous_hash = last.number + 1, last.hash
    block.data.data.append(envelope)
    block.header.data_hash = hashlib.sha256(envelope).digest()
    block.metadata.metadata.extend([b""] * 5)
    noted = metadata(last.view.view, last.view.sequence + 1)
    said = m.common.OrdererBlockMetadata(last_config={"index": last.last_config}, consenter_metadata=noted)
    sign_block(block, said, signers)
    return block


@contextmanager
def lying(network: Network, replaced: str, answers: Path) -> Iterator[None]:
    """Put an orderer with an answer for each organisation in the place of orderer4, with its keys."""
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
        "--volume", f"{SCRIPT}:/liar.py:ro", "--volume", f"{answers}:/answers:ro", "--entrypoint", PYTHON,
        network.chaincode_image, "-B", "/liar.py", "/tls", "/answers",
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
