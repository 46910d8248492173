"""The verdict noted on a transaction against the one computed here: what a wrong one hides, by its claim."""

from executor.audit.fabric.form import Verdict
from executor.audit.fabric.validation import Judged
from executor.audit.findings import Findings

_CREATOR = (
    Verdict.BAD_CREATOR_SIGNATURE,
    Verdict.BAD_PROPOSAL_TXID,
    Verdict.INVALID_ENDORSER_TRANSACTION,
    Verdict.BAD_PAYLOAD,
    Verdict.BAD_COMMON_HEADER,
)


def report_verdict(findings: Findings, item: Judged, noted: int | None, where: str) -> None:
    """Name what a verdict hides that is another one than a peer noted."""
    if noted == Verdict.VALID and item.verdict is Verdict.ENDORSEMENT_POLICY_FAILURE:
        findings.fail("endorsements", item.why, where)
    elif noted == Verdict.VALID and item.verdict in _CREATOR:
        findings.fail("creators", item.why, where)
    else:
        what = f"it is noted as {_shown(noted)} and is {item.verdict.name}"
        findings.fail("validity flags", f"{what}: {item.why}" if item.why else what, where)


def _shown(noted: int | None) -> str:
    if noted is None:
        return "nothing"
    try:
        return Verdict(noted).name
    except ValueError:
        return f"code {noted}"
