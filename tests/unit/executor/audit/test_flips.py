"""A sample of what scripts/flip-bits does with every bit."""

from fuzz.flips import copied_members, flipped, judged, missed, places
from support.memory.audited import audited

from executor.audit.bundle import MANIFEST


def test_h20_no_bit_of_an_export_can_be_flipped_unseen():
    assert missed(every=30011) == []


def test_h20_no_bit_of_a_manifest_can_be_flipped_unseen():
    """All of them: what an export says about itself is short."""
    judge, bundle = judged(), audited().recorder.bundle()
    for name, start, content in copied_members(bundle):
        for place, bit in places(len(content), 1 if name == MANIFEST else 997):
            assert not judge.believes(flipped(bundle, start + place, bit)), f"{name} byte {place} bit {bit}"
