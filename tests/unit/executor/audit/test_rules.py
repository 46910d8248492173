"""Whose endorsements count: by the policies of keys, collections, definitions and the configuration."""

import io

import pytest
from support.memory.audited import revocation
from support.memory.blocks import CHAINCODES, Recorder, authority
from support.memory.envelopes import PEERS, envelope, writes

from chaincode.shim import peer_of
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.fabric import messages as m
from executor.audit.fabric.form import Verdict
from executor.audit.fabric.signers import Rule, Signer, signature_rule
from executor.audit.fabric.state import Key, Update, Version
from executor.audit.verify import verify_bundle

V = Verdict
OTHER = "other"
"""A chaincode that is not the project's: its records are nobody's business."""
ADMINS = [authority(name).issue("boss", "admin") for name in ("Org1MSP", "Org2MSP", "Org3MSP")]
ORG3 = m.policies.SignaturePolicyEnvelope.FromString(peer_of("Org3MSP").to_bytes())


class Channel:
    """A channel whose blocks a test fills, each transaction with the code that a peer would note."""

    def __init__(self):
        self.recorder = Recorder()
        self.recorder.define((*CHAINCODES, OTHER))
        self.count = 0

    def commit(self, *found):
        """Put transactions into one block: what each changes, who endorsed it, and its code."""
        raws, codes, updates = [], [], {}
        for results, endorsers, code in found:
            self.count += 1
            raws.append(envelope(OTHER, nonce=b"%d" % self.count, results=results, endorsers=endorsers))
            codes.append(int(code))
            if code is V.VALID:
                made = m.rwset.TxReadWriteSet()
                results(made)
                updates |= left(made, Version(len(self.recorder.blocks), len(raws) - 1))
        self.recorder.commit(raws, codes, updates)

    def define(self, name, policy):
        """Commit a definition of a chaincode with a policy of its own."""
        rules = m.definition.ChaincodeValidationInfo(
            validation_plugin="vscc", validation_parameter=policy.SerializeToString()
        )
        field = m.lifecycle.StateData(Bytes=rules.SerializeToString()).SerializeToString()
        key = f"namespaces/fields/{name}/ValidationInfo"
        self.write_lifecycle(key, field)

    def write_lifecycle(self, key, field):
        """Commit a key of the lifecycle's namespace."""
        part = m.kvrwset.KVRWSet()
        part.writes.add(key=key, value=field)
        made = m.rwset.TxReadWriteSet()
        made.ns_rwset.add(namespace="_lifecycle", rwset=part.SerializeToString())
        number = len(self.recorder.blocks)
        tx = self.recorder.envelope("_lifecycle", made, PEERS[0])
        self.recorder.commit([tx], [0], {Key("_lifecycle", "", key): Update(Version(number, 0), field, None)})

    def verify(self):
        raw, genesis = self.recorder.bundle(), self.recorder.genesis
        return verify_bundle(io.BytesIO(raw), Anchor(parse_anchor(genesis)))

    @property
    def wrong(self):
        return [f"{found.where} {found.claim}: {found.what}" for found in self.verify().failures]


def left(results, version):
    """What a transaction leaves."""
    found = {}
    for part in results.ns_rwset:
        for write in m.kvrwset.KVRWSet.FromString(part.rwset).writes:
            found[Key(part.namespace, "", write.key)] = Update(version, write.value, None)
        for hashed in part.collection_hashed_rwset:
            for write in m.kvrwset.HashedRWSet.FromString(hashed.hashed_rwset).hashed_writes:
                key = Key(part.namespace, hashed.collection_name, write.key_hash)
                found[key] = Update(version, write.value_hash or None, None)
    return found


def bound(policy, key="key"):
    """A change that writes a key and binds it to a policy of its own."""

    def change(results):
        part = m.kvrwset.KVRWSet()
        part.writes.add(key=key, value=b"value")
        entry = m.kvrwset.KVMetadataEntry(name="VALIDATION_PARAMETER", value=policy.SerializeToString())
        part.metadata_writes.add(key=key, entries=[entry])
        results.ns_rwset.add(namespace=OTHER, rwset=part.SerializeToString())

    return change


def own(org):
    """A change of an organisation's implicit collection."""

    def change(results):
        hashed = m.kvrwset.HashedRWSet()
        hashed.hashed_writes.add(key_hash=b"k" * 32, is_delete=True)
        part = results.ns_rwset.add(namespace=OTHER)
        part.collection_hashed_rwset.add(
            collection_name=f"_implicit_org_{org}", hashed_rwset=hashed.SerializeToString()
        )

    return change


