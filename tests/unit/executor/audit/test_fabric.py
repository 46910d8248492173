"""The rules of a Fabric peer that no export of the other tests happens to need."""

import hashlib

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from support.memory import blocks
from support.memory.blocks import authority

from executor.audit.fabric import messages as m
from executor.audit.fabric.certificates import UntrustedError
from executor.audit.fabric.conflicts import Summary, find_conflict
from executor.audit.fabric.form import Verdict
from executor.audit.fabric.identity import ORDERS
from executor.audit.fabric.organisation import Members, Organisation
from executor.audit.fabric.policy import satisfies
from executor.audit.fabric.rwset import NamespaceSet
from executor.audit.fabric.state import Key, State, Update, Version

ORG = "Org1MSP"


def organisation(**changes):
    config = m.msp_config.FabricMSPConfig(name=ORG, root_certs=[authority(ORG).pem], **changes)
    config.fabric_node_ous.enable = True
    for role in ("client", "peer", "admin", "orderer"):
        getattr(config.fabric_node_ous, f"{role}_ou_identifier").organizational_unit_identifier = role
    return Organisation(m.msp_config.MSPConfig(config=config.SerializeToString()))


def policy(n, *roles):
    envelope = m.policies.SignaturePolicyEnvelope()
    envelope.rule.n_out_of.n = n
    for place, role in enumerate(roles):
        envelope.rule.n_out_of.rules.add(signed_by=place)
        wanted = m.principal.MSPRole(msp_identifier=ORG, role=role).SerializeToString()
        envelope.identities.add(principal_classification=0, principal=wanted)
    return envelope


def test_a_peer_is_a_member_and_a_peer_and_nothing_else():
    found = [organisation().identify(authority(ORG).issue("peer", "peer").certificate)]
    held = [satisfies(policy(1, role), found) for role in range(5)]
    assert held == [True, False, False, True, False]


def test_one_signer_fills_one_place_of_a_rule():
    found = [organisation().identify(authority(ORG).issue("peer", "peer").certificate)]
    assert not satisfies(policy(2, 0, 0), found)


def test_c16_a_certificate_of_two_roles_or_none_is_refused():
    maker = authority(ORG)
    assert organisation().identify(maker.issue("x", "staff").certificate).refusal
    assert not organisation().identify(maker.issue("x", "client").certificate).refusal


