"""Rebuilds in an audit: counted again where a process starts, whatever chaincode let it."""

import io

from support.memory import blocks
from support.memory.audited import PROCESS, SPEC
from support.memory.federation import DIGESTS, Federation, changed
from support.memory.scenario import IMAGE

from chaincode.common import write
from chaincode.image import rebuilds
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


def test_h1_a_rebuild_that_others_claimed_in_ones_name_is_found_and_does_not_count(monkeypatch):
    """A majority whose chaincode neither asks for the organisation's endorsement nor looks for its mark."""
    federation = blocks.record(Federation)(changed("image_attestations", 1, base=SPEC), started=False)
    for admin in (federation.admin1, federation.admin2):
        admin.submit("orchestration", "Accept", PROCESS)
    monkeypatch.setattr(rebuilds, "write_word", lambda ctx, _, key, word: write(ctx, key, word))
    monkeypatch.setattr(rebuilds, "is_word", lambda *_: True)
    federation.scientist1.submit("image", "Attest", *IMAGE, DIGESTS[2])
    federation.admin1.submit("orchestration", "Start", PROCESS)
    recorder = federation.recorder
    found = verify_bundle(io.BytesIO(recorder.bundle()), Anchor(parse_anchor(recorder.genesis)))
    forged, started = found.failures
    assert forged.what.startswith("Org1MSP did not vouch for rebuild~attestree/learner~1.0.0~Org1MSP")
    assert "nobody got the id of attestree/learner 1.0.0" in started.what
