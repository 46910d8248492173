"""What peers said, turned into the error it is."""

import pickle

import pytest

from executor.ledger.errors import EndorseError, PeerDetail, refusal_in
from protocol.errors import AccessError, AttestreeError, StateError


def said(code, message):
    return f'chaincode response 400, {{"code":"{code}","message":"{message}"}}'


def test_a_refusal_has_the_class_the_chaincode_raised():
    found = refusal_in(["see details", said("TASK_EXPIRED", "too late. Launch the round again")])
    assert type(found) is StateError
    assert found.code == "TASK_EXPIRED"


def test_cause_and_remedy_are_told_apart():
    remedy = StateError("IMAGE_UNKNOWN", "x").remedy
    found = refusal_in([said("IMAGE_UNKNOWN", f"a 1 is not registered. {remedy}")])
    assert (found.cause, found.remedy) == ("a 1 is not registered", remedy)


def test_a_code_of_a_newer_chaincode_is_kept():
    found = refusal_in([said("NEWER_CODE", "who knows")])
    assert type(found) is AttestreeError
    assert found.code == "NEWER_CODE"


def test_chaincode_is_heard_before_the_channel():
    found = refusal_in(["access denied: channel", said("IMAGE_UNKNOWN", "x")])
    assert isinstance(found, StateError)


def test_the_channels_denial_is_an_access_error():
    found = refusal_in(["error: access denied: channel [a] creator org [Org1MSP]"])
    assert isinstance(found, AccessError)
    assert "Org1MSP" in found.cause


@pytest.mark.parametrize(
    "text",
    [
        "",
        "connection refused",
        '{"code":',
        '{"code": 3, "message": "x"}',
        '{"code":"A"}',
        '{"code":"A","message":3}',
    ],
)
def test_other_texts_are_no_refusal(text):
    assert refusal_in([text]) is None


def test_a_phase_error_crosses_to_another_process():
    error = EndorseError("ENDORSE_FAILED", "no", "ab", [PeerDetail("a", "b", "c")], "ABORTED")
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), found.code, found.tx_id, found.details) == (
        type(error),
        error.code,
        "ab",
        error.details,
    )
