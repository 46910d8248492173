"""Whoever alters an export is found, whatever keys he has; the place is named."""

import io
import json

import pytest
from support.memory import blocks
from support.memory.audited import audited, revocation
from support.memory.blocks import Recorder, authority
from support.tampering import Export, OpenedTransaction, find_block, flipped

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.fabric import messages as m
from executor.audit.fabric.block import COMMIT_HASH, FLAGS, Block
from executor.audit.fabric.configuration import RootSet
from executor.audit.fabric.state import Update, Version
from executor.audit.replay.replay import NOT_REPLAYED
from executor.audit.replay.view import KINDS
from executor.audit.verify import verify_bundle

ESTIMATOR = b"\0estimator\0"


def test_an_untouched_export_holds_every_claim(verify):
    found = verify(audited().recorder.bundle())
    assert found.verified
    assert {claim.name for claim in found.claims} >= {
        "anchor", "hash chain", "orderers", "configuration", "creators", "endorsements", "validity flags",
        "commit hashes", "provenance", "task signatures", "shares", "ensembles", "models", "access", "export",
    }  # fmt: skip


def test_every_kind_of_record_of_the_chaincodes_is_replayed():
    contracts = audited().contracts.values()
    stored = {kind: (c.name, record) for c in contracts for kind, record in c.values.items()}
    assert stored == KINDS


def test_the_report_says_that_one_orderer_organisation_could_forge_blocks(verify, raw_export):
    assert any("OrdererMSP alone could" in sentence for sentence in verify(raw_export).not_proven)


def test_the_report_names_the_rules_of_the_chaincodes_that_it_does_not_ask_again(verify, raw_export):
    assert {*NOT_REPLAYED} <= {*verify(raw_export).not_proven}


def test_h20_one_byte_of_an_estimator_is_found(export, failures):
    number = find_block(export.blocks, ESTIMATOR)
    found = failures(export.with_block(number, flipped(export.blocks[number], b'"tree":"', 40)))
    assert found["hash chain"] == [f"block {number}: its transactions are not those of its header"]
    assert any(place.startswith(f"block {number} ") for place in found["creators"])


@pytest.mark.parametrize("word", [b'"recipient":"', b'"signature":"', b'"payload_digest":"sha256:'])
def test_h20_a_slot_a_task_signature_or_a_digest_is_found_though_all_hashes_fit(
    export, failures, recorder, word
):
    number = find_block(export.blocks, ESTIMATOR, word)

    def alter(block):
        block.data.data[0] = flipped(block.data.data[0], word, 3)

    found = failures(export.forged(number, recorder.orderer, alter))
    assert "hash chain" not in found
    assert "orderers" not in found
    assert any(place.startswith(f"block {number} ") for place in found["creators"])


def test_h20_an_endorsement_is_found_where_creator_and_orderer_signed_anew(export, failures, recorder):
    """A verifier that checks the creator's signature where the endorser's is meant passes this one."""
    number = find_block(export.blocks, ESTIMATOR)
    node = authority("Org1MSP").issue("node01", "client", node="node01", role="node")

    def swap(block):
        opened = OpenedTransaction(block.data.data[0])
        assert opened.creator == node.creator
        first, second = opened.endorsements
        first.signature, second.signature = second.signature, first.signature
        block.data.data[0] = opened.close(node)

    found = failures(export.forged(number, recorder.orderer, swap))
    assert set(found) == {"endorsements"}
    assert len(found["endorsements"]) == 1
    assert found["endorsements"][0].startswith(f"block {number} transaction 0")


def test_h20_a_transaction_endorsed_by_one_organisation_twice_is_found(export, failures, recorder):
    number = find_block(export.blocks, ESTIMATOR)
    node = authority("Org1MSP").issue("node01", "client", node="node01", role="node")

    def double(block):
        opened = OpenedTransaction(block.data.data[0])
        opened.endorsements[1].CopyFrom(opened.endorsements[0])
        block.data.data[0] = opened.close(node)

    assert set(failures(export.forged(number, recorder.orderer, double))) == {"endorsements"}


def test_c16_a_forged_certificate_is_found(export, failures, recorder):
    number = find_block(export.blocks, ESTIMATOR)
    forger = blocks.Authority("Org1MSP")
    forger.key = blocks._key("somebody else")
    fake = forger.issue("node01", "client", node="node01", role="node")

    def forge(block):
        opened = OpenedTransaction(block.data.data[0])
        header = m.common.SignatureHeader.FromString(opened.payload.header.signature_header)
        header.creator = fake.creator
        opened.payload.header.signature_header = header.SerializeToString()
        opened.tx.actions[0].header = header.SerializeToString()
        block.data.data[0] = opened.close(fake)

    found = failures(export.forged(number, recorder.orderer, forge))
    assert "0 chains lead from it to a root of Org1MSP" in found["creators"][0]


