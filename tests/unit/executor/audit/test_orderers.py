"""Blocks count with the signatures of those who may make them: one orderer's, or a quorum's."""

import io

import pytest
from support.memory.audited import revocation
from support.memory.blocks import authority
from support.memory.dealt import BftRecorder, DealtRecorder, agree
from support.tampering import Export

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.fabric import messages as m
from executor.audit.fabric.messages import MalformedError
from executor.audit.fabric.view import View
from executor.audit.verify import verify_bundle

QUORUM = "and 3 consenters must"
LAST = 2


def made(kind=BftRecorder, **options):
    recorder = kind(**options)
    recorder.define()
    recorder.update(no_change, admins(recorder))
    return recorder


def no_change(group, read, write):
    """An update of a value that means nothing here, so that there is a configuration to order."""
    value = group.groups["Orderer"].values["Capabilities"]
    value.version += 1
    read.groups["Orderer"].SetInParent()
    write.groups["Orderer"].values["Capabilities"].CopyFrom(value)


def admins(recorder):
    return [authority(name).issue("boss", "admin") for name in recorder.organisations]


def judged(recorder, blocks=None):
    raw = recorder.bundle(blocks=blocks)
    return verify_bundle(io.BytesIO(raw), Anchor(parse_anchor(recorder.genesis)))


def failures(recorder, blocks=None):
    return {(found.claim, found.where): found.what for found in judged(recorder, blocks).failures}


def resigned(recorder, signers, view=None):
    """The blocks, with the last one signed anew by others."""
    block = m.common.Block.FromString(recorder.blocks[LAST])
    recorder.sign_by(block, signers, view)
    return [*recorder.blocks[:LAST], block.SerializeToString()]


@pytest.fixture(scope="module")
def bft():
    return made()


def test_blocks_that_a_quorum_signed_hold_by_whichever_header_it_names_itself(bft):
    found = judged(bft)
    assert found.verified, found.failures
    assert found.chain.orderers == dict.fromkeys(("Org1MSP", "Org2MSP", "Org3MSP"), 2)
    one, two, three, four = bft.consenters.items()
    for signers in ([two, three, four], [one[1], two, three[1]], [one, two, three, four]):
        assert not failures(bft, resigned(bft, signers))


def test_h18_too_few_signatures_are_no_quorum(bft):
    one, two, *_ = bft.consenters.items()
    for signers, names in (([one, two], "orderer1, orderer2"), ([one], "orderer1"), ([], "nobody who may")):
        found = failures(bft, resigned(bft, signers))
        assert found == {("orderers", f"block {LAST}"): f"it is signed by {names}, {QUORUM}"}


def test_h18_one_consenter_counts_once_however_it_names_itself(bft):
    one, two, *_ = bft.consenters.items()
    for signers in ([one, one, two], [one, one[1], two], [one, two, two[1], one[1]]):
        assert ("orderers", f"block {LAST}") in failures(bft, resigned(bft, signers))


def test_h18_no_other_orderer_and_no_member_counts_as_a_consenter(bft):
    one, two, *_ = bft.consenters.items()
    others = [
        authority("Org3MSP").issue("orderer9", "orderer"),
        authority("Org3MSP").issue("peer", "peer"),
        authority("Org3MSP").issue("boss", "admin"),
        authority("Org9MSP").issue("orderer3", "orderer"),
    ]
    for other in others:
        for named in (other, (9, other), (3, other)):
            assert ("orderers", f"block {LAST}") in failures(bft, resigned(bft, [one, two, named]))


def test_h18_a_signature_under_another_consenters_number_does_not_count(bft):
    one, two, three, _ = bft.consenters.items()
    assert failures(bft, resigned(bft, [one, two, (4, three[1])]))
    assert failures(bft, resigned(bft, [one, two, (0, three[1])]))


def test_h18_signatures_of_another_block_do_not_count(bft):
    last, other = (m.common.Block.FromString(bft.blocks[number]) for number in (LAST, LAST - 1))
    last.metadata.metadata[0] = other.metadata.metadata[0]
    assert ("orderers", f"block {LAST}") in failures(bft, [*bft.blocks[:LAST], last.SerializeToString()])


def test_h18_one_orderer_that_makes_another_block_is_found(bft):
    raw = Export.read(bft.bundle()).forged(LAST, bft.orderer, lambda block: None).write()
    found = verify_bundle(io.BytesIO(raw), Anchor(parse_anchor(bft.genesis))).failures
    assert [(item.claim, item.what) for item in found] == [
        ("orderers", f"it is signed by orderer1, {QUORUM}")
    ]


@pytest.mark.parametrize("view", [(0, LAST - 1), (0, LAST + 1), (1, LAST + 1)])
def test_h18_a_decision_that_does_not_follow_is_found_though_a_quorum_signed_it(bft, view):
    signers = list(bft.consenters.items())[:3]
    found = failures(bft, resigned(bft, signers, view))
    assert "after decision 1 of view 0" in found["orderers", f"block {LAST}"]
    assert not failures(bft, resigned(bft, signers, (3, LAST)))


def test_a_view_never_goes_back():
    assert View(2, 7).follows(View(2, 6))
    assert not View(1, 7).follows(View(2, 6))


