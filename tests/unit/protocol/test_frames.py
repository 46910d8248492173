import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import canonical
from protocol.broker import frames
from protocol.broker.answers import Offer, SlotsAnswer, TaskAnswer
from protocol.broker.messages import Answer, BrokerRefusal, Request, Verb, read_answer
from protocol.digest import Digest
from protocol.errors import AttestreeError, FrameError
from protocol.identifiers import EstimatorId
from protocol.task.opening import Opening, TaskId

GOLDEN = {
    case["name"]: case
    for case in json.loads(
        (Path(__file__).parents[2] / "golden" / "broker-v1.json").read_text(encoding="utf-8")
    )
}
VERBS = [verb.value for verb in Verb]
SIGNATURE = bytes(range(64))
SHARE = Request(Verb.SHARE, SIGNATURE, (b"trees",))
COMPLETE = Request(Verb.COMPLETE, SIGNATURE, (b"result", b"state"))


class Wire:
    """Bytes that are read from the front, and a count of how many were asked for."""

    def __init__(self, raw):
        self.raw, self.asked = raw, 0

    def __call__(self, size):
        self.asked += size
        return self.raw[self.asked - size : self.asked]


def message(header, blobs=b"", version=1, length=None):
    raw = header if isinstance(header, bytes) else canonical.encode(header)
    return struct.pack("<BI", version, len(raw) if length is None else length) + raw + blobs


def refusal_of(raw, reader=Request.read):
    wire = Wire(raw)
    with pytest.raises(FrameError) as refusal:
        reader(wire)
    return refusal.value.code, wire.asked


def answer_to(verb):
    return lambda wire: read_answer(wire, verb)


@pytest.mark.parametrize("case", GOLDEN.values(), ids=GOLDEN)
def test_messages_keep_their_bytes(case):
    blobs = [bytes.fromhex(blob) for blob in case["blobs"]]
    header = {name: value for name, value in case["header"].items() if name != "blobs"}
    assert frames.encode(header, blobs).hex() == case["bytes"]
    found = frames.decode(bytes.fromhex(case["bytes"]), lambda header, lengths: None)
    assert found == (header, tuple(blobs))


@pytest.mark.parametrize("verb", VERBS)
def test_requests_and_answers_of_the_golden_file_are_accepted(verb):
    raw = bytes.fromhex(GOLDEN[verb]["bytes"])
    assert Request.from_bytes(raw).to_bytes() == raw
    raw = bytes.fromhex(GOLDEN[f"{verb}-answer"]["bytes"])
    answer = read_answer(Wire(raw), Verb(verb))
    assert answer.to_bytes() == raw
    if verb == "task":
        assert TaskAnswer.of(answer).to_answer() == answer
    if verb == "slots":
        assert SlotsAnswer.of(answer).to_answer() == answer


@pytest.mark.parametrize("verb", VERBS)
def test_a_refusal_answers_any_verb(verb):
    found = read_answer(Wire(bytes.fromhex(GOLDEN["refusal"]["bytes"])), Verb(verb))
    assert found == BrokerRefusal("TASK_EXPIRED", "the task's time is over", "Launch the round again.")


def test_any_error_of_the_executor_becomes_a_refusal_that_can_be_read():
    error = AttestreeError("PEER_SAID", "line\none\x00\x1b[31m e\u0301 " + "x" * 2000, "Wait.")
    refusal = BrokerRefusal.of(error)
    again = read_answer(Wire(refusal.to_bytes()), Verb.TASK)
    assert again == refusal
    assert again.cause.startswith("line one  [31m \u00e9 x")
    assert len(again.cause) == 1000


def test_a_header_larger_than_allowed_is_refused_before_it_is_read():
    assert refusal_of(message(b"", length=frames.MAX_HEADER + 1)) == ("FRAME_SIZE", 5)
    with pytest.raises(FrameError) as refusal:
        Answer(Verb.SLOTS, {"slots": ["x" * frames.MAX_HEADER]}, (b"",)).to_bytes()
    assert refusal.value.code == "FRAME_SIZE"


