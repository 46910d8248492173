"""The commitment to private data keeps its bytes, and every part of it counts."""

import hashlib
import json
from pathlib import Path

import pytest

from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.task.commitment import data_commitment

CASES = json.loads((Path(__file__).parents[2] / "golden/commitment-v1.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["name"])
def test_commitments_keep_their_bytes(case):
    parts = [Digest.parse(case[name]) for name in ("file", "rows", "schema")]
    assert str(data_commitment(bytes.fromhex(case["salt"]), *parts)) == case["commitment"]
    assert f"sha256:{hashlib.sha256(case['bytes'].encode()).hexdigest()}" == case["commitment"]


def test_every_part_of_a_commitment_counts():
    one, two = Digest(b"\1" * 32), Digest(b"\2" * 32)
    made = {
        data_commitment(b"\0" * 32, one, one, one),
        data_commitment(b"\1" * 32, one, one, one),
        data_commitment(b"\0" * 32, two, one, one),
        data_commitment(b"\0" * 32, one, two, one),
        data_commitment(b"\0" * 32, one, one, two),
    }
    assert len(made) == 5


@pytest.mark.parametrize("salt", [b"", b"\0" * 31, b"\0" * 33, "0" * 32, bytearray(32)])
def test_salt_of_another_length_or_type_is_refused(salt):
    digest = Digest(bytes(32))
    with pytest.raises(RecordError, match="RECORD_VALUE"):
        data_commitment(salt, digest, digest, digest)
