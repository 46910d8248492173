"""One member cannot make every audit fail: whatever it broadcasts is judged here with the code of a peer.

A peer checks in this order (Fabric 3.1.1): the envelope's form, its header, its creator, its id, its action
(core/common/validation/msgvalidation.go); the id in earlier blocks (txvalidator/v20/validator.go); what was
endorsed (plugindispatcher/dispatcher.go); policies (builtin/v20, statebased). The first fault is the code.
"""

import base64
import io
from dataclasses import replace

import pytest
from support.memory.blocks import ORDERER, Recorder, authority
from support.memory.envelopes import CREATOR, PEERS, envelope, followed_by, replaced, setting, writes

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.fabric import messages as m
from executor.audit.fabric.form import Verdict
from executor.audit.fabric.validation import kept_id
from executor.audit.verify import verify_bundle

GARBAGE = b"\xff\xff"
NESTED = b"\x7b" * 101 + b"\x7c" * 101
"""A field that nobody knows: groups, deeper than Python's decoder goes and not as deep as Go's."""
TOO_LARGE = b"\x78" + b"\xff" * 9 + b"\x7f"
"""A field that nobody knows: a number of more than 64 bits, which Go's decoder refuses and Python's takes."""
TOO_LONG = b"\x8a\x80\x80\x80\x80\x00"
"""The tag of the first field in six bytes, which Go's decoder takes and Python's refuses."""


def long_tag(message):
    raw = message.SerializeToString()
    assert raw[0] == 0x0A
    return TOO_LONG + raw[1:]


def action_twice(tx):
    tx.actions.add().CopyFrom(tx.actions[0])


def no_actions(tx):
    del tx.actions[:]


def other_chaincode(extension):
    extension.chaincode_id.name = "model"


def no_version(done):
    done.chaincode_id.version = ""


def event_of(name):
    return setting(events=m.event.ChaincodeEvent(chaincode_id=name, event_name="x").SerializeToString())


def spaces(*names):
    def change(results):
        for name in names:
            results.ns_rwset.add(namespace=name)

    return change


def no_set(results):
    results.ns_rwset.add(namespace="image", rwset=GARBAGE)


def hashed_write(collection):
    def change(results):
        hashed = m.kvrwset.HashedRWSet()
        hashed.hashed_writes.add(key_hash=b"k" * 32, value_hash=b"v" * 32)
        part = results.ns_rwset.add(namespace="image").collection_hashed_rwset.add(collection_name=collection)
        part.hashed_rwset = hashed.SerializeToString()

    return change


def read_of_nothing(results):
    part = m.kvrwset.KVRWSet()
    part.reads.add(key="gone").version.block_num = 1
    results.ns_rwset.add(namespace="image", rwset=part.SerializeToString())


