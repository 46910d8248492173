"""What up.sh reads of the peers' answers about chaincode definitions."""

import json
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
COMMITTED = {
    "sequence": 3,
    "version": "0.1.0-5f2b",
    "endorsement_plugin": "escc",
    "validation_parameter": "EiAvQ2hhbm5lbC9BcHBsaWNhdGlvbi9FbmRvcnNlbWVudA==",
    "collections": {"config": [{"Payload": {"StaticCollectionConfig": {"name": "trees", "version": "9"}}}]},
    "approvals": {"Org1MSP": True},
}
APPROVED = {
    "sequence": 4,
    "version": "0.1.0-77aa",
    "source": {"Type": {"LocalPackage": {"package_id": "image_77aa:0c1d"}}},
}


def asked(function: str, answer: str, code: int = 0) -> str:
    """Return what a function of network/lib/chaincode.sh makes of a peer's answer."""
    script = f"""
        PROBE=; CHANNEL=attestree
        . network/lib/chaincode.sh
        as() {{ printf '%s' "$ANSWER"; return {code}; }}
        {function}
    """
    ran = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=ROOT,
        env={"PATH": "/usr/bin:/bin", "ANSWER": answer},
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    return ran.stdout.strip()


@pytest.mark.parametrize("indent", [None, 2])
def test_a_definitions_own_sequence_and_version_are_read(indent: int | None) -> None:
    assert asked("committed image", json.dumps(COMMITTED, indent=indent)) == "3 0.1.0-5f2b"
    assert asked("approved org1 image 4", json.dumps(APPROVED, indent=indent)) == "image_77aa:0c1d"


@pytest.mark.parametrize("function", ["committed image", "approved org1 image 4"])
def test_what_is_not_there_is_nothing(function: str) -> None:
    assert asked(function, "namespace image is not defined", code=1) == ""


def test_an_approval_without_a_package_is_none() -> None:
    assert (
        asked("approved org1 image 4", json.dumps({**APPROVED, "source": {"Type": {"Unavailable": {}}}}))
        == ""
    )
