"""Whose endorsement it is: a certificate by the organisation's authority, for a peer, and its signature."""

import pytest
from cryptography.hazmat.primitives.asymmetric import utils
from support.scripted_peers import MSPS, endorsement, members, signer

from executor.ledger.gateway import Identity, IdentityError
from executor.ledger.gateway.identity import P256_ORDER
from executor.ledger.gateway.members import Members, Untrue
from executor.ledger.gateway.messages import response

RESULT = b"a result"


@pytest.fixture(scope="module")
def known():
    return Members(members(*MSPS))


def made(by, payload=RESULT, **fields):
    return response.Endorsement(**(endorsement(payload, by) | fields))


def test_a_peer_of_a_member_endorses_for_it(known):
    for msp in MSPS:
        assert known.endorser(RESULT, made(signer(msp))) == msp


@pytest.mark.parametrize(
    ("by", "why"),
    [
        (lambda: signer("Org9MSP"), "no organisation of the channel"),
        (lambda: signer("Org2MSP", issuer="Org3MSP"), "not issued by the authority of Org2MSP"),
        (lambda: signer("Org2MSP", unit="client"), "not a peer's"),
        (lambda: signer("Org2MSP", unit="admin"), "not a peer's"),
        (lambda: signer("Org2MSP", unit="Peer"), "not a peer's"),
    ],
    ids=["stranger", "another authority", "a user's", "an administrator's", "nearly a peer's"],
)
def test_h1_a_certificate_that_is_no_peers_endorses_nothing(known, by, why):
    with pytest.raises(Untrue, match=why):
        known.endorser(RESULT, made(by()))


def test_h1_an_endorser_that_another_key_signed_for_is_refused(known):
    """The certificate of one organisation's peer, with another's signature over it."""
    peer, thief = signer("Org2MSP"), signer("Org3MSP")
    with pytest.raises(Untrue, match="does not verify"):
        known.endorser(RESULT, made(peer, signature=thief.sign(RESULT + peer.creator)))


@pytest.mark.parametrize("signature", [b"", b"\x30\x00", b"x" * 70], ids=["none", "empty", "noise"])
def test_h1_what_is_no_signature_is_refused(known, signature):
    with pytest.raises(Untrue, match="does not verify"):
        known.endorser(RESULT, made(signer("Org2MSP"), signature=signature))


def test_h1_an_endorsement_of_another_result_is_refused(known):
    with pytest.raises(Untrue, match="does not verify"):
        known.endorser(RESULT, made(signer("Org2MSP"), b"another result"))


def test_h1_a_signature_that_peers_would_call_invalid_is_refused(known):
    """The other value of S verifies and makes the transaction invalid: whoever sent it spoils the write."""
    good = made(signer("Org2MSP"))
    r, s = utils.decode_dss_signature(good.signature)
    good.signature = utils.encode_dss_signature(r, P256_ORDER - s)
    with pytest.raises(Untrue, match="high S"):
        known.endorser(RESULT, good)


@pytest.mark.parametrize("raw", [b"", b"\xff", b"\x0a\x07Org2MSP", Identity])
def test_h1_an_endorser_that_cannot_be_read_is_refused(known, raw):
    raw = signer("Org2MSP").creator[:-40] if raw is Identity else raw
    with pytest.raises(Untrue, match="cannot be read"):
        known.endorser(RESULT, made(signer("Org2MSP"), endorser=raw))


def test_an_authority_that_is_no_certificate_is_refused():
    with pytest.raises(IdentityError, match="Org1MSP"):
        Members({"Org1MSP": b"-----BEGIN CERTIFICATE-----"})
