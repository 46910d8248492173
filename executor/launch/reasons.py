"""What the ledger hears of a task that came to nothing: a code, and the one sentence of that code.

Every organisation reads the ledger for good. An error's own words may quote what a learner wrote, a path, a
user or a host of the operator, or what an engine said; none of that goes there. The operator sees all of it.
"""

import unicodedata
from collections.abc import Mapping

from protocol.errors import AttestreeError, defined

MAX_EVIDENCE_TEXT = 300

SENTENCES = {
    "EXECUTOR_FAULT": "the executor failed",
    "EXECUTOR_LOST": "the executor ended before the task did",
    "HOST_FAILED": "the node's host could not keep or read what the task needs",
    "INTERRUPTED": "the operator stopped the executor",
    "LEARNER_FAILED": "the learner ended with an error",
    "LEARNER_MEMORY": "the learner ran out of memory",
    "LEARNER_NO_RESULT": "the learner ended without a result",
    "LEARNER_TIMEOUT": "the learner did not complete in time",
    "DATA_CHANGED": "the private data changed while the task ran",
    "SIGNATURE_INVALID": "the learner signed with another key, or something else",
    "WAIT_TIMEOUT": "the neighbours did not share in time",
}
OTHERWISE = "the task was given up; docs/codes.md has the meaning of the code"
UNKNOWN = "OTHER_FAILURE"
"""For a code that this project does not define, whoever sent it."""


def closing_words(error: AttestreeError) -> tuple[str, str]:
    """Return the code and the sentence for the ledger."""
    code = error.code if error.code in defined() else UNKNOWN
    return code, SENTENCES.get(code, OTHERWISE)


def fit_for_record(evidence: Mapping[str, str]) -> dict[str, str]:
    """Return evidence that a record can hold: printable, in Unicode form NFC, each text bounded."""
    return {name: _printable(text) for name, text in evidence.items()}


def _printable(text: str) -> str:
    kept = "".join(sign if sign.isprintable() else " " for sign in text)
    return unicodedata.normalize("NFC", kept)[:MAX_EVIDENCE_TEXT]