@pytest.mark.parametrize("raw", [b"\x08", b"\x09" + bytes(9), b"\x2a\x09abc", b"\x08" + b"\xff" * 11])
def test_metadata_of_another_form_are_refused(raw):
    with pytest.raises(MalformedError):
        View.from_bytes(raw)


def test_metadata_with_more_than_is_needed_are_read():
    assert View.from_bytes(b"\x08\x85\x01\x10\x07\x18\x02\x22\x02\x01\x02\x2a\x01x") == View(133, 7)
    assert View.from_bytes(b"") == View(0, 0)


def test_h18_a_channel_that_begins_with_less_than_a_quorum_is_found(monkeypatch):
    whole = BftRecorder.configure

    def lowered(self):
        orderer, config = whole(self)
        agree(config.channel_group.groups["Orderer"], self.consenters.items(), quorum=1)
        return orderer, config

    monkeypatch.setattr(BftRecorder, "configure", lowered)
    found = failures(made())
    assert found["configuration", "block 0"] == "its policy for blocks is not 3 of its 4 consenters"


def changed(group, read, write, consenters, quorum):
    """Change consenters and policy by an update of all that it touches."""
    orderer = group.groups["Orderer"]
    agree(orderer, consenters, quorum)
    read.groups["Orderer"].SetInParent()
    target = write.groups["Orderer"]
    for name in ("ConsensusType", "Orderers"):
        orderer.values[name].version += 1
        target.values[name].CopyFrom(orderer.values[name])
    orderer.policies["BlockValidation"].version += 1
    target.policies["BlockValidation"].CopyFrom(orderer.policies["BlockValidation"])


@pytest.mark.parametrize(
    ("numbers", "quorum", "why"),
    [
        ((1, 2, 3, 4), 2, "its policy for blocks is not 3 of its 4 consenters"),
        ((1, 2, 3, 4), 4, "its policy for blocks is not 3 of its 4 consenters"),
        ((), 0, "its consenters are none, or two are one"),
        ((1, 1, 2, 3), 3, "its consenters are none, or two are one"),
    ],
)
def test_h18_administrators_cannot_lower_the_quorum(numbers, quorum, why):
    recorder = made()
    consenters = [(place, recorder.consenters[number]) for place, number in enumerate(numbers, 1)]
    recorder.update(
        lambda group, read, write: changed(group, read, write, consenters, quorum), admins(recorder)
    )
    assert failures(recorder)["configuration", f"block {LAST + 1}"] == why


def test_consenters_that_change_with_their_quorum_sign_what_follows():
    recorder = made()
    new = {**recorder.consenters, 4: authority("Org4MSP").issue("orderer5", "orderer")}
    recorder.update(lambda group, read, write: changed(group, read, write, new.items(), 3), admins(recorder))
    gone, recorder.consenters = recorder.consenters[4], new
    recorder.define(("image",))
    assert not failures(recorder)
    block = m.common.Block.FromString(recorder.blocks[-1])
    recorder.sign_by(block, [(1, new[1]), (2, new[2]), (4, gone)])
    assert ("orderers", f"block {block.header.number}") in failures(
        recorder, [*recorder.blocks[:-1], block.SerializeToString()]
    )


def test_one_organisation_cannot_have_two_versions_among_members_and_orderers():
    recorder, issuer = made(), authority("Org2MSP")
    crl = issuer.revoke(issuer.issue("gone", "client"))
    recorder.update(revocation("Org2MSP", crl), admins(recorder))
    with pytest.raises(MalformedError, match="two versions of 'Org2MSP'"):
        recorder.bundle()


def test_with_raft_dealt_out_each_orderer_signs_alone_and_no_other_member_does():
    recorder = made(DealtRecorder)
    assert not failures(recorder)
    for name, unit, allowed in (
        ("orderer2", "orderer", True),
        ("peer", "peer", False),
        ("x", "client", False),
    ):
        signer = authority("Org2MSP").issue(name, unit)
        raw = Export.read(recorder.bundle()).forged(LAST, signer, lambda block: None).write()
        found = verify_bundle(io.BytesIO(raw), Anchor(parse_anchor(recorder.genesis)))
        assert found.verified is allowed


def test_the_report_says_who_could_forge_split_or_stop(bft):
    found = judged(bft)
    assert found.to_dict()["consensus"] == {
        "kind": "BFT", "organisations": list(bft.organisations), "orderers": 4, "signatures_needed": 3,
        "owners": dict.fromkeys(bft.organisations, 1),
    }  # fmt: skip
    (sentence,) = [said for said in found.not_proven if said.startswith("That the orderers")]
    assert "without the others takes 3 organisations together" in sentence
    assert "two chains 2 organisations together" in sentence
    assert "stop the channel 2 organisations together" in sentence
    (alone,) = [said for said in judged(made(DealtRecorder)).not_proven if "alone could" in said]
    assert "Org1MSP, Org2MSP, Org3MSP, Org4MSP alone could make other blocks" in alone


def test_the_report_says_where_one_organisation_has_too_many_orderers():
    found = judged(made(organisations=("Org1MSP", "Org2MSP")))
    (sentence,) = [said for said in found.not_proven if said.startswith("That the orderers")]
    assert "without the others takes 2 organisations together, to show two chains Org1MSP alone" in sentence
    assert "stop the channel Org1MSP alone" in sentence
