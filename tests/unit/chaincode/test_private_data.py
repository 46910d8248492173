"""Private data and key-level endorsement: what the shim sends, and what the channel in memory makes of it."""

import hashlib

import pytest
from support.memory.ledger import POLICY_FAILURE, InvalidatedError, Ledger

from chaincode.probe import Probe
from chaincode.shim import (
    Context,
    Contract,
    Endorsement,
    MisuseError,
    PeerError,
    all_of,
    n_of,
    peer_of,
    submit,
    wire,
)  # fmt: skip

M = wire.Message
OWN, OTHERS = "Org1MSP", ("Org2MSP", "Org3MSP")
IMPLICIT = f"_implicit_org_{OWN}"
SECRET = b"a tree"


@pytest.fixture
def channel():
    ledger = Ledger(Probe())
    ledger.collections["pair"] = ("Org1MSP", "Org2MSP")
    return ledger


@pytest.fixture
def alice(channel):
    return channel.member("alice", OWN, role="admin")


def put(member, collection="pair", key="k", value=SECRET, **more):
    return member.submit("probe", "put_private", collection, key, transient={"value": value}, **more)


def read(member, function="get_private", collection="pair", key="k", **more):
    return member.endorse("probe", function, collection, key, **more)


def test_a_members_peer_holds_the_value_and_an_outsiders_the_hash_alone(alice):
    put(alice)
    assert read(alice).payload == SECRET
    assert read(alice, peer="Org2MSP").payload == SECRET
    outside = read(alice, peer="Org3MSP")
    assert outside.status == 500
    assert "PEER_REFUSED" in outside.message
    assert read(alice, "private_hash", peer="Org3MSP").payload.decode() == hashlib.sha256(SECRET).hexdigest()


def test_several_values_that_a_peer_does_not_hold_are_no_absent_values(alice):
    """A v3.1 peer leaves them out of its answer to many keys as if there were none."""
    put(alice, key="a")
    call = ("probe", "get_many_private", "pair", ["a", "absent"])
    assert alice.evaluate(*call) == {"found": 1}
    assert alice.code(*call, peer="Org3MSP") == "PEER_REFUSED"


def test_private_and_public_keys_of_one_name_are_two(alice):
    put(alice)
    alice.submit("probe", "put", "k", b"public")
    assert read(alice).payload == SECRET
    assert alice.endorse("probe", "get", "k").payload == b"public"


@pytest.mark.parametrize("purge", ["true", "false"])
def test_a_removed_value_is_gone(alice, purge):
    put(alice)
    alice.submit("probe", "delete_private", "pair", "k", purge)
    assert alice.code("probe", "get_private", "pair", "k") == "NOT_FOUND"
    assert read(alice, "private_hash").payload == b""


def test_range_of_a_collection_holds_its_keys_alone(alice):
    put(alice, key="a")
    put(alice, key="b")
    alice.submit("probe", "put", "c", b"public")
    found = alice.evaluate("probe", "range_private", "pair", "", "")
    assert [item["key"] for item in found] == ["a", "b"]


@pytest.mark.parametrize("name", ["", "a b", "a/b", "-a", "a\x00"])
def test_a_name_that_is_no_collection_is_refused(alice, name):
    assert alice.code("probe", "private_hash", name, "k") == "MISUSE"


def test_a_collection_that_nobody_defined_is_an_error_of_the_peer(alice):
    assert alice.code("probe", "private_hash", "unknown", "k") == "PEER_REFUSED"


def test_an_empty_private_value_is_refused(alice):
    assert alice.code("probe", "put_private", "pair", "k", transient={"value": b""}) == "MISUSE"


def test_an_organisations_own_collection_needs_its_endorsement_from_the_first_write_on(alice):
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        alice.submit("probe", "mark_private", IMPLICIT, "k", b"v", endorsers=OTHERS)
    alice.submit("probe", "mark_private", IMPLICIT, "k", b"v", endorsers=(OWN, *OTHERS))


def test_a_sealed_key_needs_the_endorsements_that_its_policy_names(alice):
    alice.submit("probe", "seal", "k", b"v", [OWN, "Org2MSP"], endorsers=OTHERS)
    assert alice.evaluate("probe", "sealed", "k") == {"organisations": [OWN, "Org2MSP"]}
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        alice.submit("probe", "put", "k", b"forged", endorsers=OTHERS)
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        alice.submit("probe", "seal", "k", b"forged", ["Org3MSP"], endorsers=OTHERS)
    alice.submit("probe", "put", "k", b"new", endorsers=(OWN, "Org2MSP"))
    assert alice.endorse("probe", "get", "k").payload == b"new"


