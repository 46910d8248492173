import copy
import pickle
import traceback
from dataclasses import fields, replace

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from protocol import canonical, ed25519
from protocol.digest import Digest
from protocol.errors import DataError, IdentifierError, RecordError, SignatureError
from protocol.signing import SigningKey, VerifyKey, sign, signed_bytes, verify
from protocol.task.statement import Action, TaskStatement, sign_statement, verify_statement

KEY, OTHER = SigningKey(bytes(range(32))), SigningKey(b"\x2a" * 32)
DOMAIN = "attestree/test"
STATEMENT = TaskStatement(
    process="fraud-2026",
    node="node07",
    iteration=3,
    action=Action.SHARE,
    image_id=Digest.of(b"image"),
    parameter_hash=Digest.of(b"parameters"),
    inputs_digest=Digest.of(b"inputs"),
    payload_digest=Digest.of(b"payload"),
)

# Every encoding of the eight points of small order, second spellings included: under such a key one signature
# fits many messages. y = 0, 1, -1 and the two y of order eight, with either sign, and y + p where it fits.
SMALL_ORDER = [
    "0000000000000000000000000000000000000000000000000000000000000000",
    "0000000000000000000000000000000000000000000000000000000000000080",
    "0100000000000000000000000000000000000000000000000000000000000000",
    "0100000000000000000000000000000000000000000000000000000000000080",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
    "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
    "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
]


def refusal_of(call, *arguments):
    with pytest.raises(SignatureError) as refusal:
        call(*arguments)
    return refusal.value.code


def compress(point):
    x, y, z, _ = point
    inverse = pow(z, -1, ed25519.PRIME)
    x, y = x * inverse % ed25519.PRIME, y * inverse % ed25519.PRIME
    return (y | (x & 1) << 255).to_bytes(32, "little")


