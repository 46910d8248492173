"""Who may read a channel: the units of the roles in its first block, and the block's hash."""

import base64
import hashlib
import importlib.util
import ssl
from pathlib import Path

import pytest
from fabric_protos.common import common_pb2

PATH = Path(__file__).resolve().parents[3] / "network/lib/readers.py"
spec = importlib.util.spec_from_file_location("readers", PATH)
readers = importlib.util.module_from_spec(spec)
spec.loader.exec_module(readers)

ROOT = ssl.DER_cert_to_PEM_cert(b"a root certificate")


def block(*entries):
    made = common_pb2.Block(data=common_pb2.BlockData(data=entries))
    made.header.data_hash = b"of other data"
    made.metadata.metadata.extend([b"", b"signatures"])
    return made


@pytest.mark.parametrize("size", [1, 127, 128, 20_000, 3_000_000])
def test_a_first_block_gets_the_hash_of_its_data_and_keeps_all_else(size):
    made = block(bytes(size))
    made.header.data_hash = hashlib.sha256(bytes(size)).digest()
    found = readers.with_data_hash(block(bytes(size)).SerializeToString())
    assert common_pb2.Block.FromString(found) == made


def test_a_block_that_is_no_first_one_is_refused():
    made = block(b"data")
    made.header.number = 7
    with pytest.raises(SystemExit):
        readers.read_fields(made.header.SerializeToString())


def test_a_unit_is_one_more_way_to_satisfy_the_policy():
    policy = {
        "identities": [{"principal_classification": "ROLE", "principal": {"role": "PEER"}}],
        "rule": {"n_out_of": {"n": 1, "rules": [{"signed_by": 0}]}},
    }
    readers.add_unit(policy, "Org1MSP", "auditor", ROOT)
    assert policy["rule"]["n_out_of"] == {"n": 1, "rules": [{"signed_by": 0}, {"signed_by": 1}]}
    assert policy["identities"][1] == {
        "principal_classification": "ORGANIZATION_UNIT",
        "principal": {
            "msp_identifier": "Org1MSP",
            "organizational_unit_identifier": "auditor",
            "certifiers_identifier": base64.b64encode(
                hashlib.sha256(b"a root certificate").digest()
            ).decode(),
        },
    }