def meta(rule):
    """An update that gives the application another policy for endorsements."""

    def change(group, read, write):
        policy = group.groups["Application"].policies["Endorsement"]
        made = m.policies.ImplicitMetaPolicy(sub_policy="Endorsement", rule=rule)
        policy.policy.value, policy.version = made.SerializeToString(), policy.version + 1
        read.groups["Application"].SetInParent()
        write.groups["Application"].policies["Endorsement"].CopyFrom(policy)

    return change


MAJORITY, THIRD = PEERS[:2], PEERS[2:]


@pytest.fixture
def channel():
    return Channel()


def test_h20_a_key_with_a_policy_of_its_own_takes_no_other_endorsements(channel):
    channel.commit((bound(ORG3), MAJORITY, V.VALID))
    channel.commit((writes(OTHER), MAJORITY, V.ENDORSEMENT_POLICY_FAILURE))
    channel.commit((bound(ORG3), MAJORITY, V.ENDORSEMENT_POLICY_FAILURE))
    channel.commit((writes(OTHER), THIRD, V.VALID))
    assert channel.wrong == []


def test_h19_a_write_against_the_policy_of_its_key_noted_as_valid_is_found(channel):
    channel.commit((bound(ORG3), MAJORITY, V.VALID))
    channel.commit((writes(OTHER), MAJORITY, V.VALID))
    found = channel.wrong
    assert len(found) == 1
    assert "do not satisfy the policy of other 'key'" in found[0]


def test_h20_a_key_whose_policy_changed_earlier_in_the_block_is_not_written(channel):
    first = (bound(ORG3), MAJORITY, V.VALID)
    channel.commit(
        first, *((writes(OTHER), peers, V.ENDORSEMENT_POLICY_FAILURE) for peers in (MAJORITY, THIRD))
    )
    assert channel.wrong == []
    channel.commit(
        (bound(ORG3, "another"), MAJORITY, V.VALID), (writes(OTHER, key="another"), MAJORITY, V.VALID)
    )
    assert "the policy of other 'another' changed earlier in this block" in channel.wrong[0]


def test_h20_a_policy_that_was_refused_itself_stops_nobody(channel):
    refused = (bound(ORG3), THIRD, V.ENDORSEMENT_POLICY_FAILURE)
    channel.commit(refused, (writes(OTHER), MAJORITY, V.VALID))
    assert channel.wrong == []


@pytest.mark.parametrize(("change", "code"), [({"version": 7}, V.VALID), ({}, V.VALID)])
def test_h20_the_version_of_a_keys_policy_is_nothing_to_a_peer(channel, change, code):
    policy = m.policies.SignaturePolicyEnvelope(**change)
    policy.MergeFrom(ORG3)
    channel.commit((bound(policy), MAJORITY, V.VALID))
    channel.commit((writes(OTHER), THIRD, code))
    assert channel.wrong == []


def test_h20_a_keys_policy_with_a_rule_that_means_nothing_is_satisfied_by_nobody(channel):
    policy = m.policies.SignaturePolicyEnvelope()
    policy.identities.extend(ORG3.identities)
    policy.rule.n_out_of.n = 1
    policy.rule.n_out_of.rules.add(signed_by=0)
    policy.rule.n_out_of.rules.add(signed_by=9)
    channel.commit((bound(policy), MAJORITY, V.VALID))
    channel.commit((writes(OTHER), THIRD, V.ENDORSEMENT_POLICY_FAILURE))
    assert channel.wrong == []


def test_h20_another_definition_counts_from_the_next_block_on(channel):
    alone = m.policy.ApplicationPolicy(signature_policy=ORG3)
    channel.commit((writes(OTHER), MAJORITY, V.VALID), (writes(OTHER), THIRD, V.ENDORSEMENT_POLICY_FAILURE))
    channel.define(OTHER, alone)
    channel.commit((writes(OTHER), MAJORITY, V.ENDORSEMENT_POLICY_FAILURE), (writes(OTHER), THIRD, V.VALID))
    assert channel.wrong == []
    channel.commit((writes(OTHER), MAJORITY, V.VALID))
    assert "do not satisfy the policy of other" in channel.wrong[0]


