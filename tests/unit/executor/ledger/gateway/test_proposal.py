"""Proposals: what is signed, under which id, and that nothing else is signed afterwards."""

from hashlib import sha256

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from support.scripted_peers import endorsement, prepared, result_of, signer

from executor.ledger.gateway import Proposal
from executor.ledger.gateway.members import Untrue
from executor.ledger.gateway.messages import chaincode, common, proposal, transaction


@pytest.fixture
def made(identity):
    return Proposal.make(identity, "channel", "image", ["Get", b"\x00\xff", "ü"], {"tree": b"\x01"})


def parts(made):
    raw = proposal.Proposal.FromString(made.signed.proposal_bytes)
    header = common.Header.FromString(raw.header)
    return (
        common.ChannelHeader.FromString(header.channel_header),
        common.SignatureHeader.FromString(header.signature_header),
        proposal.ChaincodeProposalPayload.FromString(raw.payload),
    )


def test_the_id_is_the_hash_of_nonce_and_creator(made, identity):
    channel, signature, _ = parts(made)
    assert signature.creator == identity.creator
    assert len(signature.nonce) == 24
    assert made.tx_id == channel.tx_id == sha256(signature.nonce + signature.creator).hexdigest()


def test_no_two_proposals_have_one_id(identity):
    assert len({Proposal.make(identity, "c", "image", ["Get"]).tx_id for _ in range(50)}) == 50


def test_the_call_is_complete(made):
    channel, _, payload = parts(made)
    called = chaincode.ChaincodeInvocationSpec.FromString(payload.input).chaincode_spec
    assert (channel.channel_id, channel.type) == ("channel", common.ENDORSER_TRANSACTION)
    assert called.chaincode_id.name == "image"
    assert list(called.input.args) == [b"Get", b"\x00\xff", "ü".encode()]
    assert dict(payload.TransientMap) == {"tree": b"\x01"}


def test_the_proposal_is_signed(made, identity):
    identity.key.public_key().verify(
        made.signed.signature, made.signed.proposal_bytes, ec.ECDSA(hashes.SHA256())
    )


def brought(made, edit=lambda payload: None, **result):
    """What a peer of Org2MSP prepares of a proposal."""
    payload = result_of(made.signed, **result)
    return prepared(made.signed, payload, [endorsement(payload, signer("Org2MSP"))], edit)


def test_an_endorsed_proposal_becomes_a_signed_transaction(made, identity):
    envelope = brought(made, answer=b"answer")
    result, endorsements = made.result_in(envelope)
    ready = made.endorsed(result, {"Org2MSP": endorsements[0]}, identity)
    assert (ready.tx_id, ready.answer, ready.endorsers) == (made.tx_id, b"answer", ("Org2MSP",))
    identity.key.public_key().verify(
        ready.envelope.signature, ready.envelope.payload, ec.ECDSA(hashes.SHA256())
    )


def test_what_is_signed_is_what_a_peer_would_have_prepared(made, identity):
    """To the byte, but for the header of the action, which the script leaves out."""
    envelope = brought(made)
    result, endorsements = made.result_in(envelope)
    payload = common.Payload.FromString(
        made.endorsed(result, {"Org2MSP": endorsements[0]}, identity).envelope.payload
    )
    content = transaction.Transaction.FromString(payload.data)
    assert content.actions[0].header == payload.header.signature_header
    content.actions[0].ClearField("header")
    payload.data = content.SerializeToString()
    assert payload.SerializeToString() == envelope.payload


def another_creator(payload):
    payload.header.signature_header = common.SignatureHeader(creator=b"mallory").SerializeToString()


def another_call(payload):
    content = transaction.Transaction.FromString(payload.data)
    action = transaction.ChaincodeActionPayload.FromString(content.actions[0].payload)
    action.chaincode_proposal_payload = proposal.ChaincodeProposalPayload(input=b"").SerializeToString()
    content.actions[0].payload = action.SerializeToString()
    payload.data = content.SerializeToString()


def two_actions(payload):
    content = transaction.Transaction.FromString(payload.data)
    content.actions.append(content.actions[0])
    payload.data = content.SerializeToString()


def no_action(payload):
    payload.data = b""


def garbage(payload):
    payload.data = b"\xff"


@pytest.mark.parametrize("edit", [another_creator, another_call, two_actions, no_action, garbage])
def test_a_transaction_that_a_peer_altered_is_not_signed(made, edit):
    with pytest.raises(Untrue):
        made.result_in(brought(made, edit=edit))


@pytest.mark.parametrize(
    "lie",
    [
        {"chaincode": "model"},
        {"status": 201},
        {"status": 500},
        {"proposal_hash": b""},
        {"proposal_hash": b"x" * 32},
    ],
    ids=str,
)
def test_a_result_of_something_else_is_not_signed(made, lie):
    with pytest.raises(Untrue):
        made.result_in(brought(made, **lie))


def test_the_result_of_another_proposal_is_not_signed(made, identity):
    """The same call, endorsed once before: a replay."""
    other = Proposal.make(identity, "channel", "image", ["Get", b"\x00\xff", "ü"], {"tree": b"\x01"})
    payload = result_of(other.signed)
    with pytest.raises(Untrue, match="another proposal"):
        made.result_in(prepared(made.signed, payload, [endorsement(payload, signer("Org2MSP"))]))
