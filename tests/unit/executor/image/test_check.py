"""The comparison of images, and the record it starts from."""

from typing import Any

import pytest

from executor.errors import IntegrityError
from executor.exits import IMAGE_INTEGRITY, exit_code
from executor.image.check import check_image, evidence_of
from protocol.agreement.lifecycle import ImageState
from protocol.digest import Digest
from protocol.errors import DataError
from protocol.ledger.common import Provenance
from protocol.ledger.images import ImageRecord

ONE, OTHER = Digest(b"1" * 32), Digest(b"2" * 32)


def record(**changes: Any) -> dict[str, Any]:
    """Return what the image chaincode answers, with something else in the image."""
    image = {
        "name": "attestree/learner",
        "version": "1",
        "manifest_digest": str(ONE),
        "image_id": str(OTHER),
        "repository": "127.0.0.1:7005/attestree/learner",
        "description": "",
    }
    by = Provenance("Org1MSP", "alice", "data-scientist", ONE, "2026-11-16T00:00:00Z", "tx")
    registered = {"status": "registered", "registered": by.to_dict(), "retired": None}
    return {"version": 1, "image": image | changes, **registered}


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
    found = ImageRecord.from_dict(record())
    image = found.image
    assert (image.manifest_digest, image.image_id, found.status) == (ONE, OTHER, ImageState.REGISTERED)
    assert image.by_digest == f"127.0.0.1:7005/attestree/learner@{ONE}"
    assert evidence_of(image) == {
        "image": "attestree/learner:1",
        "repository": "127.0.0.1:7005/attestree/learner",
        "manifest_digest": str(ONE),
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"image_id": "sha256:" + "a" * 63},
        {"image_id": "sha256:" + "A" * 64},
        {"image_id": None},
        {"manifest_digest": "sha512:" + "a" * 128},
        {"manifest_digest": "a" * 64},
        {"repository": "https://127.0.0.1/learner"},
        {"repository": "127.0.0.1:7005/learner:1"},
        {"version": "latest"},
        {"tag": "latest"},
    ],
)
def test_a8_record_with_an_odd_hash_or_name_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        ImageRecord.from_dict(record(**changes))


@pytest.mark.parametrize("status", ["", "Registered", "trusted", None, 1, []])
def test_a8_record_of_another_status_is_refused(status: Any) -> None:
    with pytest.raises(DataError, match="status is not"):
        ImageRecord.from_dict(record() | {"status": status})
