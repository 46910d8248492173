"""The model a process starts from; its estimators keep their ids, and new ones are numbered after them."""

from chaincode.common.calls import MODEL, call_json
from chaincode.execution_record.records import Head, Members
from chaincode.execution_record.terms import Terms
from chaincode.shim import Context
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId


def initial_members(ctx: Context, terms: Terms) -> Members:
    """Return the estimators of the initial model with their digests; none where there is no such model."""
    if terms.initial_model is None:
        return {}
    wanted = terms.initial_model
    found = call_json(ctx, MODEL, "Members", wanted["process"], wanted["node"])
    if found["digest"] != wanted["digest"]:
        raise StateError(
            "MODEL_DIGEST", f"the initial model has digest {found['digest']}, not {wanted['digest']}"
        )
    return {EstimatorId.parse(entry["id"]): Digest.parse(entry["digest"]) for entry in found["estimators"]}


def next_counter(node: str, head: Head | None, initial: Members) -> int:
    """Return the counter of the node's next estimator."""
    if head is not None:
        return head.next_counter
    return max((member.counter + 1 for member in initial if member.creator == node), default=0)