def test_the_key_pair_is_that_of_the_standard():
    # RFC 8032, section 7.1, test 1.
    key = SigningKey(bytes.fromhex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60"))
    assert str(key.verify_key) == "ed25519:d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a"
    assert VerifyKey.parse(str(key.verify_key)) == key.verify_key


def test_what_is_signed_is_preamble_domain_and_digest():
    assert signed_bytes("a/b", b"message") == b"attestree signature v1\0\x03a/b" + Digest.of(b"message").raw
    assert signed_bytes("a/b", Digest.of(b"message")) == signed_bytes("a/b", b"message")


def test_a_signature_verifies():
    signature = sign(KEY, DOMAIN, b"message")
    assert verify(KEY.verify_key, DOMAIN, b"message", signature) is None
    assert verify(KEY.verify_key, DOMAIN, Digest.of(b"message"), signature) is None
    assert sign(KEY, DOMAIN, b"message") == signature


def test_b3_signature_by_another_tasks_key_is_refused():
    signature = sign_statement(OTHER, STATEMENT)
    assert refusal_of(verify_statement, KEY.verify_key, STATEMENT, signature) == "SIGNATURE_INVALID"


def test_signature_for_another_purpose_is_refused():
    signature = sign(KEY, DOMAIN, b"message")
    assert refusal_of(verify, KEY.verify_key, DOMAIN + "/other", b"message", signature) == "SIGNATURE_INVALID"


def test_b5_signature_without_the_domain_is_refused():
    bare = Ed25519PrivateKey.from_private_bytes(bytes(range(32))).sign(STATEMENT.to_bytes())
    assert refusal_of(verify_statement, KEY.verify_key, STATEMENT, bare) == "SIGNATURE_INVALID"


def test_domain_and_message_do_not_run_into_each_other():
    assert signed_bytes("a/b", b"") != signed_bytes("a", b"/b")
    assert len({signed_bytes(domain, b"m") for domain in ("a", "a/a", "aa", "a-a")}) == 4


@pytest.mark.parametrize("position", range(64))
def test_signature_with_one_bit_turned_is_refused(position):
    signature = bytearray(sign(KEY, DOMAIN, b"message"))
    signature[position] ^= 1
    assert refusal_of(verify, KEY.verify_key, DOMAIN, b"message", bytes(signature)) == "SIGNATURE_INVALID"


def test_b7_second_form_of_a_signature_is_refused():
    signature = sign(KEY, DOMAIN, b"message")
    s = int.from_bytes(signature[32:], "little") + ed25519.ORDER
    again = signature[:32] + s.to_bytes(32, "little")
    assert refusal_of(verify, KEY.verify_key, DOMAIN, b"message", again) == "SIGNATURE_INVALID"


@pytest.mark.parametrize("signature", [b"", bytes(63), bytes(65), None, "00" * 64, bytearray(64)])
def test_signature_of_another_size_or_type_is_refused(signature):
    assert refusal_of(verify, KEY.verify_key, DOMAIN, b"message", signature) == "SIGNATURE_INPUT"


@pytest.mark.parametrize("domain", ["", "A", "a b", "a/", "/a", "a\0", "a" * 65, "é", None, b"a", "a\n"])
def test_text_that_is_no_domain_is_refused(domain):
    assert refusal_of(sign, KEY, domain, b"message") == "SIGNATURE_DOMAIN"


def test_d21_domain_just_under_its_limit_is_accepted():
    assert sign(KEY, "a" * 64, b"message")


@pytest.mark.parametrize("message", [None, "message", bytearray(b"m"), 7])
def test_only_bytes_and_digests_are_signed(message):
    assert refusal_of(sign, KEY, DOMAIN, message) == "SIGNATURE_INPUT"


def test_raw_public_bytes_are_no_checked_key():
    assert refusal_of(verify, KEY.verify_key.raw, DOMAIN, b"m", bytes(64)) == "SIGNATURE_INPUT"


@pytest.mark.parametrize("encoding", SMALL_ORDER)
def test_b12_public_key_of_small_order_is_refused(encoding):
    assert refusal_of(VerifyKey, bytes.fromhex(encoding)) == "KEY_WEAK"
    assert refusal_of(VerifyKey.parse, "ed25519:" + encoding) == "KEY_WEAK"


def test_b12_the_list_of_small_orders_is_complete():
    torsion = ed25519._decompress(bytes.fromhex(SMALL_ORDER[10]))
    points, point = set(), ed25519.IDENTITY
    for _ in range(8):
        points.add(compress(point))
        point = ed25519._add(point, torsion)
    second_spellings = {raw for raw in map(bytes.fromhex, SMALL_ORDER) if raw not in points}
    assert len(points) == 8
    assert points <= set(map(bytes.fromhex, SMALL_ORDER))
    # What is left spells y = 0 or 1 as y + p, or gives a sign to x = 0.
    assert len(second_spellings) == 6


def test_b12_one_signature_would_fit_every_message_under_a_weak_key():
    # Why the check is needed: with the identity as key and R, and S = 0, the usual verifier accepts anything.
    identity = bytes.fromhex(SMALL_ORDER[2])
    for message in (b"any message", b"any other message"):
        Ed25519PublicKey.from_public_bytes(identity).verify(identity + bytes(32), message)


def test_b12_public_key_of_mixed_order_is_refused():
    point = ed25519._decompress(KEY.verify_key.raw)
    torsion = ed25519._decompress(bytes.fromhex(SMALL_ORDER[10]))
    assert refusal_of(VerifyKey, compress(ed25519._add(point, torsion))) == "KEY_WEAK"


def test_b12_public_key_off_the_curve_is_refused():
    assert refusal_of(VerifyKey, (2).to_bytes(32, "little")) == "KEY_WEAK"


@pytest.mark.parametrize("excess", range(19))
def test_b12_second_spelling_of_a_public_key_is_refused(excess):
    for sign_bit in (0, 1 << 255):
        assert refusal_of(VerifyKey, (ed25519.PRIME + excess | sign_bit).to_bytes(32, "little")) == "KEY_WEAK"


@pytest.mark.parametrize("seed", range(5))
def test_honest_public_keys_are_accepted(seed):
    key = Ed25519PrivateKey.from_private_bytes(Digest.of(bytes([seed])).raw).public_key().public_bytes_raw()
    assert VerifyKey(key).raw == key


@pytest.mark.parametrize("raw", [b"", bytes(31), bytes(33), None, "00" * 32, bytearray(32)])
def test_keys_of_another_size_or_type_are_refused(raw):
    assert refusal_of(VerifyKey, raw) == "KEY_LENGTH"
    assert refusal_of(SigningKey, raw) == "KEY_LENGTH"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00" * 32,
        "ed25519:" + "00" * 31,
        "ed25519:" + "AA" * 32,
        "x25519:" + "00" * 32,
        "ed25519:" + "00" * 32 + "\n",
        None,
        7,
    ],
)
def test_another_spelling_of_a_public_key_is_refused(text):
    assert refusal_of(VerifyKey.parse, text) == "KEY_TEXT"