NOBODY = authority("Org9MSP").issue("x", "client")
STAFF = authority("Org1MSP").issue("x", "staff")
V = Verdict
FORMS = {
    # The envelope and its payload: protoutil.GetEnvelopeFromBlock, UnmarshalPayload.
    "an envelope that is none": (V.INVALID_OTHER_REASON, {"envelope": replaced(GARBAGE)}),
    "an envelope of nothing": (V.BAD_COMMON_HEADER, {"envelope": replaced(b"")}),
    "an envelope with a number too large": (V.INVALID_OTHER_REASON, {"envelope": followed_by(TOO_LARGE)}),
    "a payload that is none": (V.BAD_PAYLOAD, {"payload": replaced(GARBAGE)}),
    "a payload with a number too large": (V.BAD_PAYLOAD, {"payload": followed_by(TOO_LARGE)}),
    # Headers: validateCommonHeader, before the creator's signature.
    "no header": (V.BAD_COMMON_HEADER, {"payload": setting(header=None)}),
    "a channel header that is none": (V.BAD_COMMON_HEADER, {"channel": replaced(GARBAGE)}),
    "a signature header that is none": (V.BAD_COMMON_HEADER, {"signature": replaced(GARBAGE)}),
    "a message": (V.BAD_COMMON_HEADER, {"channel": setting(type=0)}),
    "an orderer's transaction": (V.BAD_COMMON_HEADER, {"channel": setting(type=4)}),
    "a type of no name": (V.BAD_COMMON_HEADER, {"channel": setting(type=77)}),
    "an epoch": (V.BAD_COMMON_HEADER, {"channel": setting(epoch=1)}),
    "no nonce": (V.BAD_COMMON_HEADER, {"signature": setting(nonce=b"")}),
    "no creator": (V.BAD_COMMON_HEADER, {"signature": setting(creator=b"")}),
    # The creator: checkSignatureFromCreator, before type and id.
    "no signature": (V.BAD_CREATOR_SIGNATURE, {"envelope": setting(signature=b"")}),
    "another's signature": (V.BAD_CREATOR_SIGNATURE, {"envelope": setting(signature=NOBODY.sign(b"x"))}),
    "a creator of no organisation": (V.BAD_CREATOR_SIGNATURE, {"creator": NOBODY}),
    "a creator of no role": (V.BAD_CREATOR_SIGNATURE, {"creator": STAFF}),
    "another channel": (V.BAD_CREATOR_SIGNATURE, {"channel": setting(channel_id="other")}),
    "an update and no signature": (
        V.BAD_CREATOR_SIGNATURE,
        {"channel": setting(type=2), "envelope": setting(signature=b"")},
    ),
    # Type and id: ValidateTransaction after the signature.
    "an update": (V.UNSUPPORTED_TX_PAYLOAD, {"channel": setting(type=2, tx_id="wrong")}),
    "another id": (V.BAD_PROPOSAL_TXID, {"channel": setting(tx_id="0" * 64)}),
    "an id in capitals": (V.BAD_PROPOSAL_TXID, {"channel": setting(tx_id="A" * 64)}),
    "no id": (V.BAD_PROPOSAL_TXID, {"channel": setting(tx_id="")}),
    # The action: validateEndorserTransaction.
    "no data": (V.INVALID_ENDORSER_TRANSACTION, {"tx": replaced(b"")}),
    "data that are none": (V.INVALID_ENDORSER_TRANSACTION, {"tx": replaced(GARBAGE)}),
    "no action": (V.INVALID_ENDORSER_TRANSACTION, {"tx": no_actions}),
    "two actions": (V.INVALID_ENDORSER_TRANSACTION, {"tx": action_twice}),
    "an action with no header": (V.INVALID_ENDORSER_TRANSACTION, {"action_header": b""}),
    "an action whose header is none": (V.INVALID_ENDORSER_TRANSACTION, {"action_header": GARBAGE}),
    "an action by nobody": (
        V.INVALID_ENDORSER_TRANSACTION,
        {"action_header": m.common.SignatureHeader(nonce=b"n").SerializeToString()},
    ),
    "an action that is none": (V.INVALID_ENDORSER_TRANSACTION, {"action": replaced(GARBAGE)}),
    "an answer that is none": (V.INVALID_ENDORSER_TRANSACTION, {"answer": replaced(GARBAGE)}),
    "an answer to another proposal": (
        V.INVALID_ENDORSER_TRANSACTION,
        {"answer": setting(proposal_hash=b"other")},
    ),
    # GetProposalHash2 computes nothing from nothing, though the hash would fit.
    "no proposal, and its hash": (
        V.INVALID_ENDORSER_TRANSACTION,
        {"proposal": setting(chaincode_proposal_payload=b"")},
    ),
    # What was endorsed: Dispatch.
    "an extension that is none": (V.BAD_HEADER_EXTENSION, {"extension": replaced(GARBAGE)}),
    "an extension that is none, and no results": (
        V.BAD_HEADER_EXTENSION,
        {"extension": replaced(GARBAGE), "done": replaced(b"")},
    ),
    # GetPayloads refuses an answer without an extension.
    "no results": (V.BAD_RESPONSE_PAYLOAD, {"done": replaced(b"")}),
    "no results, and no chaincode": (
        V.BAD_RESPONSE_PAYLOAD,
        {"extension": replaced(b""), "done": replaced(b"")},
    ),
    "results that are none": (V.BAD_RESPONSE_PAYLOAD, {"done": replaced(GARBAGE)}),
    "sets that are none": (V.BAD_RWSET, {"results": replaced(GARBAGE)}),
    "a set that is none": (V.BAD_RWSET, {"results": no_set}),
    "a set that is none, and no chaincode": (
        V.BAD_RWSET,
        {"results": no_set, "extension": replaced(b"")},
    ),
    "no chaincode in the header": (V.INVALID_OTHER_REASON, {"extension": replaced(b"")}),
    "no chaincode in the answer": (
        V.INVALID_OTHER_REASON,
        {"results": spaces("image"), "done": setting(chaincode_id=None)},
    ),
    "a chaincode of no name": (V.INVALID_CHAINCODE, {"chaincode": ""}),
    "another chaincode in the header": (V.INVALID_CHAINCODE, {"extension": other_chaincode}),
    "a chaincode of no version": (V.INVALID_CHAINCODE, {"done": no_version}),
    "an event that is none": (V.INVALID_OTHER_REASON, {"done": setting(events=GARBAGE)}),
    "an event of another chaincode": (V.INVALID_OTHER_REASON, {"done": event_of("model")}),
    "a chaincode twice": (V.ILLEGAL_WRITESET, {"results": spaces("image", "image")}),
    "a chaincode twice, that nobody knows": (
        V.ILLEGAL_WRITESET,
        {"chaincode": "gone", "results": spaces("gone", "gone")},
    ),
    # Policies: GetInfoForValidate, then the plugin.
    "a chaincode that nobody knows": (V.INVALID_CHAINCODE, {"chaincode": "gone"}),
    "a system chaincode": (V.INVALID_CHAINCODE, {"chaincode": "lscc"}),
    "a write to a system chaincode": (V.INVALID_CHAINCODE, {"results": writes("lscc")}),
    "a write to a chaincode of no name": (V.INVALID_CHAINCODE, {"results": writes("")}),
    "nobody's endorsement": (V.ENDORSEMENT_POLICY_FAILURE, {"endorsers": []}),
    "one endorsement": (V.ENDORSEMENT_POLICY_FAILURE, {"endorsers": PEERS[:1]}),
    "one endorsement twice": (V.ENDORSEMENT_POLICY_FAILURE, {"endorsers": PEERS[:1] * 2}),
    "clients' endorsements": (
        V.ENDORSEMENT_POLICY_FAILURE,
        {"endorsers": [CREATOR, authority("Org2MSP").issue("x", "client")]},
    ),
    "a write to the lifecycle by one": (
        V.ENDORSEMENT_POLICY_FAILURE,
        {"chaincode": "_lifecycle", "results": writes("_lifecycle"), "endorsers": PEERS[:1]},
    ),
    "a collection that nobody knows": (V.ENDORSEMENT_POLICY_FAILURE, {"results": hashed_write("gone")}),
    "the collection of an organisation that nobody knows": (
        V.ENDORSEMENT_POLICY_FAILURE,
        {"results": hashed_write("_implicit_org_Org9MSP")},
    ),
    "another's collection": (
        V.ENDORSEMENT_POLICY_FAILURE,
        {"results": hashed_write("_implicit_org_Org3MSP")},
    ),
    # Reads: kvledger/txmgmt/validation.
    "a read of what is not there": (V.MVCC_READ_CONFLICT, {"results": read_of_nothing}),
    # Nothing is wrong with these, whatever other readers say.
    "an event of its own": (V.VALID, {"done": event_of("image")}),
    "groups that nobody knows": (V.VALID, {"envelope": followed_by(NESTED)}),
    "groups that nobody knows in the payload": (V.VALID, {"payload": followed_by(NESTED)}),
    "a tag in six bytes": (V.VALID, {"envelope": long_tag}),
    "a tag in six bytes in the answer": (V.VALID, {"answer": long_tag}),
    "a fault of policy behind groups that nobody knows": (
        V.ENDORSEMENT_POLICY_FAILURE,
        {"endorsers": [], "channel": followed_by(NESTED)},
    ),
}


