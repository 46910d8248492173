"""What the chaincodes store and answer is what the classes of protocol/ledger say, to the byte."""

import copy
import json

import pytest
from support.memory.federation import DIGESTS, EXECUTION, MODEL, Federation

from chaincode.document import answer_of
from protocol import canonical
from protocol.errors import DataError
from protocol.ledger import keys
from protocol.ledger.common import History, Page
from protocol.ledger.processes import TaskContext
from protocol.ledger.record import LedgerRecord
from protocol.ledger.tasks import TaskRecord

IMAGE = ("attestree/learner", "1.0.0")


@pytest.fixture(scope="module")
def played():
    """A process that was refused once, played to its end and published, with a grant and a change."""
    federation = Federation()
    process, player = federation.process, federation.players["node01"]
    player.member.submit(EXECUTION, "Refuse", process, "node01", 0, "IMAGE_MISMATCH", {"found": "another"})
    asked = federation.admin1.submit("orchestration", "ChangeTopology", process, 1, {"kind": "full"})
    federation.agree(federation.admin2, asked)
    federation.admin1.submit("orchestration", "ChangeTopology", process, 1, {"kind": "ring"})
    federation.admin1.submit("orchestration", "LeaveOut", process, "node03", "silent")
    federation.admin1.submit("orchestration", "LeaveOutOrganisation", process, "Org2MSP", "silent")
    federation.admin1.submit("orchestration", "Abort", process, "tired")
    federation.play(0)
    for other in federation.players.values():
        other.open(1)
        other.share(other.fitted()[:5])
    for other in federation.players.values():
        other.complete()
    task = (process, "node01", 0)
    federation.auditor2.submit(EXECUTION, "Challenge", *task, [], "too good")
    federation.admin1.submit(EXECUTION, "AnswerChallenge", *task, "Org2MSP", "Org3MSP", DIGESTS[3])
    federation.auditor3.submit(EXECUTION, "JudgeChallenge", *task, "Org2MSP", {})
    player.publish()
    federation.admin1.submit(MODEL, "Grant", process, "node01", "Org3MSP")
    federation.start_from("node01", "second")
    federation.publish_all()
    federation.admin1.submit("orchestration", "Complete", process)
    federation.admin1.submit(MODEL, "Revoke", process, "node01", "Org3MSP")
    asked = federation.admin3.submit(MODEL, "Request", process, "node01", "to compare")
    decided = (process, "node01", "Org3MSP", 0, asked["digest"], True)
    federation.admin1.submit(MODEL, "Decide", *decided)
    federation.scientist1.submit("image", "Attest", *IMAGE, DIGESTS[2])
    federation.scientist1.submit("image", "Retire", *IMAGE, "old")
    return federation


def test_every_stored_record_is_read_and_written_in_the_same_bytes(played):
    seen = set()
    for (chaincode, key), raw in played.state.items():
        if "$" in chaincode:  # a mark in an organisation's own collection
            continue
        kind = keys.parse(key).kind
        record = played.contracts[chaincode].values[kind]
        assert canonical.encode(record.from_dict(canonical.decode(raw, max_bytes=1 << 23)).to_dict()) == raw
        seen.add(kind)
    assert seen == keys.KINDS.keys()


def calls(federation):
    """A question to every function that reads."""
    process, estimator = federation.process, "node01/0000"
    return {
        "image": {
            "Get": IMAGE,
            "List": (),
            "History": IMAGE,
            "ListRebuilds": IMAGE,
            "RebuildHistory": (*IMAGE, "Org1MSP"),
        },
        "orchestration": {
            "Get": (process,),
            "List": (),
            "Status": (process,),
            "History": (process,),
            "ProgressHistory": (process, "node01"),
            "Asks": (process,),
            "Changes": (process,),
            "Votes": (process,),
            "TaskContext": (process, "node01", 1),
            "ModelContext": (process,),
            "AccessTerms": (process,),
        },
        EXECUTION: {
            "GetTask": (process, "node01", 1),
            "FirstShare": (process, "node01", 1),
            "ListTasks": (process,),
            "ListRefusals": (process,),
            "Artifacts": (process,),
            "ArtifactsOf": (process, "Org1MSP"),
            "Slots": (process, "node01"),
            "Offers": (process, "node01", 0),
            "Standing": (process, "node01"),
            "LastResult": (process, "node01"),
            "Estimator": (process, estimator),
            "Digests": (process, [estimator, "node01/9999"]),
            "Estimators": (process, [estimator, "node01/9999"]),
            "InitialModel": ("second",),
            "ImageUses": IMAGE,
            "Twins": (process,),
            "ListChallenges": (process,),
            "Lineage": (process, estimator),
            "History": ("task", [process, "node01", "0"]),
        },
        MODEL: {
            "Get": (process, "node01"),
            "Trees": (process, "node01"),
            "Members": (process, "node01"),
            "List": (),
            "Access": (process, "node01"),
            "AccessHistory": (process, "node01"),
            "History": (process, "node01"),
            "Uses": (process, estimator),
            "Unpublished": (process, ["node01", "node02"]),
            "Catalogue": (process,),
            "Requests": (process, "node01"),
        },
    }


def test_every_answer_is_read_and_written_in_the_same_bytes(played):
    for chaincode, questions in calls(played).items():
        contract = played.contracts[chaincode]
        reading = {name for name, function in contract.functions.items() if function.kind == "evaluate"}
        assert questions.keys() == reading - {"metadata"}
        for name, arguments in questions.items():
            answer = played.auditor1.evaluate(chaincode, name, *arguments)
            assert read_back(contract.functions[name], answer) == answer, (chaincode, name)


def read_back(function, answer):
    shape, record = answer_of(function)
    if record is None:
        return History.from_dict(answer, TaskRecord.from_dict).to_dict()
    for word, kind in (("page", Page), ("history", History)):
        if shape.startswith(word):
            return kind.from_dict(answer, record.from_dict).to_dict()
    return record.from_dict(answer).to_dict()


@pytest.fixture(scope="module")
def context(played):
    return played.auditor1.evaluate("orchestration", "TaskContext", played.process, "node01", 1)


@pytest.mark.parametrize("name", [field.name for field in TaskContext.describe()])
def test_answer_without_a_field_or_with_one_of_another_type_is_refused(context, name):
    without = {field: value for field, value in context.items() if field != name}
    for altered in (without, context | {name: object()}, context | {name: [[]]}, context | {name: 1.5}):
        with pytest.raises(DataError):
            TaskContext.from_dict(altered)


def test_answer_with_an_unknown_field_is_refused(context):
    with pytest.raises(DataError, match="RECORD_FIELDS"):
        TaskContext.from_dict(context | {"surprise": 1})
    deeper = copy.deepcopy(context)
    deeper["image"]["surprise"] = 1
    with pytest.raises(DataError, match="RECORD_FIELDS"):
        TaskContext.from_dict(deeper)


def test_record_of_another_version_is_refused(played):
    stored = next(raw for (_, key), raw in played.state.items() if keys.parse(key).kind == "task")
    with pytest.raises(DataError, match="RECORD_VALUE"):
        TaskRecord.from_dict(json.loads(stored) | {"version": 2})


def test_a_field_without_a_meaning_is_a_mistake_of_the_class():
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Nameless(LedgerRecord):
        field: str

    with pytest.raises(TypeError, match="meaning"):
        Nameless.describe()
