"""Transactions with one thing wrong in them, signed and endorsed as if nothing were.

Each part of a transaction can be changed before the parts around it are made, so that hashes, ids and
signatures fit unless they are what is wrong.
"""

import hashlib

from executor.audit.fabric import messages as m
from support.memory.blocks import CHANNEL, START, authority

CREATOR = authority("Org1MSP").issue("data-scientist", "client", role="data-scientist")
PEERS = [authority(name).issue("peer", "peer") for name in ("Org1MSP", "Org2MSP", "Org3MSP")]


def envelope(chaincode="image", nonce=b"nonce", creator=CREATOR, endorsers=PEERS[:2], **changes):
    """A transaction of a member; each change takes a part and alters it, or returns the bytes for it."""

    def part(name, message):
        found = changes.pop(name, lambda _: None)(message)
        return found if isinstance(found, bytes) else message.SerializeToString()

    identifier = m.chaincode.ChaincodeID(name=chaincode, version="1")
    extension = m.proposal.ChaincodeHeaderExtension(chaincode_id=m.chaincode.ChaincodeID(name=chaincode))
    signature_header = m.common.SignatureHeader(creator=creator.creator, nonce=nonce)
    signature = part("signature", signature_header)
    tx_id = hashlib.sha256(signature_header.nonce + signature_header.creator).hexdigest()
    header = m.common.ChannelHeader(type=3, channel_id=CHANNEL, tx_id=tx_id)
    header.extension = part("extension", extension)
    header.timestamp.FromDatetime(START)
    channel = part("channel", header)
    action = m.transaction.ChaincodeActionPayload(chaincode_proposal_payload=b"asked")
    part("proposal", action)
    results = part("results", m.rwset.TxReadWriteSet())
    done = m.proposal.ChaincodeAction(results=results, chaincode_id=identifier)
    inner = changes.pop("action_header", signature)
    bound = hashlib.sha256(channel + inner + action.chaincode_proposal_payload).digest()
    answer = m.response.ProposalResponsePayload(proposal_hash=bound, extension=part("done", done))
    action.action.proposal_response_payload = part("answer", answer)
    answered = action.action.proposal_response_payload
    for peer in endorsers:
        action.action.endorsements.add(endorser=peer.creator, signature=peer.sign(answered + peer.creator))
    tx = m.transaction.Transaction()
    tx.actions.add(header=inner, payload=part("action", action))
    payload = m.common.Payload(data=part("tx", tx))
    payload.header.channel_header, payload.header.signature_header = channel, signature
    raw = part("payload", payload)
    made = part("envelope", m.common.Envelope(payload=raw, signature=creator.sign(raw)))
    assert not changes, f"no such parts: {sorted(changes)}"
    return made


def setting(**fields):
    """A change that sets fields of a part."""

    def change(message):
        for name, value in fields.items():
            if value is None:
                message.ClearField(name)
            else:
                setattr(message, name, value)

    return change


def replaced(raw):
    """A change that puts other bytes in place of a part."""
    return lambda _: raw


def followed_by(raw):
    """A change that appends bytes to a part."""
    return lambda message: message.SerializeToString() + raw


def writes(*names, key="key"):
    """A change that lets a transaction write a key of each of some chaincodes."""

    def change(results):
        part = m.kvrwset.KVRWSet()
        part.writes.add(key=key, value=b"value")
        for name in names:
            results.ns_rwset.add(namespace=name, rwset=part.SerializeToString())

    return change
