"""Rebuilds in an audit: counted again where a process starts, whatever chaincode let it."""

import io

from support.memory import blocks
from support.memory.audited import PROCESS, SPEC
from support.memory.federation import Federation, changed

from chaincode.orchestration import process as altered
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle


def test_a_process_that_started_without_the_rebuilds_it_asks_for_is_found(monkeypatch):
    """A majority whose chaincode lets it start all the same."""
    monkeypatch.setattr(altered, "check_attested", lambda *_: None)
    recorder = blocks.record(Federation)(changed("image_attestations", 2, base=SPEC)).recorder
    found = verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))
    (failure,) = found.failures
    assert failure.claim == "rebuilds"
    assert f"process {PROCESS}: nobody got the id of attestree/learner 1.0.0" in failure.what