def test_h20_two_blocks_in_each_others_place_are_found(export, failures):
    first, second = export.blocks[6], export.blocks[7]
    found = failures(export.with_block(6, second).with_block(7, first))
    assert "block 6: it says that it is block 7" in found["hash chain"]
    assert "block 7: it follows another block" in found["hash chain"]


def test_h19_a_flipped_validity_flag_is_found(export, failures):
    number = find_block(export.blocks, ESTIMATOR)

    def flip(block):
        block.metadata.metadata[FLAGS] = b"\x0b"

    found = failures(export.edited(number, flip))
    assert set(found) == {"validity flags"}
    assert f"block {number} transaction 0" in found["validity flags"][0]
    assert "noted as MVCC_READ_CONFLICT and is VALID" in found["validity flags"][0]


def test_h19_a_flipped_flag_of_the_first_block_is_found(export, failures):
    def flip(block):
        block.metadata.metadata[FLAGS] = b"\xfe"

    found = failures(export.edited(0, flip))
    assert found == {"validity flags": ["block 0: its configuration is not noted as valid"]}


def test_h20_signatures_that_a_first_block_cannot_have_are_found(export, failures):
    def sign(block):
        block.metadata.metadata[0] = m.common.Block.FromString(export.blocks[1]).metadata.metadata[0]

    found = failures(export.edited(0, sign))
    assert found == {"orderers": ["block 0: a first block notes nothing of orderers, and this one does"]}


@pytest.mark.parametrize("place", [1, 3, 5])
def test_h18_an_orderer_that_writes_where_nobody_signs_is_reported_and_spoils_no_audit(export, verify, place):
    def note(block):
        said = m.common.Metadata(value=m.common.LastConfig(index=7).SerializeToString()).SerializeToString()
        block.metadata.metadata[place : place + 1] = [said]

    found = verify(export.edited(9, note))
    assert found.verified
    assert any("Block 9 is the first of 1 " in sentence for sentence in found.not_proven)
    assert not any("is the first of" in sentence for sentence in verify(export).not_proven)


def test_h19_a_lost_race_declared_won_is_found(export, failures):
    number = next(
        n for n, raw in enumerate(export.blocks) if len(m.common.Block.FromString(raw).data.data) == 2
    )

    def flip(block):
        assert block.metadata.metadata[FLAGS] == b"\0\x0b"
        block.metadata.metadata[FLAGS] = b"\0\0"

    found = failures(export.edited(number, flip))
    assert set(found) == {"validity flags"}
    assert "noted as VALID and is MVCC_READ_CONFLICT" in found["validity flags"][0]


def test_h19_an_altered_commit_hash_is_found_once(export, failures):
    def alter(block):
        block.metadata.metadata[COMMIT_HASH] = flipped(block.metadata.metadata[COMMIT_HASH], b"", 5)

    found = failures(export.edited(9, alter))
    assert set(found) == {"commit hashes"}
    assert found["commit hashes"][0] == "block 9: it is another one"


def test_h18_a_block_signed_by_nobody_who_may_is_found(export, failures):
    stranger = authority("Org1MSP").issue("peer", "peer")
    found = failures(export.forged(12, stranger, lambda block: None))
    assert "block 12: it is signed by nobody who may" not in found["orderers"]
    assert "block 12: it is signed by peer" in found["orderers"]


def test_h18_a_whole_block_forged_by_a_real_orderer_is_found_by_what_it_holds(export, failures, recorder):
    """One orderer can make a block; what nobody endorsed stays invalid, whatever the block says of itself."""
    results = m.rwset.TxReadWriteSet()
    part = m.kvrwset.KVRWSet()
    part.writes.add(key="\0image\0attestree/learner\x006.6.6\0", value=b"{}")
    results.ns_rwset.add(namespace="image", rwset=part.SerializeToString())
    liar = authority("Org1MSP").issue("data-scientist", "client", role="data-scientist")
    alone = recorder.envelope("image", results, liar, nonce=b"forged", endorsers=recorder.peers[:1])

    def forge(block):
        del block.data.data[:]
        block.data.data.append(alone)

    found = failures(export.forged(len(export.blocks) - 1, recorder.orderer, forge))
    assert any("Org1MSP do not satisfy the policy of image" in place for place in found["endorsements"])
    assert "orderers" not in found


def test_h20_a_transaction_that_stands_twice_is_found(export, failures, recorder):
    number = find_block(export.blocks, ESTIMATOR)
    again = m.common.Block.FromString(export.blocks[number]).data.data[0]

    def repeat(block):
        del block.data.data[:]
        block.data.data.append(again)

    found = failures(export.forged(len(export.blocks) - 1, recorder.orderer, repeat))
    assert any("DUPLICATE_TXID" in place for place in found["validity flags"])