@pytest.mark.parametrize(
    ("verb", "lengths", "code"),
    [
        ("share", [(1 << 20) + 1], "FRAME_SIZE"),
        ("complete", [(1 << 20) + 1, 0], "FRAME_SIZE"),
        ("complete", [0, (16 << 20) + 1], "FRAME_SIZE"),
        ("share", [2**53 - 1], "FRAME_SIZE"),
        ("share", [], "FRAME_BLOBS"),
        ("share", [1, 1], "FRAME_BLOBS"),
        ("share", [0] * 5, "FRAME_BLOBS"),
        ("share", [-1], "FRAME_HEADER"),
        ("share", ["1"], "FRAME_HEADER"),
        ("share", [True], "FRAME_HEADER"),
        ("share", {}, "FRAME_HEADER"),
    ],
)
def test_sizes_and_numbers_of_blobs_are_refused_before_they_are_read(verb, lengths, code):
    header = {"verb": verb, "fields": {"signature": SIGNATURE.hex()}, "blobs": lengths}
    raw = message(header)
    assert refusal_of(raw + bytes(100)) == (code, len(raw))


def test_an_answer_of_the_wrong_size_is_refused_before_it_is_read():
    raw = message({"ok": {"slots": []}, "blobs": [frames.MAX_BLOB + 1]})
    assert refusal_of(raw, answer_to(Verb.SLOTS)) == ("FRAME_SIZE", len(raw))
    raw = message({"ok": {}, "blobs": [1]})
    assert refusal_of(raw, answer_to(Verb.SHARE)) == ("FRAME_BLOBS", len(raw))


@pytest.mark.parametrize("verb", ["", "Task", "open", "fail", None, 1, ["task"], "task "])
def test_e_another_verb_is_refused(verb):
    assert refusal_of(message({"verb": verb, "fields": {}, "blobs": []}))[0] == "FRAME_VERB"


@pytest.mark.parametrize(
    "fields",
    [{}, [], None, {"signature": 1}, {"signature": ""}, {"signature": "AB" * 64}, {"signature": "ab" * 63},
     {"signature": SIGNATURE.hex(), "key": ""}],
)  # fmt: skip
def test_other_fields_than_those_of_the_verb_are_refused(fields):
    assert refusal_of(message({"verb": "share", "fields": fields, "blobs": [0]}))[0] == "FRAME_FIELDS"


@pytest.mark.parametrize(
    "header",
    [b"", b"[]", b"{}", b'{"blobs":[]}', b'{"blobs":[],"fields":{},"verb":"task","x":1}', b'{ "blobs":[]}',
     b'{"blobs":[],"blobs":[]}', b"\xff\xff", b"\x80\x04\x95",
     b'{"blobs":[],"fields":{},"verb":"t\\u0061sk"}'],
)  # fmt: skip
def test_headers_of_another_form_are_refused(header):
    assert refusal_of(message(header))[0] == "FRAME_HEADER"


@pytest.mark.parametrize(
    ("header", "code"),
    [
        ({"ok": {}, "error": {}}, "FRAME_HEADER"),
        ({}, "FRAME_HEADER"),
        ({"ok": {"surplus": 1}}, "FRAME_FIELDS"),
        ({"ok": None}, "FRAME_FIELDS"),
        ({"error": {"code": "X"}}, "FRAME_FIELDS"),
        ({"error": {"code": "X", "cause": 1, "remedy": ""}}, "FRAME_FIELDS"),
        ({"error": {"code": "X", "cause": "x" * 1001, "remedy": ""}}, "FRAME_FIELDS"),
    ],
)
def test_answers_of_another_form_are_refused(header, code):
    assert refusal_of(message({**header, "blobs": []}), answer_to(Verb.SHARE))[0] == code


def test_bytes_of_another_protocol_are_refused():
    assert refusal_of(message({}, version=2))[0] == "FRAME_VERSION"
    assert refusal_of(b"GET / HTTP/1.1\r\n")[0] == "FRAME_VERSION"


def test_truncation_and_trailing_bytes_are_refused():
    raw = COMPLETE.to_bytes()
    for length in range(len(raw)):
        assert refusal_of(raw[:length])[0] == "FRAME_LENGTH"
    with pytest.raises(FrameError) as refusal:
        Request.from_bytes(raw + b"\0")
    assert refusal.value.code == "FRAME_LENGTH"