def test_c16_an_authority_is_no_member_and_a_strangers_certificate_is_nobodys():
    with pytest.raises(UntrustedError, match="authority"):
        organisation().identify(authority(ORG).pem)
    with pytest.raises(UntrustedError, match="0 chains"):
        organisation().identify(authority("Org2MSP").issue("peer", "peer").certificate)
    with pytest.raises(UntrustedError, match="no certificate"):
        organisation().identify(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")


def test_a_member_below_an_intermediate_authority_counts_and_one_beside_it_does_not():
    root, middle = blocks.Authority(ORG), blocks.Authority("between")
    root.certificate = root._sign(
        root.name, root.key.public_key(), 1, [(x509.BasicConstraints(True, 1), True)]
    )
    extensions = [(x509.BasicConstraints(True, 0), True)]
    middle.certificate = root._sign(middle.name, middle.key.public_key(), 2, extensions)
    pem = middle.certificate.public_bytes(serialization.Encoding.PEM)
    roots = [root.certificate.public_bytes(serialization.Encoding.PEM)]
    config = m.msp_config.FabricMSPConfig(name=ORG, root_certs=roots, intermediate_certs=[pem])
    found = Organisation(m.msp_config.MSPConfig(config=config.SerializeToString()))
    assert len(found.identify(middle.issue("x", "client").certificate).chain) == 2
    with pytest.raises(UntrustedError, match="issues intermediate"):
        found.identify(root.issue("y", "client").certificate)


def test_a_signature_with_the_higher_s_is_no_signature():
    member = authority(ORG).issue("peer", "peer")
    found = organisation().identify(member.certificate)
    signature = member.sign(b"message")
    assert found.signed(b"message", signature)
    r, s = decode_dss_signature(signature)
    assert not found.signed(b"message", encode_dss_signature(r, ORDERS["secp256r1"] - s))
    assert not found.signed(b"other", signature)
    assert not found.signed(b"message", b"")


def test_h20_a_signature_checked_ahead_counts_for_its_own_message_alone():
    signer = authority(ORG).issue("peer", "peer")
    member, signature = organisation().identify(signer.certificate), signer.sign(b"endorsed")
    member.foresee(b"endorsed", signature)
    assert not member.signed(b"another", signature)
    assert member.signed(b"endorsed", signature)
    member.foresee(b"another", signature)
    assert not member.signed(b"another", signature)
    member.foresee(b"another", signature)
    assert member.signed(b"endorsed", signature)
    member.foresee(b"endorsed", signature)
    member.forget()
    assert member.signed(b"endorsed", signature)


def test_h20_strangers_without_number_do_not_fill_the_memory_of_an_audit(monkeypatch):
    """What is remembered is bounded, and nothing that an error went through is kept with it."""
    members, most = Members([]), 8
    monkeypatch.setattr("executor.audit.fabric.organisation.MAX_REMEMBERED", most)
    for number in range(100):
        stranger = m.identities.SerializedIdentity(mspid="Org9MSP", id_bytes=b"%d" % number)
        for _ in range(2):
            with pytest.raises(UntrustedError, match="is no organisation of the channel"):
                members.identify(stranger.SerializeToString())
    assert len(members._known) <= most
    assert {type(found) for found in members._known.values()} == {str}


def test_a_revocation_list_of_another_authority_revokes_nobody():
    member, stranger = authority(ORG).issue("peer", "peer"), authority("Org2MSP")
    foreign = stranger.revoke(member)
    assert not organisation(revocation_list=[foreign]).identify(member.certificate).refusal
    own = authority(ORG).revoke(member)
    assert "revoked" in organisation(revocation_list=[own]).identify(member.certificate).refusal


def ranged(found, start="a", end="z", exhausted=True, merkle=None):
    part = m.kvrwset.KVRWSet()
    info = part.range_queries_info.add(start_key=start, end_key=end, itr_exhausted=exhausted)
    if merkle is not None:
        level, hashed = merkle
        summary = info.reads_merkle_hashes
        summary.max_degree, summary.max_level = 2, level
        summary.max_level_hashes.extend(hashed)
    else:
        info.raw_reads.SetInParent()
        for key, version in found:
            read = info.raw_reads.kv_reads.add(key=key)
            read.version.block_num, read.version.tx_num = version
    return [NamespaceSet.read(m.rwset.NsReadWriteSet(namespace="cc", rwset=part.SerializeToString()))]


@pytest.fixture
def state():
    made = State()
    made.apply({Key("cc", "", name): Update(Version(1, n), b"v", None) for n, name in enumerate("bcdefg")})
    yield made
    made.close()


ALL = [(name, (1, n)) for n, name in enumerate("bcdefg")]


def test_a_range_that_is_as_it_was_is_no_conflict(state):
    assert find_conflict(ranged(ALL), state, {}) is Verdict.VALID
    assert find_conflict(ranged(ALL[:2], end="d"), state, {}) is Verdict.VALID
    assert find_conflict(ranged(ALL[:3], end="d", exhausted=False), state, {}) is Verdict.VALID


@pytest.mark.parametrize("name", ["bb", "c", "f"])
def test_a_key_that_came_changed_or_went_in_the_block_is_a_phantom(state, name):
    for value in (b"new", None):
        update = {Key("cc", "", name): Update(Version(2, 0), value, None)}
        expected = Verdict.VALID if (name, value) == ("bb", None) else Verdict.PHANTOM_READ_CONFLICT
        assert find_conflict(ranged(ALL), state, update) is expected


def test_a_range_that_stands_as_hashes_is_compared_by_hashes(state):
    summary = Summary(2)
    for name, version in ALL:
        summary.add(name, Version(*version))
    merkle = summary.close()
    assert find_conflict(ranged([], merkle=merkle), state, {}) is Verdict.VALID
    update = {Key("cc", "", "c"): Update(Version(2, 0), b"x", None)}
    assert find_conflict(ranged([], merkle=merkle), state, update) is Verdict.PHANTOM_READ_CONFLICT


def test_the_hashes_of_a_range_are_those_of_its_reads():
    summary = Summary(2)
    for name, version in ALL[:3]:
        summary.add(name, Version(*version))
    reads = m.kvrwset.QueryReads()
    for name, (block, tx) in ALL[:3]:
        read = reads.kv_reads.add(key=name)
        read.version.block_num, read.version.tx_num = block, tx
    assert summary.close() == (1, [hashlib.sha256(reads.SerializeToString()).digest()])


def test_the_hashes_of_a_long_range_are_combined_level_by_level():
    """Three reads to a hash and three hashes to one above, for a degree of two."""
    reads = [(f"k{number:02d}", Version(1, number)) for number in range(10)]
    hashes = [Summary(2) for _ in range(3)]
    for number, (name, version) in enumerate(reads[:9]):
        hashes[number // 3].add(name, version)
    below = b"".join(part.close()[1][0] for part in hashes)
    summary = Summary(2)
    for name, version in reads[:9]:
        summary.add(name, version)
    assert summary.close() == (2, [hashlib.sha256(below).digest()])


def test_values_of_a_state_are_read_back_whether_they_wait_or_are_written():
    state, size = State(), 5000
    for number in range(40):
        value = bytes([number]) * size
        state.apply({Key("image", "", f"k{number}"): Update(Version(number, 0), value, None)})
        for earlier in (0, number // 2, number):
            assert state.value(Key("image", "", f"k{earlier}")) == bytes([earlier]) * size
    assert [value[:1] for _, _, value in state.items()] == sorted(
        (bytes([number]) for number in range(40)), key=lambda raw: f"k{raw[0]}"
    )
