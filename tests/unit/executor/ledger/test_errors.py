"""The ledger's failures in the project's classes."""

import pickle
import re

from executor import codes as table
from executor.ledger.errors import PhaseError
from executor.ledger.gateway import PeerDetail, errors


def test_every_code_of_the_client_has_a_remedy():
    codes = set(re.findall(r"\b[A-Z]+_[A-Z_]+\b", errors.__doc__))
    assert len(codes) > 10
    # Identity and agreement are refused before there is a call.
    before = {"IDENTITY_UNKNOWN", "IDENTITY_UNUSABLE", "AGREEMENT_RANGE"}
    assert codes - before == set(table.PHASE) - {"LEDGER_ANSWER"}


def test_a_phase_error_crosses_to_another_process():
    error = PhaseError("ENDORSE_FAILED", "no", "endorse", "ab", [PeerDetail("a", "b", "c")])
    found = pickle.loads(pickle.dumps(error))
    assert (type(found), str(found)) == (PhaseError, str(error))
    assert (found.phase, found.tx_id, found.details) == ("endorse", "ab", error.details)
