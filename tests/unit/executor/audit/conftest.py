import io

import pytest
from support.memory.audited import audited
from support.tampering import Export

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.verify import verify_bundle


@pytest.fixture(scope="session")
def recorder():
    return audited().recorder


@pytest.fixture(scope="session")
def raw_export(recorder):
    return recorder.bundle()


@pytest.fixture
def export(raw_export):
    return Export.read(raw_export)


@pytest.fixture
def verify(recorder):
    """Verify an export by the hash of the channel's first block."""

    def judge(export, anchor=None):
        raw = export if isinstance(export, bytes) else export.write()
        return verify_bundle(io.BytesIO(raw), anchor or Anchor(parse_anchor(recorder.genesis)))

    return judge


@pytest.fixture
def failures(verify):
    """Return the claims that fail in an export, each with the places where it does."""

    def found(export, anchor=None):
        outcome = verify(export, anchor)
        assert outcome.verified is not bool(outcome.failures)
        by_claim = {}
        for failure in outcome.failures:
            by_claim.setdefault(failure.claim, []).append(f"{failure.where}: {failure.what}")
        return by_claim

    return found
