"""Consent to changes of a running process: one organisation asks, and it holds once all needed have agreed.

To agree is to ask for the same. What concerns one organisation alone (its node leaves or comes back) holds
at once; a topology, an image version or a new node needs the whole consortium, because each of them decides
what others run or whom they listen to.
"""

from collections.abc import Collection
from dataclasses import replace

from chaincode.common import CallerIdentity, provenance
from chaincode.orchestration.process import Process, ProcessProgress
from chaincode.shim import Context
from protocol.agreement.plan import Change
from protocol.agreement.process import MAX_CHANGES
from protocol.errors import AccessError, StateError
from protocol.ledger.processes import ChangeRecord


def agree(
    ctx: Context, process: Process, caller: CallerIdentity, change: Change, needed: Collection[str]
) -> ChangeRecord:
    """Record the caller's agreement and return the change's record; it holds when all needed have agreed."""
    if caller.organisation not in needed:
        raise AccessError(
            "ACCESS_ORGANISATION", f"{caller.organisation} has no say in this {change.kind.value}"
        )
    entry = _pending(process, change)
    if entry is None:
        # Somebody outside the consortium may agree to what a member asked for, and ask for nothing.
        caller.need_member(process.plan.consortium)
        entry = _asked(process, caller, change)
    if caller.organisation in entry.agreed:
        raise StateError("PROCESS_ACCEPTED", f"{caller.organisation} has agreed to this change")
    agreed = {**entry.agreed, caller.organisation: provenance(ctx)}
    holds = all(organisation in agreed for organisation in needed)
    changed = replace(entry, agreed=agreed, needed=tuple(sorted(needed)), holds=holds)
    # Changes that hold stand in the order in which they came to hold, which is the order they apply in.
    others = [other for other in process.record.changes if other is not entry]
    process.change(changes=(*others, changed))
    return changed


def need_future(progress: ProcessProgress, iteration: int) -> None:
    """Refuse an iteration that has begun somewhere, or lies beyond the last."""
    earliest, last = progress.frontier() + 1, progress.plan.iterations - 1
    if not earliest <= iteration <= last:
        raise StateError(
            "ITERATION_RANGE",
            f"iteration {iteration} is not to come: iterations from {earliest} to {last} are"
            if earliest <= last
            else f"iteration {iteration} is not to come: the last one, {last}, has begun",
        )


def _pending(process: Process, change: Change) -> ChangeRecord | None:
    return next(
        (entry for entry in process.record.changes if not entry.holds and entry.change == change), None
    )


def _asked(process: Process, caller: CallerIdentity, change: Change) -> ChangeRecord:
    """Add a change; an organisation has one of a kind pending, so a new one replaces it."""
    record = process.record
    kept = [
        entry
        for entry in record.changes
        if entry.holds or entry.kind is not change.kind or entry.asked != caller.organisation
    ]
    if len(kept) >= MAX_CHANGES:
        raise StateError("CHANGE_LIMIT", f"the process has changed {len(kept)} times")
    entry = ChangeRecord(
        number=record.change_count,
        kind=change.kind,
        iteration=change.iteration,
        subject=dict(change.subject),
        asked=caller.organisation,
        agreed={},
        needed=(),
        holds=False,
    )
    process.change(change_count=record.change_count + 1, changes=(*kept, entry))
    return entry
