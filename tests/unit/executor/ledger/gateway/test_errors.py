"""What peers said: a refusal, or no more than words; and errors that cross to another process."""

import pickle

import pytest

from executor.ledger.gateway import ACCESS_DENIED, CommitError, EndorseError, PeerDetail, Refusal
from executor.ledger.gateway.errors import refusal_in


def said(code, message):
    return f'chaincode response 400, {{"code":"{code}","message":"{message}"}}'


def test_a_refusal_of_chaincode_is_found_in_what_a_peer_said():
    assert refusal_in(["see details", said("TOO_LATE", "it is over")]) == Refusal("TOO_LATE", "it is over")


def test_chaincode_is_heard_before_the_channel():
    assert refusal_in(["access denied: channel", said("UNKNOWN", "x")]) == Refusal("UNKNOWN", "x")


def test_the_channels_denial_is_a_refusal():
    found = refusal_in(["error: access denied: channel [a] creator org [Org1MSP]"])
    assert found.code == ACCESS_DENIED
    assert "Org1MSP" in found.message


@pytest.mark.parametrize(
    "text",
    [
        "",
        "connection refused",
        '{"code":',
        '{"code": 3, "message": "x"}',
        '{"code":"A"}',
        '{"code":"A","message":3}',
        '{"code":' + "[" * 100_000,
    ],
    ids=lambda text: text[:30],
)
def test_other_texts_are_no_refusal(text):
    assert refusal_in([text]) is None


@pytest.mark.parametrize(
    "error",
    [
        EndorseError(
            "ENDORSE_FAILED",
            "no",
            "ab",
            [PeerDetail("a", "b", "c")],
            status="ABORTED",
            refusal=Refusal("A", "b"),
        ),
        CommitError("TRANSACTION_INVALID", "no", "ab", block=3, validation="BAD_RWSET"),
    ],
)
def test_an_error_crosses_to_another_process(error):
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert vars(found) == vars(error)
    assert str(found) == str(error)
