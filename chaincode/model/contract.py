"""The model chaincode: a node's last ensemble, published once, read by those its owner allows."""

from typing import Any, ClassVar

from chaincode.common import (
    DEFAULT_PAGE,
    STAFF,
    LedgerContract,
    Role,
    allow,
    caller_of,
    history_page,
    page,
    provenance,
    read,
    write,
)
from chaincode.common.calls import last_result, model_context, shared_estimators
from chaincode.common.own import endorsement_by, seal
from chaincode.common.records import parse
from chaincode.common.trees import check_channel, read_trees
from chaincode.model import access
from chaincode.model.publication import (
    ModelPublication,
    check_finished,
    check_same,
    trees_to_store,
    write_members,
    write_trees,
)
from chaincode.shim import Context, RefusalError, evaluate, submit
from protocol.errors import StateError
from protocol.fields import Fields
from protocol.identifiers import EstimatorId, parse_process
from protocol.ledger import keys
from protocol.ledger.common import MAX_PAGE, History, Page
from protocol.ledger.estimators import SharedEstimator, TreeRecord
from protocol.ledger.models import (
    AccessRecord,
    MemberRecord,
    ModelBrief,
    ModelMembers,
    ModelRecord,
    ModelTrees,
    ModelUses,
)
from protocol.ledger.processes import ModelContext
from protocol.ledger.record import VERSION, LedgerRecord
from protocol.task.result import MAX_METRICS


class ModelContract(LedgerContract):
    """Models by process and node, each with the organisations that may read it."""

    name = "model"
    events: ClassVar[dict[str, str]] = {
        "ModelPublished": "a node published its model: version, process, node, organisation, digest,"
        " estimators (how many)",
        "AccessGranted": "an organisation may read a model: version, process, node, owner, organisation,"
        " expires",
        "AccessRevoked": "an organisation may no longer read a model: version, process, node, owner,"
        " organisation, expires (null)",
    }
    values: ClassVar[dict[str, type[LedgerRecord]]] = {
        "model": ModelRecord,
        "access": AccessRecord,
        "tree": TreeRecord,
        "member": MemberRecord,
    }

    @submit
    @allow(Role.NODE)
    def publish(  # noqa: PLR0917
        self,
        ctx: Context,
        process: str,
        node: str,
        estimators: list[str],
        digest: str,
        metrics: dict[str, Any],
        trees_digest: str = "",
        trees: str = "",
    ) -> ModelRecord:
        """Publish the node's model: the ensemble of its last completed task, once; returns the record.

        `estimators` are its ids, ascending, and `digest` is the ensemble digest that the last task signed.
        Trees of it that were never shared come along as a share (docs/formats/share-v1.md) in the transient
        field `trees` or the last argument in base64, with their SHA-256 in `trees_digest`. The consortium
        has access from the beginning.
        """
        context = model_context(ctx, process)
        owner = _owner(context, node)
        caller_of(ctx).need_node(node, owner)
        check_channel(trees, context.collection)
        if ctx.get(keys.model(process, node)) is not None:
            raise StateError("MODEL_EXISTS", f"{node} has published its model of {process}")
        result = last_result(ctx, process, node)
        check_finished(context, result)
        publication = ModelPublication(process, node, estimators, digest, trees_digest, trees)
        check_same(publication, result)
        figures = Fields({"metrics": metrics}, "the model", ("metrics",)).metrics("metrics", MAX_METRICS)
        stored = trees_to_store(ctx, publication, result)
        record = ModelRecord(
            process=process,
            node=node,
            owner=owner,
            iteration=result.iteration,
            image=result.image,
            result=result.signed.payload_digest,
            estimators=result.ensemble,
            digest=result.ensemble_digest,
            metrics=figures,
            stored=tuple(estimator.id for estimator in stored),
            published=provenance(ctx),
        )
        write(ctx, keys.model(process, node), record)
        access.open_to_consortium(ctx, process, node, owner, context.consortium)
        write_trees(ctx, context, node, stored)
        write_members(ctx, process, node, result)
        own = endorsement_by(ctx, self.name, owner)
        seal(ctx, own, [keys.model(process, node), keys.access(process, node)])
        payload = {"process": process, "node": node, "organisation": owner, "digest": digest}
        self.announce(ctx, "ModelPublished", {"version": VERSION, **payload, "estimators": len(estimators)})
        return record

    @submit
    @allow(*STAFF)
    def grant(
        self, ctx: Context, process: str, node: str, organisation: str, expires: str = ""
    ) -> AccessRecord:
        """Let an organisation read a model, by its owner; returns who has access.

        `expires` is a time in UTC such as 2027-01-31T00:00:00Z; without it the grant holds until revoked.
        The time of a read is what its reader claims, so an expiry is a rule for honest readers. A
        revocation ends what this chaincode answers; peers keep the trees that they hold.
        """
        record = access.grant(ctx, access.find_access(ctx, process, node), organisation, expires)
        return self._changed(ctx, "AccessGranted", record)

    @submit
    @allow(*STAFF)
    def revoke(self, ctx: Context, process: str, node: str, organisation: str) -> AccessRecord:
        """Take an organisation's access to a model away, by its owner; returns who has access."""
        record = access.revoke(ctx, access.find_access(ctx, process, node), organisation)
        return self._changed(ctx, "AccessRevoked", record)

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
        return ModelMembers(process, node, model.digest, model.estimators)

    @evaluate
    def list(
        self, ctx: Context, process: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[ModelBrief]:
        """List models, all or those of one process, in brief: that a model exists is no secret."""
        prefix = ("model", parse_process(process)) if process else ("model",)
        return page(ctx, prefix, size, bookmark, ModelRecord, _brief)

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
    def uses(self, ctx: Context, process: str, estimator: str) -> ModelUses:
        """Return the nodes whose published models hold an estimator."""
        wanted = EstimatorId.parse(estimator)
        parts = (parse_process(process), wanted.creator, keys.counter_text(wanted.counter))
        return ModelUses(tuple(parse(item.value, MemberRecord).node for item in ctx.partial("member", parts)))

    def _changed(self, ctx: Context, event: str, record: AccessRecord) -> AccessRecord:
        write(ctx, keys.access(record.process, record.node), record)
        self.announce(
            ctx,
            event,
            {
                "version": VERSION,
                "process": record.process,
                "node": record.node,
                "owner": record.owner,
                "organisation": record.change.organisation,
                "expires": record.change.expires,
            },
        )
        return record


def _owner(context: ModelContext, node: str) -> str:
    if node not in context.nodes:
        raise StateError("NODE_UNKNOWN", f"{node[:64]} is not a node of {context.process}")
    return context.nodes[node]


def _model(ctx: Context, process: str, node: str) -> ModelRecord:
    record = read(ctx, keys.model(process, node), ModelRecord)
    if record is None:
        raise StateError("MODEL_UNKNOWN", f"{node} has published no model of {process}")
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


def _trees(ctx: Context, model: ModelRecord, ids: list[EstimatorId]) -> tuple[SharedEstimator, ...]:
    """Read the trees where they are: with the model, or with the execution record."""
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