def test_b8_the_private_key_shows_itself_nowhere():
    secret = KEY.reveal_seed()
    assert secret == bytes(range(32))
    shown = f"{KEY} {KEY!r} {[KEY]} { {'key': KEY} }"
    assert secret.hex() not in shown
    assert repr(secret) not in shown
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            leak(KEY)
    with pytest.raises(TypeError):
        vars(KEY)


def test_b8_the_private_key_is_not_in_an_error():
    secret = b"\x99" * 31
    try:
        SigningKey(secret)
    except SignatureError as error:
        text = "".join(traceback.format_exception(error))
    assert repr(secret) not in text
    assert secret.hex() not in text


def test_keys_are_immutable_values():
    assert KEY.verify_key == VerifyKey(KEY.verify_key.raw)
    assert len({KEY.verify_key, VerifyKey(KEY.verify_key.raw)}) == 1
    with pytest.raises(AttributeError):
        KEY.verify_key.raw = bytes(32)


def test_statement_survives_its_bytes():
    assert TaskStatement.from_bytes(STATEMENT.to_bytes()) == STATEMENT
    assert TaskStatement.from_dict(STATEMENT.to_dict()) == STATEMENT
    assert STATEMENT.digest == canonical.digest(STATEMENT.to_dict())
    verify_statement(KEY.verify_key, STATEMENT, sign_statement(KEY, STATEMENT))


ANOTHER = {
    "process": "fraud-2027",
    "node": "node08",
    "iteration": 4,
    "action": Action.COMPLETE,
    "image_id": Digest.of(b"x"),
    "parameter_hash": Digest.of(b"x"),
    "inputs_digest": Digest.of(b"x"),
    "payload_digest": Digest.of(b"x"),
}


@pytest.mark.parametrize("name", [field.name for field in fields(TaskStatement)])
def test_b1_result_of_one_task_cannot_be_replayed_for_another(name):
    signature = sign_statement(KEY, STATEMENT)
    other = replace(STATEMENT, **{name: ANOTHER[name]})
    assert refusal_of(verify_statement, KEY.verify_key, other, signature) == "SIGNATURE_INVALID"


def test_b7_signature_over_another_encoding_of_the_same_content_is_refused():
    spaced = STATEMENT.to_bytes().replace(b",", b", ")
    signature = sign(KEY, "attestree/task", spaced)
    assert refusal_of(verify_statement, KEY.verify_key, STATEMENT, signature) == "SIGNATURE_INVALID"
    with pytest.raises(DataError) as refusal:
        TaskStatement.from_bytes(spaced)
    assert refusal.value.code == "RECORD_NOT_CANONICAL"


@pytest.mark.parametrize(
    "change",
    [
        {"extra": 1},
        {"node": None},
        {"iteration": "3"},
        {"action": "FIT"},
        {"image_id": "x"},
        {"iteration": -1},
        {"action": None},
        {"action": ["SHARE"]},
        {"image_id": None},
        {"process": "A"},
    ],
)
def test_statement_with_a_wrong_field_is_refused(change):
    with pytest.raises(DataError):
        TaskStatement.from_dict(STATEMENT.to_dict() | change)


@pytest.mark.parametrize("name", [field.name for field in fields(TaskStatement)])
def test_statement_without_a_field_is_refused(name):
    record = STATEMENT.to_dict()
    del record[name]
    with pytest.raises(RecordError) as refusal:
        TaskStatement.from_dict(record)
    assert refusal.value.code == "RECORD_FIELDS"


@pytest.mark.parametrize("record", [None, [], "x", 7])
def test_statement_is_an_object(record):
    with pytest.raises(RecordError):
        TaskStatement.from_dict(record)


def test_statement_is_checked_when_it_is_made():
    with pytest.raises(RecordError):
        replace(STATEMENT, action="SHARE")
    with pytest.raises(RecordError):
        replace(STATEMENT, image_id=str(STATEMENT.image_id))
    with pytest.raises(IdentifierError):
        replace(STATEMENT, iteration=-1)
