"""Reading models: records, trees, lists, who may read them, and which of a process are there."""

from dataclasses import replace

from chaincode.common import DEFAULT_PAGE, LedgerContract, history_page, page, read
from chaincode.common.calls import last_result, model_context, shared_estimators
from chaincode.common.records import parse
from chaincode.common.trees import read_trees
from chaincode.model import access
from chaincode.shim import Context, RefusalError, evaluate
from protocol.agreement.parameters import MAX_NODES
from protocol.agreement.step_kind import StepKind
from protocol.errors import StateError
from protocol.identifiers import EstimatorId, parse_process
from protocol.ledger import keys
from protocol.ledger.common import MAX_PAGE, History, Page
from protocol.ledger.estimators import SharedEstimator
from protocol.ledger.models import (
    AccessRecord,
    MemberRecord,
    ModelBrief,
    ModelMembers,
    ModelRecord,
    ModelTrees,
    ModelUses,
    Unpublished,
)
from protocol.ledger.processes import ModelContext
from protocol.ledger.requests import CatalogueEntry
from protocol.task.output import MetricsOutput


class ModelQueries(LedgerContract):
    """What anyone on the channel may ask, and what those may read who have access."""

    @evaluate
    def get(self, ctx: Context, process: str, node: str) -> ModelRecord:
        """Return a model without its trees; refused without access."""
        access.need_access(ctx, process, node)
        return _model(ctx, process, node)

    @evaluate
    def trees(  # noqa: PLR0917
        self, ctx: Context, process: str, node: str, first: int = 0, count: int = 100, used_by: str = ""
    ) -> ModelTrees:
        """Return trees of a model in base64, in the model's order, `count` of them from `first` on.

        `used_by` names a running process that started from this model: who had access to it at the start
        keeps it for that process, whatever is revoked later.
        """
        access.need_access(ctx, process, node, used_by)
        if first < 0 or not 1 <= count <= MAX_PAGE:
            raise RefusalError("BAD_ARGUMENT", f"first is from 0 on and count from 1 to {MAX_PAGE}")
        model = _model(ctx, process, node)
        ids = [member.id for member in model.estimators[first : first + count]]
        return ModelTrees(_trees(ctx, model, ids), len(model.estimators))

    @evaluate
    def members(self, ctx: Context, process: str, node: str) -> ModelMembers:
        """Return the ids and digests of a model's estimators; refused without access."""
        access.need_access(ctx, process, node)
        model = _model(ctx, process, node)
        return ModelMembers(process, node, model.digest, model.estimators, len(model.missing or ()))

    @evaluate
    def unpublished(self, ctx: Context, process: str, nodes: list[str]) -> Unpublished:
        """Return those of these nodes of a process that have no model; orchestration reads it."""
        if len(nodes) > MAX_NODES:
            raise RefusalError("BAD_ARGUMENT", f"a process has at most {MAX_NODES} nodes")
        return Unpublished(tuple(node for node in nodes if not _is_published(ctx, process, node)))

    @evaluate
    def list(
        self, ctx: Context, process: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[ModelBrief]:
        """List models, all or those of one process, in brief: that a model exists is no secret."""
        prefix = ("model", parse_process(process)) if process else ("model",)
        return page(ctx, prefix, size, bookmark, ModelRecord, _brief)

    @evaluate
    def catalogue(
        self, ctx: Context, process: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[CatalogueEntry]:
        """List models, all or those of one process, with their figures and the terms of a request.

        How good a model is stands in `measured`, signed by its node's last task, where the process ends
        with an evaluation; `metrics` are its publisher's words. Where the process started from a model,
        `initial` names it: that one may have learned from the rows that were measured on.
        """
        prefix = ("model", parse_process(process)) if process else ("model",)
        terms: dict[str, ModelContext] = {}

        def show(record: ModelRecord) -> CatalogueEntry:
            if record.process not in terms:
                terms[record.process] = model_context(ctx, record.process)
            found = terms[record.process]
            return replace(_entry(record, found), measured=_measured(ctx, record, found))

        return page(ctx, prefix, size, bookmark, ModelRecord, show)

    @evaluate
    def access(self, ctx: Context, process: str, node: str) -> AccessRecord:
        """Return who may read a model, since when, and until when."""
        return access.find_access(ctx, process, node)

    @evaluate
    def access_history(
        self, ctx: Context, process: str, node: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> History[AccessRecord]:
        """List the changes of a model's access, newest first; `change` in each value says what was done."""
        access.find_access(ctx, process, node)
        return history_page(ctx, keys.access(process, node), size, bookmark, AccessRecord)

    @evaluate
    def history(
        self, ctx: Context, process: str, node: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> History[ModelRecord]:
        """List what was published as a node's model, newest first; refused without access.

        There are two where a member published it for the node, and the node brought the rest later.
        """
        access.need_access(ctx, process, node)
        return history_page(ctx, keys.model(process, node), size, bookmark, ModelRecord)

    @evaluate
    def uses(self, ctx: Context, process: str, estimator: str) -> ModelUses:
        """Return the nodes whose published models hold an estimator."""
        wanted = EstimatorId.parse(estimator)
        parts = (parse_process(process), wanted.creator, keys.counter_text(wanted.counter))
        return ModelUses(tuple(parse(item.value, MemberRecord).node for item in ctx.partial("member", parts)))


def _is_published(ctx: Context, process: str, node: str) -> bool:
    """Whether a node's model is there, by the seal that it was written with: a model may have megabytes.

    What earlier versions wrote may have none, and is read whole.
    """
    place = keys.model(process, node)
    return ctx.endorsement(place) is not None or ctx.get(place) is not None


def _model(ctx: Context, process: str, node: str) -> ModelRecord:
    """Read a model that the caller has access to: what grants it is written together with the model."""
    record = read(ctx, keys.model(process, node), ModelRecord)
    assert record is not None  # noqa: S101
    return record


def _brief(record: ModelRecord) -> ModelBrief:
    return ModelBrief(
        record.process,
        record.node,
        record.owner,
        record.iteration,
        record.digest,
        record.published,
        len(record.estimators),
    )


def _entry(record: ModelRecord, terms: ModelContext) -> CatalogueEntry:
    return CatalogueEntry(
        process=record.process,
        node=record.node,
        owner=record.owner,
        description=terms.description,
        iteration=record.iteration,
        digest=record.digest,
        size=len(record.estimators),
        missing=len(record.missing or ()),
        metrics=record.metrics,
        access=terms.access,
        licence=terms.licence,
        initial=terms.initial,
    )


def _measured(ctx: Context, record: ModelRecord, terms: ModelContext) -> MetricsOutput | None:
    """Return what the task whose ensemble a model is has measured of it, if that was its step."""
    if terms.ends_with is not StepKind.EVALUATE or record.iteration + 1 < terms.iterations:
        return None
    output = last_result(ctx, record.process, record.node).output
    return output if isinstance(output, MetricsOutput) else None


def _trees(ctx: Context, model: ModelRecord, ids: list[EstimatorId]) -> tuple[SharedEstimator, ...]:
    """Read the trees where they are: with the model, or with the execution record."""
    missing = set(model.missing or ())
    lacking = [estimator_id for estimator_id in ids if estimator_id in missing]
    if lacking:
        raise StateError("MODEL_INCOMPLETE", f"{model.node} has not sent {lacking[0]}, which it never shared")
    stored = set(model.stored)
    kept = [estimator_id for estimator_id in ids if estimator_id in stored]
    shared = [estimator_id for estimator_id in ids if estimator_id not in stored]
    found: dict[EstimatorId, SharedEstimator] = {}
    if shared:
        answer = shared_estimators(ctx, model.process, shared)
        found = {estimator.id: estimator for estimator in answer.estimators}
    if kept:
        collection = model_context(ctx, model.process).collection
        records = read_trees(ctx, [keys.tree(model.process, id_, model.node) for id_ in kept], collection)
        found |= {record.id: record.shared for record in records if record is not None}
    gone = [str(estimator_id) for estimator_id in ids if estimator_id not in found]
    if gone:
        raise StateError("TREES_GONE", f"{len(gone)} trees are no longer kept, from {gone[0]} on")
    return tuple(found[estimator_id] for estimator_id in ids)
