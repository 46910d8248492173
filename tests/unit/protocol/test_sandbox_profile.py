"""The sandbox profile of a task: what its digest stands for, or refused."""

import pytest

from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.signing import SigningKey
from protocol.task.opening import Opening
from protocol.task.sandbox import MAX_PROFILE, check_profile

PROFILE = b'{"network":"none"}'


def opening(raw=PROFILE):
    some = Digest.of(b"of no account here")
    return Opening(SigningKey(bytes(32)).verify_key, some, some, some, some, None, some, Digest.of(raw))


def test_the_preimage_of_the_digest_is_taken():
    check_profile(opening(), PROFILE)


@pytest.mark.parametrize(
    ("raw", "committed", "code"),
    [
        (b'{"network":"host"}', PROFILE, "PAYLOAD_DIGEST"),
        (b'{"network": "none"}', b'{"network": "none"}', "RECORD_VALUE"),
        (b"[]", b"[]", "RECORD_VALUE"),
        (b"{" * 99, b"{" * 99, "RECORD_VALUE"),
        (b"1" * (MAX_PROFILE + 1), b"1" * (MAX_PROFILE + 1), "PAYLOAD_SIZE"),
    ],
)
def test_h20_another_profile_or_none_at_all_is_refused(raw, committed, code):
    with pytest.raises(RecordError) as refused:
        check_profile(opening(committed), raw)
    assert refused.value.code == code
