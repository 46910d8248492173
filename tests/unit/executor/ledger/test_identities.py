"""Whose certificate, whose peers: as the network has them, or refused with what there is."""

from dataclasses import replace

import pytest
from support.scripted_peers import msp_folder

from executor import exits
from executor.errors import UsageError
from executor.ledger.gateway import Trust
from executor.ledger.identities import (
    authorities_of,
    check_organisation,
    check_trust,
    load_identity,
    peers_of,
)
from executor.network import Network


@pytest.fixture
def network(tmp_path):
    made = Network("attestree-x", tmp_path, 2, 1, 4, "image", 17)
    for name in made.organisations:
        msp_folder(made.msp_folder(name, "alice"))
        (made.folder(name) / "tlsca.pem").write_text(f"authority of {name}")
        (made.folder(name) / "ca.pem").write_text(f"signing authority of {name}")
    return made


def test_the_own_peer_goes_first_each_under_its_own_authority(network):
    found = [(peer.address, peer.msp, peer.tls_ca) for peer in peers_of(network, "org2")]
    assert found == [
        ("127.0.0.1:17251", "Org2MSP", b"authority of org2"),
        ("127.0.0.1:17151", "Org1MSP", b"authority of org1"),
    ]


def test_the_others_follow_in_a_circle(network):
    larger = replace(network, n_organisations=4)
    for name in ("org3", "org4"):
        (larger.folder(name)).mkdir(parents=True)
        (larger.folder(name) / "tlsca.pem").write_text(f"authority of {name}")
    found = [peer.msp for peer in peers_of(larger, "org3")]
    assert found == ["Org3MSP", "Org4MSP", "Org1MSP", "Org2MSP"]


def test_who_may_sign_is_what_this_host_knows(network):
    assert authorities_of(network) == {
        "Org1MSP": b"signing authority of org1",
        "Org2MSP": b"signing authority of org2",
    }


@pytest.mark.parametrize("agreement", [0, 3])
def test_an_agreement_that_cannot_be_reached_is_refused(network, agreement):
    with pytest.raises(UsageError) as raised:
        check_trust(network, Trust(agreement=agreement))
    assert (raised.value.code, raised.value.remedy) == (
        "AGREEMENT_RANGE",
        "Give an --agreement from 1 to 2.",
    )


def test_a_network_without_its_certificates_is_incomplete(network):
    (network.folder("org1") / "tlsca.pem").unlink()
    with pytest.raises(UsageError) as raised:
        peers_of(network, "org2")
    assert raised.value.code == "NETWORK_INCOMPLETE"


def test_an_unknown_organisation_is_named_with_those_there_are(network):
    with pytest.raises(UsageError) as raised:
        check_organisation(network, "org9")
    assert raised.value.code == "ORGANISATION_UNKNOWN"
    assert raised.value.remedy == "Choose one of org1, org2."


def test_an_unknown_identity_is_named_with_those_there_are(network):
    with pytest.raises(UsageError) as raised:
        load_identity(network, "org1", "bob")
    assert (raised.value.code, raised.value.cause) == (
        "IDENTITY_UNKNOWN",
        "Org1MSP has no identity 'bob' here",
    )
    assert raised.value.remedy == "Choose one of alice."
    assert exits.exit_code(raised.value) == exits.USAGE


def test_an_identity_that_cannot_be_used_is_to_be_enrolled_again(network):
    (network.msp_folder("org1", "alice") / "keystore/key.pem").write_bytes(b"damaged")
    with pytest.raises(UsageError) as raised:
        load_identity(network, "org1", "alice")
    assert raised.value.code == "IDENTITY_UNUSABLE"
    assert "Enrol it again" in raised.value.remedy
