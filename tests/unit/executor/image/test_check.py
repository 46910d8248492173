"""The comparison of images, and the record it starts from."""

from typing import Any

import pytest

from executor.errors import IntegrityError
from executor.exits import IMAGE_INTEGRITY, exit_code
from executor.image.check import RegisteredImage, check_image
from protocol.digest import Digest
from protocol.errors import AttestreeError

ONE, OTHER = Digest(b"1" * 32), Digest(b"2" * 32)


def record(**changes: str) -> dict[str, Any]:
    image = {
        "name": "attestree/learner",
        "version": "1",
        "manifest_digest": str(ONE),
        "image_id": str(OTHER),
        "repository": "127.0.0.1:7005/attestree/learner",
        "description": "",
    }
    return {"version": 1, "image": image | changes, "status": "registered"}


def test_equal_images_pass() -> None:
    check_image(ONE, ONE)


def test_a1_another_image_is_refused_with_both_ids_as_evidence() -> None:
    with pytest.raises(IntegrityError) as caught:
        check_image(OTHER, ONE, {"image": "attestree/learner:1"})
    assert exit_code(caught.value) == IMAGE_INTEGRITY
    assert caught.value.code == "IMAGE_MISMATCH"
    expected = {"image": "attestree/learner:1", "expected": str(ONE), "found": str(OTHER)}
    assert caught.value.evidence == expected


def test_record_of_the_ledger_is_read_as_values() -> None:
    found = RegisteredImage.from_record(record())
    assert (found.manifest_digest, found.image_id, found.status) == (ONE, OTHER, "registered")
    assert found.by_digest == f"127.0.0.1:7005/attestree/learner@{ONE}"


@pytest.mark.parametrize(
    "changes",
    [
        {"image_id": "sha256:" + "a" * 63},
        {"image_id": "sha256:" + "A" * 64},
        {"manifest_digest": "sha512:" + "a" * 128},
        {"manifest_digest": "a" * 64},
        {"repository": "https://127.0.0.1/learner"},
        {"repository": "127.0.0.1:7005/learner:1"},
        {"version": "latest"},
    ],
)
def test_a8_record_with_an_odd_hash_or_name_is_refused(changes: dict[str, str]) -> None:
    with pytest.raises(AttestreeError):
        RegisteredImage.from_record(record(**changes))
