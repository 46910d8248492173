"""Questions to the other chaincodes, asked in the same transaction; their refusals keep their codes."""

import json
from collections.abc import Sequence
from typing import Any

from chaincode.shim import Context
from protocol.agreement.process import Specification
from protocol.identifiers import EstimatorId
from protocol.ledger.common import MAX_PAGE, Page, Provenance
from protocol.ledger.estimators import SharedDigests, SharedEstimators
from protocol.ledger.images import ImageRecord, RebuildRecord
from protocol.ledger.models import AccessRecord, ModelMembers, ModelUses, Unpublished
from protocol.ledger.processes import AccessTerms, ModelContext, TaskContext
from protocol.ledger.tasks import FirstShare, InitialRecord, ResultRecord
from protocol.task.opening import TaskId

IMAGE = "image"
ORCHESTRATION = "orchestration"
EXECUTION_RECORD = "execution-record"
MODEL = "model"


def image_record(ctx: Context, name: str, version: str) -> ImageRecord:
    """Ask the image chaincode for a version."""
    return ImageRecord.from_dict(_call(ctx, IMAGE, "Get", name, version))


def image_rebuilds(ctx: Context, name: str, version: str) -> tuple[RebuildRecord, ...]:
    """Ask the image chaincode what organisations got from the source of a version, a thousand at most."""
    found = _call(ctx, IMAGE, "ListRebuilds", name, version, str(MAX_PAGE), "")
    return Page.from_dict(found, RebuildRecord.from_dict).items


def task_context(ctx: Context, task: TaskId) -> TaskContext:
    """Ask orchestration what a task is checked against; it refuses an unknown process or node."""
    return TaskContext.from_dict(
        _call(ctx, ORCHESTRATION, "TaskContext", task.process, task.node, str(task.iteration))
    )


def first_share(ctx: Context, task: TaskId) -> Provenance | None:
    """Ask the execution record who first shared in a task, and when; None before."""
    found = _call(ctx, EXECUTION_RECORD, "FirstShare", task.process, task.node, str(task.iteration))
    return FirstShare.from_dict(found).by


def specification_of(ctx: Context, process: str) -> Specification:
    """Ask orchestration what a process agreed on."""
    return Specification.from_dict(_call(ctx, ORCHESTRATION, "Get", process)["specification"])


def model_context(ctx: Context, process: str) -> ModelContext:
    """Ask orchestration who takes part in a process and whether it has ended."""
    return ModelContext.from_dict(_call(ctx, ORCHESTRATION, "ModelContext", process))


def access_terms(ctx: Context, process: str) -> AccessTerms:
    """Ask orchestration on which terms models of a process are given away, and who has a say."""
    return AccessTerms.from_dict(_call(ctx, ORCHESTRATION, "AccessTerms", process))


def advance(ctx: Context, task: TaskId) -> None:
    """Have orchestration write that a node has completed an iteration."""
    ctx.invoke(ORCHESTRATION, ("Advance", task.process, task.node, str(task.iteration)))


def last_result(ctx: Context, process: str, node: str) -> ResultRecord:
    """Ask the execution record for the result of a node's last completed task."""
    return ResultRecord.from_dict(_call(ctx, EXECUTION_RECORD, "LastResult", process, node))


def shared_estimators(ctx: Context, process: str, ids: Sequence[EstimatorId]) -> SharedEstimators:
    """Ask the execution record for estimators by id."""
    asked = json.dumps([str(estimator_id) for estimator_id in ids])
    return SharedEstimators.from_dict(_call(ctx, EXECUTION_RECORD, "Estimators", process, asked))


def shared_digests(ctx: Context, process: str, ids: Sequence[EstimatorId]) -> SharedDigests:
    """Ask the execution record for the digests of estimators."""
    asked = json.dumps([str(estimator_id) for estimator_id in ids])
    return SharedDigests.from_dict(_call(ctx, EXECUTION_RECORD, "Digests", process, asked))


def model_members(ctx: Context, process: str, node: str) -> ModelMembers:
    """Ask the model chaincode for the estimators of a model; it refuses a caller without access."""
    return ModelMembers.from_dict(_call(ctx, MODEL, "Members", process, node))


def unpublished(ctx: Context, process: str, nodes: Sequence[str]) -> tuple[str, ...]:
    """Ask the model chaincode which of these nodes have published no model."""
    asked = json.dumps([*nodes])
    return Unpublished.from_dict(_call(ctx, MODEL, "Unpublished", process, asked)).nodes


def model_access(ctx: Context, process: str, node: str) -> AccessRecord:
    """Ask the model chaincode who may read a model."""
    return AccessRecord.from_dict(_call(ctx, MODEL, "Access", process, node))


def bind_initial(ctx: Context, specification: Specification) -> None:
    """Have the execution record fix the model that a process starts from, if it starts from one."""
    wanted = specification.initial_model
    if wanted is not None:
        consortium = json.dumps([*specification.organisations])
        model = json.dumps(wanted.to_dict())
        ctx.invoke(EXECUTION_RECORD, ("BindInitial", specification.process, model, consortium))


def initial_model(ctx: Context, process: str) -> InitialRecord:
    """Ask the execution record for the model that a process started from."""
    return InitialRecord.from_dict(_call(ctx, EXECUTION_RECORD, "InitialModel", process))


def model_uses(ctx: Context, process: str, estimator: EstimatorId) -> ModelUses:
    """Ask the model chaincode where an estimator is in use."""
    return ModelUses.from_dict(_call(ctx, MODEL, "Uses", process, str(estimator)))


def _call(ctx: Context, chaincode: str, function: str, *arguments: str) -> Any:
    return json.loads(ctx.invoke(chaincode, [function, *arguments]))
