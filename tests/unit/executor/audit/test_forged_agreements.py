"""Images, processes and asks that a majority with altered chaincode wrote are found by recomputing."""

import pytest
from support.memory import blocks
from support.memory.audited import SPEC, SmallPlayer
from support.memory.federation import Federation
from support.memory.forgery import deleted, failures, rewritten, verified, without_mark
from support.memory.ledger import VALID
from support.memory.scenario import DIGESTS, IMAGE, changed

from chaincode.common import CallerIdentity
from chaincode.common.records import read
from chaincode.model import contract as model
from chaincode.orchestration import consent
from chaincode.orchestration import contract as orchestration
from chaincode.orchestration import process as processes
from protocol import canonical
from protocol.agreement.plan import Plan
from protocol.agreement.progress import Progress
from protocol.ledger import keys
from protocol.ledger.changes import AskCount
from protocol.ledger.processes import ProcessRecord

HERE, P = "orchestration", SPEC["process"]
ASK = (HERE, "ChangeTopology", P, 1, {"kind": "full"})
NODES = {"node01": "Org1MSP", "node03": "Org2MSP"}


@pytest.fixture
def proposed():
    return blocks.record(Federation)(SPEC, started=False)


@pytest.fixture
def federation():
    return blocks.record(Federation)(SPEC | {"change_quota": 1})


def committed(federation, endorsed):
    assert federation.commit([endorsed]) == [VALID]
    return failures(federation)


def test_h1_an_acceptance_that_others_wrote_in_an_organisations_name_is_found(proposed):
    found = committed(proposed, without_mark(proposed.admin2.endorse(HERE, "Accept", P)))
    assert found == [("agreements", f"Org2MSP did not vouch for acceptance~{P}~Org2MSP")]


def test_h1_an_acceptance_of_something_else_is_found(proposed):
    forged = rewritten(
        proposed.admin2.endorse(HERE, "Accept", P), "acceptance", {"specification_digest": DIGESTS[5]}
    )
    found = committed(proposed, forged)
    assert ("agreements", f"acceptance~{P}~Org2MSP accepts what was not proposed to it") in found


def test_h1_a_second_acceptance_is_found(proposed, monkeypatch):
    proposed.admin2.submit(HERE, "Accept", P)
    monkeypatch.setattr(processes.Process, "accepted", lambda process: {})
    proposed.admin2.submit(HERE, "Accept", P)
    assert failures(proposed) == [("agreements", f"acceptance~{P}~Org2MSP was overwritten")]


def test_h1_a_process_that_runs_without_an_acceptance_is_found(proposed, monkeypatch):
    proposed.admin1.submit(HERE, "Accept", P)
    with monkeypatch.context() as altered:
        altered.setattr(ProcessRecord, "missing", ())
        proposed.scientist1.submit(HERE, "Start", P)
    (found,) = verified(proposed).failures
    assert (found.claim, found.what) == ("agreements", f"process~{P} runs, not accepted by Org2MSP")
    assert found.where == f"block {len(proposed.recorder.blocks) - 1} transaction 0"


def test_a1_a_proposal_with_a_retired_image_is_found(proposed, monkeypatch):
    proposed.scientist1.submit("image", "Retire", *IMAGE)
    monkeypatch.setattr(orchestration, "check_images", lambda *said: None)
    proposed.scientist1.submit(HERE, "Create", SPEC | {"process": "late"})
    name, version = IMAGE
    what = f"process~late names {name} {version}, which is not registered so, or retired"
    assert set(failures(proposed)) == {("agreements", what)}


def test_c1_a_process_that_an_outsider_started_is_found(proposed, monkeypatch):
    for admin in (proposed.admin1, proposed.admin2):
        admin.submit(HERE, "Accept", P)
    monkeypatch.setattr(CallerIdentity, "need_member", lambda *said: None)
    proposed.admin3.submit(HERE, "Start", P)
    assert failures(proposed) == [
        ("agreements", f"process~{P} was written by one outside its consortium"),
    ]


