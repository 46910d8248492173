"""Openings, round results and payloads: one form each, every field checked, nothing else accepted."""

import base64
import re
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import canonical
from protocol.digest import Digest
from protocol.errors import TABLE, AttestreeError, RecordError
from protocol.identifiers import EstimatorId
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId, inputs_digest, statement
from protocol.task.payload import read_payload
from protocol.task.result import SlotRead, TaskResult, ensemble_digest
from protocol.task.statement import Action

DIGESTS = [Digest.of(bytes([number])) for number in range(9)]
TASK = TaskId("fraud-2026", "node07", 3)
OPENING = Opening(SigningKey(bytes(range(32))).verify_key, *DIGESTS[:4], DIGESTS[4], DIGESTS[5], DIGESTS[6])
SLOT = SlotRead(
    "node01", 3, DIGESTS[7], (EstimatorId("node01", 0),), ((EstimatorId("node02", 4), "HOME_CHECK"),)
)
RESULT = TaskResult(
    30,
    (DIGESTS[0], DIGESTS[1]),
    (SLOT,),
    (EstimatorId("node01", 0), EstimatorId("node07", 30)),
    DIGESTS[2],
    DIGESTS[3],
    {"auc": "0.97", "rows": 284807},
)
PAGE = (Path(__file__).parents[3] / "docs" / "formats" / "task-v1.md").read_text(encoding="utf-8")


def code_of(call, *arguments, **more):
    with pytest.raises(AttestreeError) as refusal:
        call(*arguments, **more)
    return refusal.value.code


def result_code(**changes):
    return code_of(TaskResult.from_bytes, canonical.encode(RESULT.to_dict() | changes))


def test_an_opening_reads_back():
    assert Opening.from_dict(OPENING.to_dict()) == OPENING
    first = replace(OPENING, state=None)
    assert Opening.from_dict(first.to_dict()) == first
    assert first.to_dict()["state"] is None


def test_a_result_reads_back():
    assert TaskResult.from_bytes(RESULT.to_bytes()) == RESULT
    assert RESULT.digest == Digest.of(RESULT.to_bytes())


def test_the_inputs_digest_depends_on_task_state_and_data():
    digests = {
        inputs_digest(TASK, OPENING),
        inputs_digest(replace(TASK, iteration=4), OPENING),
        inputs_digest(replace(TASK, node="node08"), OPENING),
        inputs_digest(replace(TASK, process="other"), OPENING),
        inputs_digest(TASK, replace(OPENING, state=None)),
        inputs_digest(TASK, replace(OPENING, data=DIGESTS[8])),
    }
    assert len(digests) == 6


def test_the_statement_names_everything_that_was_committed():
    made = statement(TASK, OPENING, Action.SHARE, DIGESTS[8])
    assert (made.process, made.node, made.iteration) == ("fraud-2026", "node07", 3)
    assert (made.image_id, made.parameter_hash) == (OPENING.image_id, OPENING.parameter_hash)
    assert (made.inputs_digest, made.payload_digest) == (inputs_digest(TASK, OPENING), DIGESTS[8])


@pytest.mark.parametrize(
    "parts", [("P", "node07", 0), ("p", "Node", 0), ("p", "node07", -1), ("p", "n", 2**32)]
)
def test_a_task_has_names_within_their_grammar(parts):
    assert code_of(TaskId, *parts) in ("NAME_SYNTAX", "COUNTER_RANGE")


@pytest.mark.parametrize("field", OPENING.to_dict())
def test_an_opening_with_a_field_missing_is_refused(field):
    record = OPENING.to_dict()
    del record[field]
    assert code_of(Opening.from_dict, record) == "RECORD_FIELDS"


@pytest.mark.parametrize("record", [None, [], "text", 7])
def test_an_opening_is_an_object(record):
    assert code_of(Opening.from_dict, record) == "RECORD_FIELDS"


