"""The whole channel of the test network, verified offline; and everything that can be altered in it, named.

These tests run when all others have ended, so that what the others wrote is verified too.
"""

import json
import os
import signal
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import pytest
from support.channel import DIGESTS, IMAGE, Member, admin1, register, scientist1, specification, unique
from support.commands import done, here, printed, started
from support.federation import nodes_of
from support.launching import ledger
from support.network import PROJECT, ROOT, run
from support.player import EXECUTION, Player
from support.tampering import Export, OpenedTransaction, find_block, flipped
from support.wheels import environment

from executor.audit.fabric import messages as m
from executor.audit.fabric.block import COMMIT_HASH, FLAGS
from executor.ledger.gateway.identity import Identity
from executor.network import Network

pytestmark = pytest.mark.alone


@dataclass(frozen=True)
class Audited:
    """What the questions of an audit are about."""

    process: str
    version: str
    nodes: tuple[str, ...]


@pytest.fixture(scope="module")
def process(audited: Audited) -> str:
    return audited.process


@pytest.fixture(scope="module")
def audited(network: None) -> Audited:
    """A process of four nodes, played by clients, with models and a change of access."""
    name, version = unique("audited"), unique("1")
    register(version)
    members = [*nodes_of("org1")[:2], *nodes_of("org2")[:2]]
    owners = {member.identity: Network.load().msp_id(member.organisation) for member in members}
    made = specification(name, version, owners)
    made["steps"][0] |= {"iterations": 1}
    made["steps"][0]["parameters"] |= {"n_new": 3, "n_share": 2}
    scientist1.propose(made)
    for organisation in ("org1", "org2"):
        Member(organisation, "admin").submit("orchestration", "Accept", name)
    scientist1.submit("orchestration", "Start", name)
    players = [Player(member, name) for member in members]
    for player in players:
        player.member.submit(*player.call_open())
        _submit(player, player.call_share())
    for player in players:
        _submit(player, player.call_complete())
    for player in players:
        _submit(player, player.call_publish())
    Member("org2", "auditor").submit("image", "Attest", IMAGE, version, DIGESTS[5])
    Member("org3", "auditor").submit(EXECUTION, "Challenge", name, members[0].identity, 0, [], "a test")
    for verb in ("Grant", "Revoke"):
        admin1.submit("model", verb, name, members[0].identity, "Org3MSP")
    return Audited(name, version, tuple(owners))


def _submit(player: Player, call: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
    arguments, options = call
    player.member.submit(*arguments, **options)


@pytest.fixture(scope="module")
def exported(process: str, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """The export of the channel, and the hash of its first block."""
    file = tmp_path_factory.mktemp("audit") / "channel.tar"
    answer = done("audit", "export", "--process", process, str(file), identity="auditor")
    assert answer["blocks"] > 20
    return file, answer["genesis"]


def test_every_question_of_an_audit_is_one_pasted_line(audited: Audited) -> None:
    """Each line of docs/audit.md is run as it stands there, with names of this network's."""
    names = {
        "$PROCESS": audited.process,
        "$NODE": audited.nodes[0],
        "$OTHER": audited.nodes[1],
        "$IMAGE": IMAGE,
        "$VERSION": audited.version,
    }
    page = (ROOT / "docs/audit.md").read_text()
    lines = [line for line in page.splitlines() if line.startswith("network/peer.sh ")]
    assert len(lines) >= 13
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda line: _pasted(line, names), lines))
    for line, answer in zip(lines, answers, strict=True):
        assert answer.get("items", True), f"nothing for {line}"


def _pasted(line: str, names: dict[str, str]) -> Any:
    for name, value in names.items():
        line = line.replace(name, value)
    ran = run("bash", "-c", line)
    assert ran.returncode == 0, f"{line}\n{ran.stderr}"
    return json.loads(ran.stdout)


