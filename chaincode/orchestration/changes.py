"""Changes of a running process: asked for by one organisation, holding once all concerned have agreed.

To agree is to ask for the same. What concerns one organisation alone (its node leaves or comes back) holds
at once; a topology, an image version or a new node needs the whole consortium, because each of them decides
what others run or whom they listen to.
"""

from collections.abc import Collection
from typing import Any

from chaincode.common import Caller, provenance
from chaincode.orchestration.process import Process, Progress
from chaincode.shim import Context
from protocol.agreement.plan import Change
from protocol.agreement.process import MAX_CHANGES
from protocol.errors import AccessError, StateError


def agree(
    ctx: Context, process: Process, caller: Caller, change: Change, needed: Collection[str]
) -> dict[str, Any]:
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
    if caller.organisation in entry["agreed"]:
        raise StateError("PROCESS_ACCEPTED", f"{caller.organisation} has agreed to this change")
    entry["agreed"][caller.organisation] = provenance(ctx)
    entry["needed"] = sorted(needed)
    entry["holds"] = all(organisation in entry["agreed"] for organisation in needed)
    # Changes that hold stand in the order in which they came to hold, which is the order they apply in.
    others = [other for other in process.record["changes"] if other is not entry]
    process.record["changes"] = [*others, entry]
    return entry


def need_future(progress: Progress, iteration: int) -> None:
    """Refuse an iteration that has begun somewhere, or lies beyond the last."""
    earliest, last = progress.frontier() + 1, progress.plan.iterations - 1
    if not earliest <= iteration <= last:
        raise StateError(
            "ITERATION_RANGE",
            f"iteration {iteration} is not to come: iterations from {earliest} to {last} are"
            if earliest <= last
            else f"iteration {iteration} is not to come: the last one, {last}, has begun",
        )


def _pending(process: Process, change: Change) -> dict[str, Any] | None:
    wanted = change.to_dict()
    for entry in process.record["changes"]:
        if not entry["holds"] and {name: entry[name] for name in wanted} == wanted:
            found: dict[str, Any] = entry
            return found
    return None


def _asked(process: Process, caller: Caller, change: Change) -> dict[str, Any]:
    """Add a change; an organisation has one of a kind pending, so a new one replaces it."""
    record = process.record
    kept = [
        entry
        for entry in record["changes"]
        if entry["holds"] or entry["kind"] != change.kind.value or entry["asked"] != caller.organisation
    ]
    if len(kept) >= MAX_CHANGES:
        raise StateError("CHANGE_LIMIT", f"the process has changed {len(kept)} times")
    entry: dict[str, Any] = {
        "version": 1,
        "number": record["change_count"],
        **change.to_dict(),
        "asked": caller.organisation,
        "agreed": {},
        "needed": [],
        "holds": False,
    }
    record["change_count"] += 1
    record["changes"] = [*kept, entry]
    return entry
