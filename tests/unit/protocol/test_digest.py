import hashlib

import pytest

from protocol.digest import Digest
from protocol.errors import DigestError

ABC = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"


def test_the_standard_vector_prints_and_parses():
    digest = Digest.of(b"abc")
    assert str(digest) == ABC
    assert Digest.parse(ABC) == digest
    assert digest.hex == ABC.removeprefix("sha256:")
    assert digest.raw == hashlib.sha256(b"abc").digest()


def test_digests_are_values():
    one, other = Digest.of(b"1"), Digest.of(b"2")
    assert len({one, Digest.of(b"1"), other}) == 2
    assert sorted([one, other]) == sorted([other, one])
    with pytest.raises(AttributeError):
        one.raw = other.raw


@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param(ABC.upper(), "DIGEST_SYNTAX", id="upper-case"),
        pytest.param("sha256:" + ABC[7:].upper(), "DIGEST_SYNTAX", id="upper-case digits"),
        pytest.param("SHA256:" + ABC[7:], "DIGEST_ALGORITHM", id="upper-case algorithm"),
        pytest.param(ABC[:-1], "DIGEST_LENGTH", id="truncated"),
        pytest.param(ABC[:-2], "DIGEST_LENGTH", id="truncated by a byte"),
        pytest.param(ABC + "00", "DIGEST_LENGTH", id="too long"),
        pytest.param("sha256:", "DIGEST_LENGTH", id="empty"),
        pytest.param("sha512:" + 2 * ABC[7:], "DIGEST_ALGORITHM", id="sha512"),
        pytest.param("md5:" + ABC[7:39], "DIGEST_ALGORITHM", id="md5"),
        pytest.param(ABC[7:], "DIGEST_SYNTAX", id="no algorithm"),
        pytest.param(ABC + "\n", "DIGEST_SYNTAX", id="newline"),
        pytest.param(" " + ABC, "DIGEST_ALGORITHM", id="space"),
        pytest.param(ABC[:-1] + "g", "DIGEST_SYNTAX", id="not hex"),
        pytest.param(ABC[:-1] + "٣", "DIGEST_SYNTAX", id="digit of another script"),
        pytest.param("repo@" + ABC, "DIGEST_ALGORITHM", id="image reference"),
        pytest.param("", "DIGEST_SYNTAX", id="nothing"),
        pytest.param(None, "DIGEST_SYNTAX", id="null"),
        pytest.param(ABC.encode(), "DIGEST_SYNTAX", id="bytes"),
    ],
)
def test_a8_odd_hash_is_refused(text, code):
    with pytest.raises(DigestError) as refusal:
        Digest.parse(text)
    assert refusal.value.code == code


@pytest.mark.parametrize("raw", [b"", bytes(31), bytes(33), bytearray(32), "0" * 32, None])
def test_a8_raw_digest_of_another_size_or_type_is_refused(raw):
    with pytest.raises(DigestError) as refusal:
        Digest(raw)
    assert refusal.value.code == "DIGEST_LENGTH"
