"""A forged run that the ledger accepts, and the challenge that exposes it; an honest one, confirmed."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from docker import DockerClient
from support.commands import done, here
from support.launching import SMALL, caught_up, launched, ledger, nothing_is_left, running, store_of

from executor.data import load
from executor.launch.source import DataSource, remember
from executor.network import Network
from executor.replay.folder import LABEL, labels_of
from executor.sandbox.container import LABEL as SANDBOX
from learning.fit import FitOptions, FitTask, fit
from learning.rows import Rows
from protocol.digest import Digest
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId, statement
from protocol.task.possession import prove_possession
from protocol.task.result import SlotRead, TaskResult, ensemble_digest
from protocol.task.statement import Action, sign_statement
from protocol.trees.share import Share

FORGER, HONEST = "node01", "node06"
INVENTED = b'{"container":"none at all"}'


def forge(process: str, rows: Path) -> "Forgery":
    """Open node01's task as its executor would, with its own data, and share trees that no container made."""
    forgery = Forgery(process, rows)
    forgery.share()
    return forgery


class Forgery:
    """Somebody who holds the key of a node and its host, and runs nothing."""

    def __init__(self, process: str, rows: Path) -> None:
        self.node = ledger("org1", FORGER)
        self.task = TaskId(process, FORGER, 0)
        self.context = self.node.orchestration.task_context(self.task)
        self.key = SigningKey(os.urandom(32))
        store, source = store_of(process, FORGER), DataSource(str(rows))
        with store.locked():
            commitment = load(Path(str(rows).format(node=FORGER)), "Class").commitment(store.salt())
            remember(source, store)
        # The ledger takes any record: what a forger invents stays where every auditor reads it.
        self.opening = Opening.for_task(
            self.context, self.key.verify_key, state=None, data=commitment, sandbox=Digest.of(INVENTED)
        )
        noise = np.random.default_rng(1).normal(size=(200, 5))
        made = Rows.of(noise, noise[:, 0] > 1)
        limits, n_new = self.context.limits, int(SMALL["n_new"])
        self.trees = tuple(fit(made, FitTask(FORGER, 0, 0, n_new, 99, FitOptions(), limits)))
        proof = prove_possession(self.key, self.task, "Org1MSP", self.opening)
        self.node.execution.open_task(self.task, self.opening, proof, INVENTED)

    def share(self) -> None:
        raw = Share(self.trees[: SMALL["n_share"]]).to_bytes()
        self.node.execution.share(self.task, raw, self._sign(Action.SHARE, raw), self.context.audience)

    def complete(self) -> None:
        """Take whatever the neighbour offered, as a learner might."""
        offers = self.node.execution.offers(self.task)
        assert not offers.missing
        members = {tree.id: tree.tree.digest for tree in self.trees}
        for offer in offers.slots:
            shared = self.node.execution.digests(self.task.process, offer.ids)
            members |= {member.id: member.digest for member in shared.estimators}
        kept = dict(sorted(members.items())[: SMALL["n_max"]])
        result = TaskResult(
            0,
            tuple(tree.tree.digest for tree in self.trees),
            tuple(SlotRead(offer.sender, offer.iteration, offer.share, offer.ids) for offer in offers.slots),
            tuple(kept),
            ensemble_digest(list(kept.items())),
            Digest.of(b"a state that nobody has"),
            {"ensemble": len(kept)},
        )
        raw = result.to_bytes()
        self.node.execution.complete(self.task, raw, self._sign(Action.COMPLETE, raw))

    def _sign(self, action: Action, raw: bytes) -> bytes:
        return sign_statement(self.key, statement(self.task, self.opening, action, Digest.of(raw)))


@pytest.fixture(scope="module")
def process(learner: str, rows: Path) -> str:
    """A process in which node01 of org1 forges, and node06 of org2 runs what it says."""
    name = running(learner, rows, {FORGER: "org1", HONEST: "org2"})
    forgery = forge(name, rows)
    launched(name, "--node", HONEST, "--data", str(rows), organisation="org2")
    forgery.complete()
    caught_up()
    return name


def settle(task: str, owner: str, challenger: str, file: Path) -> Any:
    """Challenge a task, have its owner answer before org3, and org3's auditor judge."""
    raised = done("challenge", task, "--reason", "a test", organisation=challenger, identity="auditor")
    assert raised["auditors"] == ["Org3MSP", "Org4MSP"]
    done("answer", task, "--auditor", "org3", "--out", str(file), organisation=owner)
    assert file.stat().st_mode & 0o077 == 0
    return done("judge", task, "--evidence", str(file), organisation="org3", identity="auditor")


def test_h17_a_forged_run_that_the_ledger_accepts_is_exposed_by_a_challenge(
    process: str, tmp_path: Path
) -> None:
    task = f"{process}/{FORGER}/0"
    found = ledger().execution.get_task(TaskId(process, FORGER, 0))
    assert found.outcome is not None  # nothing on the ledger is wrong with it
    verdict = settle(task, "org1", "org2", tmp_path / "evidence")
    assert verdict["verdict"] == "differs"
    assert verdict["replayed"]["differing"] == [f"{FORGER}/000{number}" for number in range(3)]
    shown = here("audit", "task", task, identity="auditor")
    assert shown.code == 11
    (challenge,) = shown.answer["challenges"]
    assert challenge["standing"] == "differs"
    assert shown.answer["facts"]["sandbox profile"] == INVENTED.decode()
    assert shown.answer["failures"] == []
    assert shown.answer["verified"] is False


def test_h17_a_run_gives_the_same_again_before_its_owner_and_before_an_auditor(
    process: str, tmp_path: Path, docker_client: DockerClient
) -> None:
    task = f"{process}/{HONEST}/0"
    found = done("replay", "--task", task, organisation="org2", identity="auditor")
    assert found["same"] is True
    recorded = ledger().execution.get_task(TaskId(process, HONEST, 0))
    assert recorded.outcome is not None
    assert found["result"] == str(recorded.outcome.signed.payload_digest)
    assert settle(task, "org2", "org1", tmp_path / "evidence")["verdict"] == "same"
    nothing_is_left(docker_client, process, HONEST, "org2")


def test_rows_and_container_of_a_replay_that_was_killed_are_removed_by_the_next(
    process: str, docker_client: DockerClient, learner_id: Digest
) -> None:
    network = Network.load()
    folder = network.state / "replay-killed"
    folder.mkdir(exist_ok=True)
    (folder / "rows").write_text("private")
    labels = labels_of(network, folder) | {SANDBOX: "-"}
    docker_client.api.create_container(str(learner_id), labels=labels)
    done("replay", "--task", f"{process}/{HONEST}/0", organisation="org2", identity="auditor")
    assert not folder.exists()
    assert not docker_client.containers.list(all=True, filters={"label": f"{LABEL}={folder.name}"})


def test_h17_other_data_than_were_committed_to_open_nothing(process: str, rows: Path) -> None:
    other = str(rows).format(node="node02")
    words = ("replay", "--task", f"{process}/{HONEST}/0", "--data", other)
    ran = here(*words, organisation="org2", identity="auditor")
    assert (ran.code, ran.error["code"]) == (14, "EVIDENCE_OPENS")