def test_c16_a_transaction_of_a_revoked_member_is_found():
    recorder = Recorder()
    recorder.define()
    issuer = authority("Org3MSP")
    gone = issuer.issue("gone", "client", role="data-scientist")
    recorder.update(revocation("Org3MSP", issuer.revoke(gone)), [issuer.issue("boss", "admin")])
    recorder.commit([recorder.envelope("image", m.rwset.TxReadWriteSet(), gone)], ["VALID"], {})
    assert "its certificate is revoked" in _wrong(recorder)["creators"]


def test_h20_a_configuration_that_a_member_of_another_organisation_signed_is_found():
    recorder = Recorder()
    issuer, stranger = authority("Org3MSP"), authority("Org2MSP").issue("boss", "admin")
    recorder.update(revocation("Org3MSP", issuer.revoke(issuer.issue("gone", "client"))), [stranger])
    what = "the signatures do not allow a change of value /Channel/Application/Org3MSP/MSP"
    assert _wrong(recorder)["configuration"] == what


def test_h20_a_configuration_that_its_update_does_not_lead_to_is_found():
    recorder = Recorder()
    issuer = authority("Org3MSP")
    inner = revocation("Org3MSP", issuer.revoke(issuer.issue("gone", "client")))

    def more(group, read, write):
        inner(group, read, write)
        group.groups["Application"].policies["Endorsement"].policy.value = m.policies.ImplicitMetaPolicy(
            sub_policy="Endorsement", rule="ANY"
        ).SerializeToString()

    recorder.update(more, [issuer.issue("boss", "admin")])
    assert "its update leads to another configuration" in _wrong(recorder)["configuration"]


def test_h20_another_channel_is_found(verify, raw_export):
    found = verify(raw_export, Anchor(b"\1" * 32))
    assert [failure.claim for failure in found.failures] == ["anchor"]


def test_roots_from_outside_are_an_anchor_and_a_missing_one_is_named(verify, raw_export):
    names = ("Org1MSP", "Org2MSP", "Org3MSP", blocks.ORDERER)
    known = {name: [authority(name).certificate] for name in names}
    assert verify(raw_export, Anchor(roots=RootSet.of(known))).verified
    del known["Org1MSP"]
    found = verify(raw_export, Anchor(roots=RootSet.of(known)))
    assert [failure.what for failure in found.failures] == ["other roots than known for Org1MSP"]
    assert any("--genesis" in sentence for sentence in found.not_proven)


def test_h18_a_channel_in_which_one_organisation_is_all_of_them_is_found(verify, raw_export):
    """Its own root is among those known, and says nothing for the others' names."""
    names = ("Org1MSP", "Org2MSP", "Org3MSP", blocks.ORDERER)
    known = {name: [authority(name).certificate] for name in names}
    swapped = {**known, "Org1MSP": known["Org3MSP"], "Org2MSP": known["Org3MSP"]}
    found = verify(raw_export, Anchor(roots=RootSet.of({**swapped, "Org9MSP": known["Org1MSP"]})))
    assert [failure.what for failure in found.failures] == ["other roots than known for Org1MSP, Org2MSP"]


def test_h20_an_altered_copy_of_a_certificate_is_found(export, failures):
    made = Export(
        [(n, c.replace(b"MII", b"MIJ") if n.endswith("Org2MSP-0.pem") else c) for n, c in export.members]
    )
    assert set(failures(made)) == {"export"}


def test_h20_an_export_about_a_process_that_is_not_on_the_ledger_is_found(recorder, failures):
    found = failures(recorder.bundle("another-2026"))
    assert found == {
        "export": ["manifest.json: it is about process 'another-2026', which is not on the ledger"]
    }


def test_h20_a_record_of_an_unknown_version_is_found(export):
    """Enough endorsers let it pass; what this program cannot read it does not call verified."""
    number = find_block(export.blocks, b"\0process\0")
    (form,) = Block.from_bytes(export.blocks[number]).forms
    writes = (write for part in form.sets for write in part.writes)
    (write,) = (write for write in writes if str(write.key.name).startswith("\0process\0"))
    part = m.kvrwset.KVRWSet()
    later = json.loads(write.value) | {"version": 99}
    part.writes.add(
        key=write.key.name, value=json.dumps(later, separators=(",", ":"), sort_keys=True).encode()
    )
    results = m.rwset.TxReadWriteSet()
    results.ns_rwset.add(namespace="orchestration", rwset=part.SerializeToString())
    made = Recorder()
    made.define()
    creator = authority("Org1MSP").issue("data-scientist", "client", role="data-scientist")
    key = write.key
    left = {key: Update(Version(2, 0), part.writes[0].value, None)}
    made.commit([made.envelope("orchestration", results, creator)], ["VALID"], left)
    assert "process~fraud-2026: RECORD_VALUE: ProcessRecord is of version 99" in _wrong(made)["records"]


def _wrong(recorder):
    """Verify a channel of its own and return what is wrong with it, by claim."""
    found = verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))
    return {failure.claim: failure.what for failure in found.failures}