def test_everything_that_any_test_wrote_is_verified_in_a_container_without_network(
    exported: tuple[Path, str], tmp_path: Path
) -> None:
    """The chaincode's image has neither Docker nor this program; what is mounted is sources and click."""
    file, genesis = exported
    said = tmp_path / "org2.json"
    attested = printed("audit", "attest", "--out", str(said), organisation="org2", identity="auditor")
    assert attested.code == 0, attested.err
    mounts = [f"{ROOT / name}:/src/{name}:ro" for name in ("executor", "experiments", "learning", "protocol")]
    mounts += [
        f"{Path(click.__file__).parent}:/src/click:ro",
        f"{file}:/channel.tar:ro",
        f"{said}:/said.json:ro",
    ]
    program = "from executor.cli import main; main()"
    words = ["audit", "verify", "/channel.tar", "--genesis", genesis, "--statements", "/said.json", "--json"]
    ran = run(
        "docker", "run", "--rm", "--network", "none", "--read-only", "--tmpfs", "/tmp",
        # Whoever owns the clone, which nobody else may read under a strict umask.
        "--user", f"{os.geteuid()}:{os.getegid()}", "--label", f"attestree.test={PROJECT}",
        "--env", "PYTHONPATH=/src", "--env", "PYTHONDONTWRITEBYTECODE=1",
        "--entrypoint", "/opt/venv/bin/python",
        *(word for mount in mounts for word in ("--volume", mount)),
        Network.load().chaincode_image, "-c", program, *words,
    )  # fmt: skip
    assert ran.stdout, ran.stderr
    found = json.loads(ran.stdout)
    assert found["failures"] == []
    assert ran.returncode == 0
    assert found["verified"] is True
    assert {claim["claim"] for claim in found["claims"]} >= {
        "endorsements", "validity flags", "commit hashes", "task signatures", "shares", "models", "access",
        "statements",
    }  # fmt: skip


def test_the_report_on_a_task_of_a_live_channel_holds(audited: Audited, exported: tuple[Path, str]) -> None:
    file, genesis = exported
    words = ("--genesis", genesis, "--file", str(file))
    shown = done("audit", "task", f"{audited.process}/{audited.nodes[0]}/0", *words)
    assert shown["verified"] is True
    assert shown["events"][0]["sentence"].endswith(" is open, attempt 1")


def test_a_models_proof_passes_the_tool_that_auditors_know_and_an_altered_one_does_not(
    audited: Audited, exported: tuple[Path, str], tmp_path: Path
) -> None:
    """`model_signing verify certificate`, in an environment that has nothing of ours."""
    (file, genesis), node, folder = exported, audited.nodes[0], tmp_path / "model"
    root = Network.load().folder("org1") / "ca.pem"
    done("model", "export", audited.process, node, "--out", str(folder), "--format", "npz")
    words = ("--file", str(file), "--genesis", genesis)
    done("model", "prove", audited.process, node, str(folder), *words, identity=node)
    pinned = ("--model", f"{audited.process}/{node}", "--owner", "Org1MSP", "--roots", str(root))
    shown = done("audit", "proof", str(folder), *pinned)
    assert shown["verified"] is True
    python = environment(tmp_path / "auditor", "model-signing.txt")

    def verify() -> tuple[int, str]:
        chain = ("--certificate_chain", str(root))
        signature = ("--signature", str(folder / "model.sig"))
        ran = run(
            str(python), "-m", "model_signing", "verify", "certificate", str(folder), *signature, *chain
        )
        return ran.returncode, ran.stdout + ran.stderr

    assert verify()[0] == 0, verify()[1]
    altered = folder / "model.npz"
    altered.write_bytes(altered.read_bytes()[:-1])
    code, said = verify()
    assert code != 0
    assert "model.npz" in said
    assert here("audit", "proof", str(folder), *pinned).code == 11


def test_a_watch_verifies_a_live_channel_and_is_stopped_by_a_signal(
    exported: tuple[Path, str], tmp_path: Path
) -> None:
    """From the first block on, and one that comes while it watches; what it leaves is ahead of the export."""
    (file, genesis), kept = exported, tmp_path / "checkpoint"
    words = ("--organisation", "org2", "--genesis", genesis, "--checkpoint", str(kept), "--json")
    with started("audit", "watch", *words) as watch:
        assert watch.stdout is not None
        first = json.loads(watch.stdout.readline())
        assert (first["block"], first["verified"]) == (0, True)
        register(unique("1"))
        height = ledger("org1").transport.chain_info().height
        last = first
        while last["block"] < height - 1:
            last = json.loads(watch.stdout.readline())
            assert last["failures"] == []
        watch.send_signal(signal.SIGINT)
        end = json.loads(watch.stdout.readlines()[-1])
        assert watch.wait(150) == 0
    assert (end["stopped"], end["height"] >= height) == (True, True)
    ran = here("audit", "verify", str(file), "--from", str(kept))
    assert (ran.code, ran.answer["error"]["code"]) == (14, "CHECKPOINT_AHEAD")