@pytest.mark.parametrize(("code", "changes"), FORMS.values(), ids=FORMS)
def test_h20_a_transaction_with_one_fault_has_the_code_of_a_peer(code, changes):
    assert wrong([(envelope(**changes), code)]) == []


@pytest.mark.parametrize("word", [b"X", b"PRIVATE KEY", b""])
def test_h20_a_certificate_under_another_word_is_the_same_to_a_peer(word):
    """Go's reader of PEM is asked for the first block, and not what it is called."""
    pem = CREATOR.certificate.replace(b"CERTIFICATE", word)
    for spelt in (pem, b"something before\n" + pem + b"something behind"):
        other = replace(CREATOR, certificate=spelt)
        assert wrong([(envelope(creator=other), V.VALID)]) == []
        assert wrong([(envelope(creator=other, endorsers=[]), V.ENDORSEMENT_POLICY_FAILURE)]) == []


def test_h20_a_certificate_behind_another_block_is_not_looked_at():
    first = b"-----BEGIN X-----\n" + base64.b64encode(b"no certificate") + b"\n-----END X-----\n"
    other = replace(CREATOR, certificate=first + CREATOR.certificate)
    assert wrong([(envelope(creator=other), V.BAD_CREATOR_SIGNATURE)]) == []


@pytest.mark.parametrize(
    "changes",
    [
        {"extension": replaced(GARBAGE)},
        {"extension": replaced(b"")},
        {"done": replaced(b"")},
        {"results": no_set},
        {"chaincode": "gone"},
        {"done": event_of("model")},
        {"results": spaces("image", "image")},
        {"endorsers": []},
    ],
)
def test_h20_a_used_id_is_found_before_what_was_endorsed_is_looked_at(changes):
    first = envelope()
    assert wrong([(first, V.VALID)], [(envelope(**changes), V.DUPLICATE_TXID)]) == []


