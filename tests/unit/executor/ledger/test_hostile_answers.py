"""A peer may answer anything: it is read as the record that was asked for, or it is LEDGER_ANSWER."""

import json
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.memory.story import Call, call_of

from chaincode.document import answer_of
from chaincode.registry import CONTRACTS, contract
from executor.exits import LEDGER_UNREACHABLE, exit_code
from executor.ledger.errors import PhaseError
from protocol.ledger.record import LedgerRecord
from protocol.ledger.tasks import HISTORIES

FUNCTIONS = [
    (name, function)
    for name in CONTRACTS
    if name != "probe"
    for function in contract(name).functions
    if (name, function) not in {("orchestration", "Advance"), ("execution-record", "BindInitial")}
]
READ_AS_RECORDS = [place for place in FUNCTIONS if place[1] != "metadata"]
DEEP = 100_000


def refused(call: Call, answer) -> str:
    """Give this answer; returns what the refusal says of it."""
    with pytest.raises(PhaseError) as raised:
        call.again(answer)
    assert raised.value.code == "LEDGER_ANSWER"
    assert exit_code(raised.value) == LEDGER_UNREACHABLE
    said = f"{call.chaincode} {call.function} answered in no known form: "
    assert raised.value.cause.startswith(said)
    return raised.value.cause.removeprefix(said)


def altered(call: Call, *path, **changes):
    """The real answer with something else in the object at a path; `...` takes a field away."""
    place = answer = call.answer
    for part in path:
        place = place[part]
    for name, value in changes.items():
        if value is ...:
            del place[name]
        else:
            place[name] = value
    return answer


def records_in(call: Call):
    """Where records stand in the real answer, each with its class, those that others hold included."""
    shape, record = answer_of(contract(call.chaincode).functions[call.function])
    record = record or HISTORIES[call.values[0]]
    if shape.startswith("page"):
        yield from records_of(("items", 0), record.from_dict(call.answer["items"][0]))
    elif shape.startswith("history"):
        yield from records_of(("items", 0, "value"), record.from_dict(call.answer["items"][0]["value"]))
    else:
        yield from records_of((), record.from_dict(call.answer))


def records_of(path, value):
    if isinstance(value, LedgerRecord):
        yield path, type(value)
        for field in type(value).describe():
            yield from records_of((*path, field.name), getattr(value, field.name, None))
    elif isinstance(value, tuple) and value:
        yield from records_of((*path, 0), value[0])
    elif isinstance(value, Mapping):
        for name, held in value.items():
            yield from records_of((*path, name), held)


def fields_in(call: Call):
    """Every field of every record in the real answer: where the record is, the field, its type in words."""
    for path, record in records_in(call):
        for field in record.describe():
            yield path, field.name, field.type


@pytest.mark.parametrize("place", READ_AS_RECORDS)
def test_an_answer_that_lacks_a_field_is_refused(place):
    call = call_of(*place)
    for path, name, kind in fields_in(call):
        if "may be absent" not in kind:
            assert name in refused(call, altered(call, *path, **{name: ...}))


@pytest.mark.parametrize("place", READ_AS_RECORDS)
def test_an_answer_with_an_unknown_field_is_refused(place):
    call = call_of(*place)
    for path, _ in records_in(call):
        assert "surprise" in refused(call, altered(call, *path, surprise=1))


@pytest.mark.parametrize("place", READ_AS_RECORDS)
def test_a_field_of_another_type_is_refused(place):
    call = call_of(*place)
    for path, name, kind in fields_in(call):
        others = [1.5, [[]], [None]]
        others += [7] if kind.startswith(("text", "digest", "`", "list", "object")) else [True, "7", {}]
        others += [] if "null" in kind or "absent" in kind else [None]
        for other in others:
            if kind.startswith("true or false") and other is True:
                continue
            refused(call, altered(call, *path, **{name: other}))


@pytest.mark.parametrize("place", READ_AS_RECORDS)
def test_a_record_of_another_version_is_refused(place):
    call = call_of(*place)
    for path, record in records_in(call):
        if record.versioned:
            for version in (0, 2, "1", True, None):
                assert "version" in refused(call, altered(call, *path, version=version))


@pytest.mark.parametrize("place", FUNCTIONS)
def test_an_answer_that_is_no_object_is_refused(place):
    for answer in ([], [[]], "text", None, 3, True, 1.5):
        refused(call_of(*place), answer)


@pytest.mark.parametrize("place", FUNCTIONS)
def test_an_answer_that_is_not_json_is_refused(place):
    call = call_of(*place)
    for raw in (b"", b"{", b"nonsense", b"\xff\xfe", b"\0", call.raw[:-1], call.raw + b"}", call.raw * 2):
        refused(call, raw)


@pytest.mark.parametrize("place", FUNCTIONS)
def test_an_answer_that_is_nested_too_deep_is_refused(place):
    call = call_of(*place)
    for raw in (b"[" * DEEP, b'{"a":' * DEEP):
        refused(call, raw)
    first = next(iter(call.answer))
    inside = json.dumps(call.answer | {first: "here"}).encode()
    refused(call, inside.replace(b'"here"', b"[" * DEEP + b"]" * DEEP))


@pytest.mark.parametrize("place", [("image", "List"), ("image", "History"), ("execution-record", "Lineage")])
def test_a_page_without_a_bookmark_that_is_text_is_refused(place):
    call = call_of(*place)
    for bookmark in (..., None, 0, [], {}, "x" * 2000 if place[1] != "Lineage" else 1):
        refused(call, altered(call, bookmark=bookmark))


@pytest.mark.parametrize("place", [("image", "List"), ("image", "History")])
def test_a_page_of_more_than_anyone_asks_for_is_refused(place):
    call = call_of(*place)
    items = call.answer["items"][:1] * 1001
    assert "1001 entries" in refused(call, {"items": items, "bookmark": ""})
    for other in ({}, "text", None, 7):
        refused(call, {"items": other, "bookmark": ""})


@pytest.mark.parametrize("total", [-1, 0, 20, 100, 1 << 40])
def test_a_peer_that_promises_other_trees_than_it_brings_is_not_asked_for_ever(total):
    call = call_of("model", "Trees")
    assert "were due" in refused(call, call.answer | {"total": total})


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def paths(value, path=()):
    """Every place in an answer; of a list, the first and the last entry."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, held in value.items():
            yield from paths(held, (*path, name))
    elif isinstance(value, list):
        for number in sorted({0, len(value) - 1} if value else ()):
            yield from paths(value[number], (*path, number))


@pytest.mark.parametrize("place", FUNCTIONS)
@given(data=st.data())
def test_any_value_anywhere_is_read_or_refused_and_never_another_exception(place, data):
    call = call_of(*place)
    *front, last = data.draw(st.sampled_from(list(paths(call.answer))))
    there = answer = call.answer
    for part in front:
        there = there[part]
    there[last] = data.draw(values)
    try:
        # A bookmark leads on to a page that ends the list.
        call.again(answer, call.raw)
    except PhaseError as error:
        if error.code != "LEDGER_ANSWER":
            raise
