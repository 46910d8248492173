"""The model chaincode: a node's last ensemble, published once, read by those who are allowed to."""

from dataclasses import replace
from typing import Any, ClassVar

from chaincode.common import STAFF, Role, allow, caller_of, read, write
from chaincode.common.calls import last_result, model_context
from chaincode.common.own import endorsement_by, seal
from chaincode.common.trees import check_channel
from chaincode.model import access
from chaincode.model.publication import (
    ModelPublication,
    check_finished,
    check_last,
    check_same,
    make_record,
    never_shared,
    trees_to_store,
    write_members,
    write_trees,
)
from chaincode.model.queries import ModelQueries
from chaincode.model.requests import AccessRequests
from chaincode.shim import Context, submit
from protocol.agreement.process import ModelAccess
from protocol.errors import StateError
from protocol.fields import Fields
from protocol.ledger import keys
from protocol.ledger.estimators import TreeRecord
from protocol.ledger.models import AccessRecord, MemberRecord, ModelRecord
from protocol.ledger.processes import ModelContext
from protocol.ledger.record import VERSION, LedgerRecord
from protocol.ledger.requests import AccessRequest, AccessVote, RequestCount
from protocol.task.result import MAX_METRICS


class ModelContract(ModelQueries, AccessRequests):
    """Models by process and node, each with the organisations that may read it."""

    name = "model"
    events: ClassVar[dict[str, str]] = {
        "ModelPublished": "a node's model was published: version, process, node, organisation, digest,"
        " estimators (how many)",
        "AccessGranted": "an organisation may read a model: version, process, node, owner, organisation,"
        " expires",
        "AccessRequested": "an organisation asks who reads a model: version, process, node, organisation,"
        " number, voter (who asks), granted (null)",
        "AccessVoted": "an organisation voted on a request: version, process, node, organisation (who asks),"
        " number, voter, granted (null while nothing is decided)",
        "AccessRevoked": "an organisation may no longer read a model: version, process, node, owner,"
        " organisation, expires (null)",
    }
    values: ClassVar[dict[str, type[LedgerRecord]]] = {
        "model": ModelRecord,
        "access": AccessRecord,
        "requests": RequestCount,
        "request": AccessRequest,
        "decision": AccessVote,
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
        has access from the beginning. What a member published for the node is replaced, its access kept.
        """
        context = model_context(ctx, process)
        owner = _owner(context, node)
        caller_of(ctx).need_node(node, owner)
        check_channel(trees, context.collection)
        before = _unpublished(ctx, process, node, by_itself=True)
        result = last_result(ctx, process, node)
        check_finished(context, result)
        publication = ModelPublication(process, node, estimators, digest, trees_digest, trees)
        check_same(publication, result)
        figures = Fields({"metrics": metrics}, "the model", ("metrics",)).metrics("metrics", MAX_METRICS)
        stored = trees_to_store(ctx, publication, result)
        record = make_record(ctx, owner, result, figures)
        record = replace(record, stored=tuple(estimator.id for estimator in stored))
        write(ctx, keys.model(process, node), record)
        write_trees(ctx, context, node, stored)
        if before is None:
            self._open(ctx, context, record)
        return self._announced(ctx, record)

    @submit
    @allow(Role.NODE, *STAFF)
    def publish_for(self, ctx: Context, process: str, node: str) -> ModelRecord:
        """Publish the model of a node that did the last iteration, by any member; returns the record.

        The ledger says all of it: the ensemble and the figures that the node's last task signed. Trees that
        were never shared are only with the node: `missing` names them, and the node's own Publish brings
        them at any time.
        """
        context = model_context(ctx, process)
        owner = _owner(context, node)
        caller_of(ctx).need_member(context.consortium)
        _unpublished(ctx, process, node, by_itself=False)
        result = last_result(ctx, process, node)
        check_last(context, result)
        missing = never_shared(ctx, process, [member.id for member in result.ensemble])
        record = replace(make_record(ctx, owner, result, result.metrics), missing=tuple(missing))
        write(ctx, keys.model(process, node), record)
        self._open(ctx, context, record)
        return self._announced(ctx, record)

    @submit
    @allow(*STAFF)
    def grant(
        self, ctx: Context, process: str, node: str, organisation: str, expires: str = ""
    ) -> AccessRecord:
        """Let an organisation read a model, by its owner where it decides; returns who has access.

        `expires` is a time in UTC such as 2027-01-31T00:00:00Z; without it the grant holds until revoked.
        The time of a read is what its reader claims, so an expiry is a rule for honest readers. A
        revocation ends what this chaincode answers; peers keep the trees that they hold.
        """
        record = access.grant(ctx, access.find_access(ctx, process, node), organisation, expires)
        return self._changed(ctx, "AccessGranted", record)

    @submit
    @allow(*STAFF)
    def revoke(self, ctx: Context, process: str, node: str, organisation: str) -> AccessRecord:
        """Take an organisation's access to a model away, by its owner where it decides; returns who has it.

        Where others decide too, RequestRevocation asks them.
        """
        record = access.revoke(ctx, access.find_access(ctx, process, node), organisation)
        return self._changed(ctx, "AccessRevoked", record)

    def _open(self, ctx: Context, context: ModelContext, record: ModelRecord) -> None:
        """Write what begins with a model: who may read it, and whose endorsement a later change needs."""
        process, node, owner = record.process, record.node, record.owner
        access.open_to_consortium(ctx, process, node, owner, context.consortium)
        write_members(ctx, record)
        sealed = [keys.model(process, node)]
        if context.access is ModelAccess.OWNER:
            # Else the owner's peer could keep the others from deciding.
            sealed.append(keys.access(process, node))
        seal(ctx, endorsement_by(ctx, self.name, owner), sealed)

    def _announced(self, ctx: Context, record: ModelRecord) -> ModelRecord:
        self.announce(
            ctx,
            "ModelPublished",
            {
                "version": VERSION,
                "process": record.process,
                "node": record.node,
                "organisation": record.owner,
                "digest": str(record.digest),
                "estimators": len(record.estimators),
            },
        )
        return record

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


def _unpublished(ctx: Context, process: str, node: str, *, by_itself: bool) -> ModelRecord | None:
    """Return what a member published for a node that publishes by itself; refuse what is published twice."""
    found = read(ctx, keys.model(process, node), ModelRecord)
    if found is not None and not (by_itself and found.missing is not None):
        raise StateError("MODEL_EXISTS", f"the model of {node} in {process} is published")
    return found