@pytest.mark.parametrize(
    ("code", "changes"),
    [
        (V.BAD_COMMON_HEADER, {"channel": setting(epoch=1)}),
        (V.BAD_CREATOR_SIGNATURE, {"envelope": setting(signature=b"")}),
        (V.INVALID_ENDORSER_TRANSACTION, {"tx": replaced(b"")}),
        (V.INVALID_CHAINCODE, {"chaincode": "gone"}),
        (V.BAD_PROPOSAL_TXID, {"channel": setting(tx_id="")}),
    ],
)
def test_h20_the_id_of_an_invalid_transaction_is_used(code, changes):
    """Peers keep the id of every transaction; without one in its header, the id that it should have had."""
    assert wrong([(envelope(**changes), code)], [(envelope(), V.DUPLICATE_TXID)]) == []


def test_h20_an_id_that_only_looks_like_the_bytes_of_another_is_another():
    """Somebody with time finds a nonce whose hash is text, and gives that text to another one as its id."""
    text = "x" * 32
    assert kept_id(text.encode().hex()) == text.encode()
    assert kept_id(text) != text.encode()
    assert len(kept_id("")) != len(kept_id("0" * 64))


def test_h20_an_id_used_twice_in_one_block_counts_the_first_time_it_is_valid():
    first, second = envelope(endorsers=[]), envelope()
    found = [(first, V.ENDORSEMENT_POLICY_FAILURE), (second, V.VALID), (second, V.DUPLICATE_TXID)]
    assert wrong(found) == []


@pytest.mark.parametrize("code", [V.ENDORSEMENT_POLICY_FAILURE, V.INVALID_CHAINCODE])
def test_h20_of_two_chaincodes_at_fault_a_peer_names_either(code):
    """A peer goes through the chaincodes of a transaction in the order of a Go map, which is none."""
    both = envelope(endorsers=[], results=writes("image", "gone"))
    assert wrong([(both, code)]) == []


def test_h19_a_code_that_no_peer_would_note_is_found_all_the_same():
    both = envelope(endorsers=[], results=writes("image", "gone"))
    for code in (V.VALID, V.MVCC_READ_CONFLICT, V.INVALID_OTHER_REASON):
        assert wrong([(both, code)])


def test_h20_the_id_of_a_configuration_is_used_by_the_orderer_that_signed_it():
    orderer = authority(ORDERER).issue("orderer1", "orderer")
    assert wrong([(envelope(creator=orderer, nonce=b"n"), V.DUPLICATE_TXID)]) == []


def wrong(*blocks):
    """Put transactions into blocks, each with the code that a peer noted, and return what an audit finds."""
    recorder = Recorder()
    recorder.define()
    for block in blocks:
        raws, codes = zip(*block, strict=True)
        recorder.commit(list(raws), [int(code) for code in codes], {})
    found = verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))
    return [f"{failure.where} {failure.claim}: {failure.what}" for failure in found.failures]
