"""Identities: read whole or refused, and signatures in the one form that Fabric takes."""

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa, utils
from support.scripted_peers import msp_folder

from executor.ledger.gateway import Identity, IdentityError
from executor.ledger.gateway.identity import P256_ORDER
from executor.ledger.gateway.messages import msp


def test_signatures_verify_and_have_the_low_s(identity):
    highs = 0
    for number in range(64):
        message = number.to_bytes(4, "big")
        signature = identity.sign(message)
        identity.key.public_key().verify(signature, message, ec.ECDSA(hashes.SHA256()))
        assert utils.decode_dss_signature(signature)[1] <= P256_ORDER // 2
        highs += utils.decode_dss_signature(identity.key.sign(message, ec.ECDSA(hashes.SHA256())))[1] > (
            P256_ORDER // 2
        )
    assert highs, "the library never gave a high S, so this test shows nothing"


def test_the_creator_is_msp_and_certificate(identity):
    found = msp.SerializedIdentity.FromString(identity.creator)
    assert (found.mspid, found.id_bytes) == ("Org1MSP", identity.certificate)


def test_b8_the_key_shows_in_no_printed_form(identity):
    number = identity.key.private_numbers().private_value
    assert str(number) not in repr(identity)
    assert "key" not in repr(identity)


@pytest.mark.parametrize("missing", ["signcerts", "keystore"])
def test_a_folder_without_certificate_or_key_is_no_identity(tmp_path, missing):
    folder = msp_folder(tmp_path / "msp")
    for path in (folder / missing).iterdir():
        path.unlink()
    with pytest.raises(IdentityError) as raised:
        Identity.load(folder, "Org1MSP")
    assert raised.value.code == "IDENTITY_UNKNOWN"
    (folder / missing).rmdir()
    with pytest.raises(IdentityError) as raised:
        Identity.load(folder, "Org1MSP")
    assert raised.value.code == "IDENTITY_UNKNOWN"


def test_the_files_may_have_any_name(tmp_path, identity):
    folder = msp_folder(tmp_path / "msp")
    (folder / "keystore/key.pem").rename(folder / "keystore/1f2e_sk")
    (folder / "signcerts/cert.pem").rename(folder / "signcerts/user1-cert.pem")
    assert Identity.load(folder, "Org1MSP").msp_id == "Org1MSP"


def test_of_two_keys_none_is_chosen(tmp_path):
    folder = msp_folder(tmp_path / "msp")
    (folder / "keystore/other.pem").write_bytes((folder / "keystore/key.pem").read_bytes())
    with pytest.raises(IdentityError, match="2 files") as raised:
        Identity.load(folder, "Org1MSP")
    assert raised.value.code == "IDENTITY_UNUSABLE"


@pytest.mark.parametrize(
    "make_key",
    [lambda: ec.generate_private_key(ec.SECP384R1()), lambda: rsa.generate_private_key(65537, 2048)],
    ids=["P-384", "RSA"],
)
def test_a_key_of_another_kind_is_refused(tmp_path, make_key):
    with pytest.raises(IdentityError, match="P-256"):
        Identity.load(msp_folder(tmp_path / "users/a/msp", make_key()), "Org1MSP")


def test_a_key_that_is_not_the_certificates_is_refused(tmp_path):
    other = ec.generate_private_key(ec.SECP256R1())
    with pytest.raises(IdentityError, match="do not belong together"):
        Identity.load(msp_folder(tmp_path / "users/a/msp", of=other), "Org1MSP")


def test_a_damaged_file_is_refused(tmp_path):
    folder = msp_folder(tmp_path / "users/a/msp")
    (folder / "keystore/key.pem").write_bytes(
        b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"
    )
    with pytest.raises(IdentityError) as raised:
        Identity.load(folder, "Org1MSP")
    assert raised.value.code == "IDENTITY_UNUSABLE"
