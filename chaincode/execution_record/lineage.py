"""Where an estimator came from and where it went, from the index that shares, results and models leave."""

from typing import Any

from chaincode.common import page, read
from chaincode.common.calls import MODEL, call_json
from chaincode.common.records import parse
from chaincode.execution_record.store import find_shares
from chaincode.shim import Context
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys


def trace(ctx: Context, process: str, wanted: EstimatorId, size: int, bookmark: str) -> dict[str, Any]:
    """Return the lineage of an estimator, one page of its offers at a time."""
    shared = read(ctx, keys.estimator(process, wanted))
    announced = read(ctx, keys.creation(process, wanted))
    # FIT announces a tree when its round completes; until then the share is all there is.
    origin = announced or shared
    if origin is None:
        raise StateError("ESTIMATOR_UNKNOWN", f"no round of {process} announced or shared {wanted}")
    parts = (process, wanted.creator, counter_text(wanted.counter))
    offers = page(ctx, ("offer", *parts), size, bookmark, as_stored)
    return {
        "process": process,
        "id": str(wanted),
        "digest": origin["digest"],
        "creator": wanted.creator,
        **_task(ctx, process, wanted.creator, origin["iteration"]),
        "shared": shared is not None,
        "offers": _with_recipients(ctx, process, offers["items"]),
        "bookmark": offers["bookmark"],
        "taken": [parse(item.value) for item in ctx.partial("taken", parts)],
        "models": call_json(ctx, MODEL, "Uses", process, str(wanted))["models"],
    }


def counter_text(value: int) -> str:
    """Write a counter as it stands in a key."""
    return f"{value:0{keys.COUNTER_DIGITS}d}"


def as_stored(record: dict[str, Any]) -> dict[str, Any]:
    """Show a record whole."""
    return record


def _task(ctx: Context, process: str, node: str, iteration: int) -> dict[str, Any]:
    task = read(ctx, keys.task(process, node, iteration)) or {}
    opening = task.get("opening") or {}
    return {
        "organisation": task.get("organisation"),
        "iteration": iteration,
        "attempt": task.get("attempt"),
        "image": {**(task.get("image") or {}), "image_id": opening.get("image_id")},
        "public_key": opening.get("public_key"),
    }


def _with_recipients(ctx: Context, process: str, offers: list[dict[str, Any]]) -> list[dict[str, Any]]:
    shares = find_shares(ctx, process, [(offer["iteration"], offer["sender"]) for offer in offers])
    return [
        {**offer, "recipients": list(shares[offer["iteration"], offer["sender"]].recipients)}
        for offer in offers
    ]
