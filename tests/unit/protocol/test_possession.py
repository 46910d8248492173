"""The proof that whoever opens a task holds its key: one signed text, for one node of one organisation."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from protocol.digest import Digest
from protocol.errors import SignatureError
from protocol.signing import SigningKey, verify
from protocol.task.opening import Opening, TaskId
from protocol.task.possession import OPENING_DOMAIN, check_possession, possession_digest, prove_possession
from protocol.task.statement import TASK_DOMAIN

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "possession-v1.json").read_text(encoding="utf-8"))
KEY = SigningKey(bytes.fromhex(GOLDEN["seed"]))
TASK, ORGANISATION = TaskId(**GOLDEN["task"]), GOLDEN["organisation"]
OPENING = Opening.from_dict(GOLDEN["opening"])
PROOF = bytes.fromhex(GOLDEN["proof"])


def test_a_proof_keeps_its_bytes():
    assert str(possession_digest(TASK, ORGANISATION, OPENING)) == GOLDEN["digest"]
    assert prove_possession(KEY, TASK, ORGANISATION, OPENING) == PROOF
    check_possession(TASK, ORGANISATION, OPENING, PROOF)


@pytest.mark.parametrize(
    ("task", "organisation", "opening"),
    [
        (replace(TASK, process="other"), ORGANISATION, OPENING),
        (replace(TASK, node="node08"), ORGANISATION, OPENING),
        (replace(TASK, iteration=TASK.iteration + 1), ORGANISATION, OPENING),
        (TASK, "Org2MSP", OPENING),
        (TASK, ORGANISATION, replace(OPENING, data=Digest.of(b"other rows"))),
        (TASK, ORGANISATION, replace(OPENING, state=Digest.of(b"another state"))),
        (TASK, ORGANISATION, replace(OPENING, public_key=SigningKey(bytes(32)).verify_key)),
    ],
)
def test_h13_a_proof_serves_the_task_that_it_was_made_for_and_no_other(task, organisation, opening):
    with pytest.raises(SignatureError, match="SIGNATURE_INVALID"):
        check_possession(task, organisation, opening, PROOF)


def test_a_proof_is_no_signature_of_a_result():
    digest = possession_digest(TASK, ORGANISATION, OPENING)
    verify(KEY.verify_key, OPENING_DOMAIN, digest, PROOF)
    with pytest.raises(SignatureError, match="SIGNATURE_INVALID"):
        verify(KEY.verify_key, TASK_DOMAIN, digest, PROOF)
