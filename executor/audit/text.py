"""The findings of an audit for people: a line for each claim, then what is wrong, then what nobody knows."""

from executor.audit import challenges
from executor.audit.findings import Claim, Failure
from executor.audit.limits import block_signatures
from executor.audit.verify import Verification

HOLDS, FAILS = "✓", "✗"


def show_verification(found: Verification) -> str:
    """Return the report on an export."""
    chain = found.chain
    head = (
        f"channel {found.manifest.channel}: {chain.height} blocks, {chain.transactions} transactions,"
        f" {chain.signatures} signatures of Fabric"
    )
    ordered = block_signatures(chain.configuration.ordering)
    claims, failures = found.verdicts
    parts = [head, ordered, "", *map(show_claim, (*found.claims, *claims))]
    if found.failures or failures:
        parts += ["", "Not as it should be:", *map(show_failure, (*found.failures, *failures))]
    parts += challenges.lines(found.challenges)
    if chain.rules.changes:
        parts += ["", "Whose signatures count, as it changed:", *map(str, chain.rules.changes)]
    parts += ["", "What this does not prove:", *(f"- {sentence}" for sentence in found.not_proven)]
    if found.checkpoint is not None:
        parts += ["", f"checkpoint at height {chain.height}: {found.checkpoint}"]
    parts += ["", "verified" if found.verified else "NOT VERIFIED"]
    return "\n".join(parts)


def show_claim(claim: Claim) -> str:
    """Return one line for a claim."""
    mark = HOLDS if claim.holds else FAILS
    count = f"{claim.checked}" if claim.holds else f"{claim.failed} of {claim.checked} fail"
    return f"{mark} {claim.name}: {claim.sentence} ({count})"


def show_failure(failure: Failure) -> str:
    """Return one line for a place where a claim does not hold."""
    return f"{FAILS} {failure.where}: {failure.claim}: {failure.what}"