@pytest.mark.parametrize("value", [0, 2, "1", True, None])
def test_another_version_is_refused(value):
    assert code_of(Opening.from_dict, OPENING.to_dict() | {"version": value}) == "RECORD_VALUE"
    assert result_code(version=value) == "RECORD_VALUE"


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"first": -1}, "COUNTER_RANGE"),
        ({"first": 2**32 - 1}, "RECORD_VALUE"),
        ({"first": "30"}, "COUNTER_RANGE"),
        ({"created": ["sha256:00"]}, "DIGEST_LENGTH"),
        ({"created": "all"}, "RECORD_VALUE"),
        ({"ensemble": ["node07/0030", "node01/0000"]}, "RECORD_VALUE"),
        ({"ensemble": ["node01/0000", "node01/0000"]}, "RECORD_VALUE"),
        ({"ensemble": ["node01/0"]}, "COUNTER_SYNTAX"),
        ({"ensemble": ["node01/0000"] * 10_001}, "RECORD_VALUE"),
        ({"slots": [SLOT.to_dict(), SLOT.to_dict()]}, "RECORD_VALUE"),
        ({"slots": [SLOT.to_dict() | {"sender": "Node"}]}, "NAME_SYNTAX"),
        ({"slots": [SLOT.to_dict() | {"extra": 1}]}, "RECORD_FIELDS"),
        ({"slots": [SLOT.to_dict() | {"taken": ["node02/0004"]}]}, "RECORD_VALUE"),
        ({"slots": [SLOT.to_dict() | {"refused": [{"id": "node02/0004", "reason": 7}]}]}, "RECORD_VALUE"),
        (
            {"slots": [SLOT.to_dict() | {"refused": [{"id": "node02/0004", "reason": "x" * 65}]}]},
            "RECORD_VALUE",
        ),
        ({"slots": [7]}, "RECORD_FIELDS"),
        ({"state": None}, "DIGEST_SYNTAX"),
        ({"metrics": []}, "RECORD_VALUE"),
        ({"metrics": {"auc": "0.970"}}, "RECORD_VALUE"),
        ({"metrics": {"auc": True}}, "RECORD_VALUE"),
        ({"metrics": {"a b": 1}}, "RECORD_VALUE"),
        ({"metrics": {f"m{number}": number for number in range(65)}}, "RECORD_VALUE"),
        ({"extra": 1}, "RECORD_FIELDS"),
    ],
)
def test_a_result_with_an_impossible_field_is_refused(changes, code):
    assert result_code(**changes) == code


def test_b7_another_spelling_of_a_result_is_refused():
    raw = RESULT.to_bytes()
    for other in (raw + b" ", raw.replace(b":", b": ", 1), b"\xef\xbb\xbf" + raw):
        assert code_of(TaskResult.from_bytes, other).startswith("RECORD_")


def test_d21_a_result_just_over_the_limit_is_refused():
    assert code_of(TaskResult.from_bytes, b" " * ((1 << 20) + 1)) == "RECORD_SIZE"


def test_golden_digests_of_opening_result_and_ensemble():
    """A change of any of these breaks every signature on every ledger."""
    assert (
        str(inputs_digest(TASK, OPENING))
        == "sha256:554fbf587cf0fd4f2fcc204cf7553a5f1711f5a6d80bcb6fc78586db88faf84a"
    )
    assert str(RESULT.digest) == "sha256:d018e9746985206340f076154b79b5ee6239ee691661262fdec8b958a33ce277"
    assert (
        str(ensemble_digest([(EstimatorId("node07", 42), DIGESTS[0])]))
        == "sha256:48ab4553405e00efb064b042385645c038b7cbdb6ab6fb4d71edfcb8a390a6ed"
    )


def test_the_ensemble_digest_depends_on_members_and_trees_not_on_their_order():
    first, second = (EstimatorId("a", 0), DIGESTS[0]), (EstimatorId("b", 0), DIGESTS[1])
    assert ensemble_digest([first, second]) == ensemble_digest([second, first])
    assert ensemble_digest([first]) != ensemble_digest([first, second])
    assert ensemble_digest([first]) != ensemble_digest([(EstimatorId("a", 0), DIGESTS[1])])
    assert ensemble_digest([]) == canonical.digest({"version": 1, "estimators": []})


def test_a_payload_comes_once():
    digest = Digest.of(b"a")
    assert read_payload(b"a", "", digest) == b"a"
    assert read_payload(None, "YQ==", digest) == b"a"
    assert code_of(read_payload, b"a", "YQ==", digest) == "PAYLOAD_MISSING"
    assert code_of(read_payload, None, "YQ=", digest) == "PAYLOAD_MISSING"
    assert code_of(read_payload, None, "Y Q==", digest) == "PAYLOAD_MISSING"
    assert code_of(read_payload, None, "YQ==" * 100, digest, max_bytes=10) == "PAYLOAD_SIZE"


def test_d21_payloads_just_under_and_just_over_the_limit():
    assert read_payload(bytes(10), "", Digest.of(bytes(10)), max_bytes=10) == bytes(10)
    assert code_of(read_payload, bytes(11), "", Digest.of(bytes(11)), max_bytes=10) == "PAYLOAD_SIZE"


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_with_a_code(raw):
    assert code_of(TaskResult.from_bytes, raw) in TABLE


@pytest.mark.parametrize(
    ("heading", "record"), [("Opening", OPENING.to_dict()), ("Task result", RESULT.to_dict())]
)
def test_the_documentation_has_the_same_fields(heading, record):
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    assert re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE) == list(record)


def test_a_payload_in_base64_may_be_as_large_as_one_in_bytes():
    raw = bytes(range(256)) * 12
    assert read_payload(None, base64.b64encode(raw).decode(), Digest.of(raw), max_bytes=len(raw)) == raw
    with pytest.raises(RecordError) as caught:
        read_payload(None, base64.b64encode(raw + bytes(9)).decode(), Digest.of(raw), max_bytes=len(raw))
    assert caught.value.code == "PAYLOAD_SIZE"