def test_h18_h19_h20_everything_that_is_altered_is_named(
    exported: tuple[Path, str], process: str, tmp_path: Path
) -> None:
    """Each piece is altered in a block of its own; those who could have signed for it, do."""
    file, genesis = exported
    export = Export.read(file.read_bytes())
    altered = Alterations(export, process)
    # Slots are written by SHARE, and read by no transaction.
    first, second, third, fourth = altered.blocks("slot")
    altered.reendorse(first)
    altered.forge_block(find_block(export.blocks, b"\0process\0" + process.encode()))
    altered.flip("an estimator's byte", second, b'"tree":"', 40)
    altered.flip("a slot", third, b'"recipient":"', 2)
    altered.flip("a task's signature", fourth, b'"signature":"', 5)
    altered.flip("a certificate", altered.blocks("result")[0], b"-----BEGIN CERTIFICATE-----\n", 200)
    models = altered.blocks("model")
    # A verdict that no earlier alteration leads to: the policy of endorsements failed.
    altered.note("validity flags", " transaction 0", models[0], FLAGS, b"\x0a")
    noted = m.common.Metadata(value=b"\1" * 32).SerializeToString()
    altered.note("commit hashes", "", models[1], COMMIT_HASH, noted)
    altered.swap_last()
    forged = tmp_path / "forged.tar"
    forged.write_bytes(altered.export.write())
    ran = here("audit", "verify", str(forged), "--genesis", genesis)
    assert ran.code == 11
    found = {(failure["claim"], failure["where"].split(" (")[0]) for failure in ran.answer["failures"]}
    missing = {what: place for what, place in altered.named.items() if place not in found}
    assert not missing, json.dumps(ran.answer["failures"], indent=1)


class Alterations:
    """An export under the hands of those who would like to alter it, and what must be named for it."""

    def __init__(self, export: Export, process: str) -> None:
        network = Network.load()
        self.export = export
        self.named: dict[str, tuple[str, str]] = {}
        self._orderer = Identity.load(network.orderer_folder("orderer1") / "msp", "Org1MSP")
        self._network = network
        self._process = process.encode()

    def blocks(self, kind: str) -> list[int]:
        """The blocks in which a kind of record of the process was written."""
        key = b"\0" + kind.encode() + b"\0" + self._process + b"\0"
        return [number for number, raw in enumerate(self.export.blocks) if key in raw]

    def reendorse(self, number: int) -> None:
        """Client and orderer together: endorsements that never were, under signatures that all fit."""

        def change(block: Any) -> None:
            tx = OpenedTransaction(block.data.data[0])
            for endorsement in tx.endorsements:
                endorsement.signature = tx.endorsements[0].signature
            block.data.data[0] = tx.close(self._creator(tx))

        self.export = self.export.forged(number, self._orderer, change)
        self.named["an endorsement"] = ("endorsements", f"block {number} transaction 0")

    def forge_block(self, number: int) -> None:
        """Orderer and one organisation: a whole block around a transaction that nobody else endorsed."""

        def change(block: Any) -> None:
            tx = OpenedTransaction(block.data.data[0])
            own = [found for found in tx.endorsements if b"Org1MSP" in found.endorser]
            assert own
            del tx.endorsements[:]
            tx.endorsements.append(own[0])
            block.data.data[0] = tx.close(self._creator(tx))

        self.export = self.export.forged(number, self._orderer, change)
        self.named["a whole block, forged by one orderer"] = ("endorsements", f"block {number} transaction 0")

    def flip(self, what: str, number: int, word: bytes, distance: int) -> None:
        """Whoever hands the export on: one bit in the middle of a block."""
        self.export = self.export.with_block(number, flipped(self.export.blocks[number], word, distance))
        self.named[what] = ("creators", f"block {number} transaction 0")
        self.named[f"the data of {what}"] = ("hash chain", f"block {number}")

    def note(self, claim: str, where: str, number: int, index: int, value: bytes) -> None:
        """Whoever hands the export on: what a peer noted and nobody signed."""

        def change(block: Any) -> None:
            block.metadata.metadata[index] = value

        self.export = self.export.edited(number, change)
        self.named[claim] = (claim, f"block {number}{where}")

    def swap_last(self) -> None:
        """Whoever hands the export on: the last two blocks in each other's place."""
        last = len(self.export.blocks) - 1
        before, after = self.export.blocks[last - 1], self.export.blocks[last]
        self.export = self.export.with_block(last - 1, after).with_block(last, before)
        self.named["the order of two blocks"] = ("hash chain", f"block {last}")

    def _creator(self, tx: OpenedTransaction) -> Identity:
        """The key of whoever submitted a transaction, which is on this host."""
        for organisation in self._network.organisations:
            for folder in sorted((self._network.folder(organisation) / "users").iterdir()):
                found = Identity.load(folder / "msp", self._network.msp_id(organisation))
                if found.creator == tx.creator:
                    return found
        raise AssertionError("nobody here submitted it")