def test_c16_an_image_that_an_administrator_registered_is_found(federation, monkeypatch):
    monkeypatch.setattr(CallerIdentity, "need_role", lambda *said: None)
    said = (DIGESTS[1], DIGESTS[2], "registry.example:5000/attestree/learner")
    federation.admin1.submit("image", "Register", "attestree/other", "1", *said)
    found = failures(federation)
    assert ("images", "image~attestree/other~1 was registered in the role 'admin'") in found
    assert ("callers", "imagename~attestree/other was written in the role 'admin'") in found


def test_h5_an_ask_beyond_the_quota_is_found(federation, monkeypatch):
    federation.admin1.submit(*ASK)

    def forgetful(ctx, key, kind):
        return None if kind is AskCount else read(ctx, key, kind)

    monkeypatch.setattr(consent, "read", forgetful)
    federation.admin1.submit(*ASK)
    assert ("agreements", f"asks~{P}~Org1MSP counts 1 after 1") in failures(federation)


def test_h5_a_quota_that_the_chaincode_does_not_keep_is_found(federation, monkeypatch):
    federation.admin1.submit(*ASK)
    counted = federation.admin1.endorse(HERE, "Abort", P, "why")
    ask = federation.state[HERE, keys.ask(P, "Org1MSP", 0)]
    counted.writes[HERE, keys.ask(P, "Org1MSP", 1)] = ask.replace(b'"number":0', b'"number":1')
    counted.writes[HERE, keys.asks(P, "Org1MSP")] = canonical.encode(AskCount(2).to_dict())
    found = committed(federation, counted)
    assert ("agreements", f"asks~{P}~Org1MSP counts 2 after 1") in found


def test_h5_an_ask_that_is_not_counted_is_found(federation):
    found = committed(federation, deleted(federation.admin1.endorse(*ASK), "asks"))
    assert found == [("agreements", f"ask~{P}~Org1MSP~0000000000 was not counted")]


def test_h5_a_count_that_uses_up_anothers_asks_is_found(federation):
    found = committed(federation, deleted(federation.admin1.endorse(*ASK), "ask"))
    assert found == [("agreements", f"asks~{P}~Org1MSP counts a change that was not asked for")]


def test_h10_a_completion_while_nodes_had_work_left_is_found(federation, monkeypatch):
    monkeypatch.setattr(Progress, "unfinished", lambda progress: {})
    federation.admin1.submit(HERE, "Complete", P)
    monkeypatch.undo()
    (found,) = failures(federation)
    assert found[0] == "models"
    assert found[1].startswith(f"process~{P} was completed, and node01, ")


def test_h8_an_abort_of_work_that_is_done_is_found(monkeypatch):
    made = blocks.record(Federation)(changed("steps", 0, "iterations", 1, base=SPEC) | {"nodes": NODES})
    made.players = {node: SmallPlayer(made, node) for node in NODES}
    made.play(0)
    monkeypatch.setattr(Progress, "unfinished", lambda progress: {"node01": 0})
    for admin in (made.admin1, made.admin2):
        admin.submit(HERE, "Abort", P, "spite")
    monkeypatch.undo()
    assert failures(made) == [("quorums", f"process~{P} was aborted when all work was done")]


def test_h8_a_change_that_leaves_nobody_is_found(monkeypatch):
    made = blocks.record(Federation)(SPEC | {"nodes": {"node01": "Org1MSP"}, "organisations": ["Org1MSP"]})
    monkeypatch.setattr(Plan, "first_empty", lambda *said: None)
    made.admin1.submit(HERE, "Leave", P, "node01", 0, "gone")
    monkeypatch.undo()
    assert ("quorums", f"change~{P}~0000000000 leaves nobody for iteration 0") in failures(made)


def test_c4_a_model_published_before_its_node_had_done_its_part_is_found(federation, monkeypatch):
    federation.players = {node: SmallPlayer(federation, node) for node in SPEC["nodes"]}
    federation.play(0)
    monkeypatch.setattr(model, "check_finished", lambda *said: None)
    federation.players["node01"].publish()
    what = f"model~{P}~node01 was published before its node had done its part"
    assert failures(federation) == [("models", what)]