def test_an_unsealed_key_needs_the_majority(alice):
    with pytest.raises(InvalidatedError, match=POLICY_FAILURE):
        alice.submit("probe", "put", "k", b"v", endorsers=(OWN,))
    assert alice.evaluate("probe", "sealed", "k") == {"organisations": None}


def test_a_policy_reads_as_it_was_written():
    policy = all_of(peer_of("Org2MSP"), n_of(1, peer_of("Org1MSP"), peer_of("Org3MSP")))
    assert Endorsement.from_bytes(policy.to_bytes()) == policy


@pytest.mark.parametrize("count", [0, 3, -1])
def test_a_rule_that_cannot_be_met_or_missed_is_refused(count):
    with pytest.raises(MisuseError):
        n_of(count, peer_of("Org1MSP"), peer_of("Org2MSP"))


def test_a_policy_of_others_than_peers_is_not_taken_for_one_of_peers():
    role = wire.principals.MSPRole(msp_identifier="Org1MSP", role=wire.principals.MSPRole.MEMBER)
    principal = wire.principals.MSPPrincipal(principal=role.SerializeToString())
    rule = wire.policies.SignaturePolicy(signed_by=0)
    raw = wire.policies.SignaturePolicyEnvelope(rule=rule, identities=[principal]).SerializeToString()
    with pytest.raises(wire.FormatError, match="others than peers"):
        Endorsement.from_bytes(raw)


def test_private_writes_and_policies_travel_in_the_same_batch(peer):
    peer.run("seal", "k", "v", '["Org1MSP"]', tx="seal")
    assert peer.types("seal") == ["WRITE_BATCH_STATE", "COMPLETED"]
    batch = wire.parse(wire.shim.WriteBatchState, peer.received[-2].payload)
    assert [(r.type, r.key, r.metadata.metakey) for r in batch.rec] == [
        (wire.shim.WriteRecord.PUT_STATE, "k", ""),
        (wire.shim.WriteRecord.PUT_STATE_METADATA, "k", "VALIDATION_PARAMETER"),
    ]


def test_an_older_peer_gets_private_writes_one_by_one(serve):
    _, peer = serve(batch=None)
    sent = {}

    def keep(_, message):
        sent[wire.type_name(message)] = message.payload
        return M.RESPONSE, b""

    for kind in (M.PUT_STATE, M.DEL_STATE, M.PURGE_PRIVATE_DATA, M.PUT_STATE_METADATA):
        peer.script[kind] = keep
    peer.run("put_private", "pair", "k", transient={"value": SECRET})
    put = wire.parse(wire.shim.PutState, sent["PUT_STATE"])
    assert (put.collection, put.key, put.value) == ("pair", "k", SECRET)
    peer.run("delete_private", "pair", "k", "false")
    assert wire.parse(wire.shim.DelState, sent["DEL_STATE"]).collection == "pair"
    peer.run("delete_private", "pair", "k", "true")
    assert wire.parse(wire.shim.PurgePrivateState, sent["PURGE_PRIVATE_DATA"]).collection == "pair"
    peer.run("seal", "k", "v", '["Org1MSP"]')
    sealed = wire.parse(wire.shim.PutStateMetadata, sent["PUT_STATE_METADATA"])
    assert Endorsement.from_bytes(sealed.metadata.value) == all_of(peer_of("Org1MSP"))


def test_a_range_of_private_data_forbids_writes(alice, channel):
    channel.contracts["probe"] = Both()
    assert alice.code("probe", "range_then_put") == "MISUSE"
    assert alice.code("probe", "put_then_range") == "MISUSE"


class Both(Probe):
    """What Fabric refuses: private ranges and writes in one transaction."""

    def __init__(self):
        super().__init__()
        for name, call in (("range_then_put", self.range_first), ("put_then_range", self.put_first)):
            self.functions[name] = type(self.functions["put"])(name, "submit", (), call, "")

    def range_first(self, ctx):
        list(ctx.private("pair").range("", ""))
        ctx.put("k", b"v")

    def put_first(self, ctx):
        ctx.put("k", b"v")
        list(ctx.private("pair").range("", ""))


class Counting(Contract):
    """Writes what another chaincode has read: the shim refuses that within one chaincode, the peer in any."""

    name = "counting"

    @submit
    def take(self, ctx: Context, function: str, arguments: list[str]) -> None:
        """Keep the probe's answer."""
        ctx.put("answer", ctx.invoke("probe", [function, *arguments]))


@pytest.mark.parametrize(
    ("function", "arguments"), [("range_page", ["a", "z", "5"]), ("range_private", ["pair", "a", "z"])]
)
def test_nothing_is_written_after_a_read_that_cannot_be_checked_at_commit(
    channel, alice, function, arguments
):
    channel.contracts["counting"] = Counting()
    with pytest.raises(PeerError, match="already performed"):
        alice.submit("counting", "take", function, arguments)
