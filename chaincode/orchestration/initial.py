"""The model that a process is proposed to start from, and the names of those who made its trees."""

from chaincode.common.calls import initial_model, model_members
from chaincode.orchestration.process import Process
from chaincode.shim import Context
from protocol.agreement.origin import check_names, check_origin
from protocol.agreement.process import Specification
from protocol.errors import StateError


def check_initial_model(ctx: Context, specification: Specification) -> None:
    """Refuse a model to start from that is not there with all trees, is another, or closed to the caller.

    So is one whose trees have another past than the process would give them (`protocol/agreement/origin.py`).
    """
    wanted = specification.initial_model
    if wanted is None:
        return
    found = model_members(ctx, wanted.process, wanted.node)
    if found.digest != wanted.digest:
        raise StateError(
            "MODEL_DIGEST", f"the model of {wanted.node} in {wanted.process} has digest {found.digest}"
        )
    if found.missing:
        raise StateError("MODEL_INCOMPLETE", f"{wanted.node} has not sent {found.missing} trees of its model")
    creators = [member.id.creator for member in found.estimators]
    check_origin(specification, creators, lambda process: Process.load(ctx, process).plan)


def check_name(ctx: Context, process: Process, node: str, organisation: str) -> None:
    """Refuse a new node under whose name another organisation made trees that the process started from."""
    model = process.specification.initial_model
    if model is not None:
        creators = initial_model(ctx, process.id).next_counters
        check_names({node: organisation}, creators, model, lambda name: Process.load(ctx, name).plan)