@pytest.mark.parametrize(
    "request_",
    [Request(Verb.SHARE), Request(Verb.SHARE, SIGNATURE), Request(Verb.TASK, SIGNATURE),
     Request(Verb.SHARE, b"short", (b"",)), Request(Verb.SLOTS, b"", (b"",)),
     Request(Verb.SHARE, SIGNATURE, (bytes((1 << 20) + 1),))],
)  # fmt: skip
def test_a_request_that_no_broker_would_read_is_not_written(request_):
    with pytest.raises(FrameError):
        request_.to_bytes()


DIGEST = f"sha256:{'1' * 64}"
OPENING = json.loads(json.dumps(GOLDEN["task-answer"]["header"]["ok"]["opening"]))
TASK = TaskAnswer(TaskId("p", "n", 0), ("a", "b"), {"n_new": 1}, Opening.from_dict(OPENING))


@pytest.mark.parametrize(
    "changes",
    [{"neighbours": ["b", "a"]}, {"neighbours": ["a", "a"]}, {"neighbours": "ab"}, {"neighbours": ["A"]},
     {"parameters": []}, {"parameters": None}, {"process": ""}, {"node": "N"}, {"iteration": -1},
     {"iteration": "0"}, {"opening": {}}, {"opening": OPENING | {"state": ""}}],
)  # fmt: skip
def test_a_task_of_another_form_is_refused(changes):
    fields = TASK.to_answer().fields | changes
    with pytest.raises(FrameError) as refusal:
        TaskAnswer.of(Answer(Verb.TASK, fields))
    assert refusal.value.code == "FRAME_FIELDS"


OFFER = {"sender": "a", "iteration": 0, "share": DIGEST, "ids": ["a/0001"]}


@pytest.mark.parametrize(
    "slots",
    [None, {}, [None], [OFFER, OFFER], [OFFER | {"sender": "b"}, OFFER], [OFFER | {"ids": ["a/1"]}],
     [OFFER | {"ids": ["a/0001", "a/0001"]}], [OFFER | {"share": ""}], [OFFER | {"extra": 1}],
     [OFFER | {"iteration": 2**32}]],
)  # fmt: skip
def test_slots_of_another_form_are_refused(slots):
    with pytest.raises(FrameError) as refusal:
        SlotsAnswer.of(Answer(Verb.SLOTS, {"slots": slots}, (b"",)))
    assert refusal.value.code == "FRAME_FIELDS"


def test_an_offer_is_what_the_ledger_lists():
    offer = Offer.from_dict(OFFER)
    assert offer == Offer("a", 0, Digest.parse(DIGEST), (EstimatorId("a", 1),))
    assert offer.to_dict() == OFFER


@given(st.data())
def test_b7_a_mutated_request_is_refused_or_is_another(data):
    original = data.draw(st.sampled_from([SHARE, COMPLETE, Request(Verb.TASK)]))
    raw = original.to_bytes()
    position = data.draw(st.integers(0, len(raw) - 1))
    mutated = raw[:position] + bytes([data.draw(st.integers(0, 255))]) + raw[position + 1 :]
    try:
        found = Request.from_bytes(mutated)
    except FrameError:
        return
    assert found.to_bytes() == mutated
    assert (found == original) == (mutated == raw)


@given(st.data())
def test_b7_a_mutated_answer_is_refused_or_is_another(data):
    verb, reader = data.draw(st.sampled_from([(Verb.TASK, TaskAnswer), (Verb.SLOTS, SlotsAnswer)]))
    raw = bytes.fromhex(GOLDEN[f"{verb}-answer"]["bytes"])
    position = data.draw(st.integers(0, len(raw) - 1))
    mutated = raw[:position] + bytes([data.draw(st.integers(0, 255))]) + raw[position + 1 :]
    try:
        found = reader.of(read_answer(Wire(mutated), verb))
    except FrameError:
        return
    assert found.to_answer().to_bytes() == mutated


def test_a_reader_asks_for_what_is_left_and_no_more_than_a_block():
    asked = []

    def receive(size):
        asked.append(size)
        return b"x" * min(size, 40_000)

    hung_up = FrameError("FRAME_LENGTH", "nothing came")
    assert frames.reader(receive, hung_up)(100_000) == b"x" * 100_000
    assert asked[0] == 1 << 16
    assert asked[-1] == 20_000
    with pytest.raises(FrameError) as caught:
        frames.reader(lambda _: b"", hung_up)(1)
    assert caught.value is hung_up