def test_h20_an_organisation_without_a_policy_for_endorsements_has_any_member_endorse_its_own(channel):
    """Its administrator alone can remove the policy; peers then ask for any of its members."""

    def removed(group, read, write):
        found = group.groups["Application"].groups["Org3MSP"]
        del found.policies["Endorsement"]
        found.version += 1
        inner = read.groups["Application"].groups["Org3MSP"]
        for names, kept in ((found.policies, inner.policies), (found.values, inner.values)):
            for name in names:
                kept[name].SetInParent()
        changed = write.groups["Application"].groups["Org3MSP"]
        changed.CopyFrom(inner)
        changed.version, changed.mod_policy = found.version, "Admins"

    client = [authority("Org3MSP").issue("x", "client")]
    channel.commit((own("Org3MSP"), client, V.ENDORSEMENT_POLICY_FAILURE))
    channel.recorder.update(removed, ADMINS[2:])
    channel.commit(
        (own("Org3MSP"), client, V.VALID), (own("Org3MSP"), MAJORITY, V.ENDORSEMENT_POLICY_FAILURE)
    )
    assert channel.wrong == []


def test_h18_a_weak_policy_that_was_in_force_for_a_while_is_told_with_its_blocks(channel):
    assert "2 of 3 for chaincode" in sentence(channel)
    channel.recorder.update(meta("ANY"), ADMINS)
    channel.recorder.update(meta("MAJORITY"), ADMINS)
    found = channel.verify()
    assert found.verified
    assert "1 of 3 for chaincode execution-record from block 2 on" in sentence(channel)
    assert [str(change) for change in found.chain.rules.changes[-2:]] == [
        "block 2: policy /Channel/Application/Endorsement changed",
        "block 3: policy /Channel/Application/Endorsement changed",
    ]


def test_h18_a_definition_that_one_organisation_alone_can_satisfy_is_told(channel):
    channel.define("model", m.policy.ApplicationPolicy(signature_policy=ORG3))
    assert "1 of 3 for chaincode model from block 2 on" in sentence(channel)
    changes = channel.verify().to_dict()["rules"]["changes"]
    assert changes[-1] == {"block": 2, "what": "chaincode model another definition, version 1"}


@pytest.mark.parametrize(
    "key", ["namespaces/", "namespaces/fields", "namespaces/fields/", "namespaces//", "other"]
)
def test_h20_a_key_of_the_lifecycle_that_defines_nothing_ends_no_audit(channel, key):
    before = sentence(channel)
    channel.write_lifecycle(key, b"anything")
    assert channel.verify().verified
    assert sentence(channel) == before


def test_h18_a_key_that_one_organisation_alone_can_write_is_told(channel):
    channel.commit((bound(ORG3), MAJORITY, V.VALID))
    assert "1 of 3 for a key of other from block 2 on" in sentence(channel)


def test_c16_revoked_members_and_clients_are_not_counted_as_endorsers(channel):
    client = authority("Org3MSP").issue("x", "client")
    channel.commit((writes(OTHER), [*MAJORITY, client], V.VALID))
    channel.recorder.update(revocation("Org3MSP", authority("Org3MSP").revoke(PEERS[2])), ADMINS[2:])
    channel.commit((writes(OTHER), PEERS, V.VALID))
    found = channel.verify()
    assert found.verified
    assert found.chain.endorsed_by == {2: 3}


def one(name):
    return Signer(name, None)


@pytest.mark.parametrize(
    ("least", "parts", "fewest"),
    [
        (0, [], 0),
        (1, [], None),
        (2, [one("A"), one("B"), one("C")], 2),
        (2, [one("A"), one("A"), one("B")], 1),
        (1, [Rule(2, [one("A"), one("B")]), Rule(1, [one("C")])], 1),
        (2, [Rule(2, [one("A"), one("B")]), Rule(2, [one("B"), one("C")])], 3),
        (2, [Rule(2, [one("A"), one("B")]), Rule(9, [one("C")])], None),
        (8, [one(f"O{number}") for number in range(20)] + [one("O0")], 1),
    ],
)
def test_the_fewest_that_satisfy_a_policy_are_never_counted_too_high(least, parts, fewest):
    assert Rule(least, parts).fewest == fewest


def test_the_fewest_of_a_policy_of_one_organisation_are_one():
    assert signature_rule(ORG3).fewest == 1
    assert signature_rule(ORG3).counted([]) == ()


def sentence(channel):
    return next(found for found in channel.verify().not_proven if found.startswith("That chaincode ran"))
