"""Whether what a node publishes is the ensemble its last task signed, tree by tree."""

from dataclasses import dataclass

from chaincode.common import provenance, write
from chaincode.common.calls import shared_digests, specification_of
from chaincode.common.trees import write_tree
from chaincode.shim import Context
from protocol.agreement.lifecycle import ProcessState
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.common import MAX_PAGE
from protocol.ledger.models import MemberRecord, ModelRecord
from protocol.ledger.processes import ModelContext
from protocol.ledger.record import Raw
from protocol.ledger.tasks import ResultRecord
from protocol.task.payload import read_payload
from protocol.trees.estimator import Estimator
from protocol.trees.kinds import check_format
from protocol.trees.share import Share, ShareLimits

MAX_TREES_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class ModelPublication:
    """The call of a node that publishes: the ids and the digest of its model, and how its trees come."""

    process: str
    node: str
    ids: list[str]
    digest: str
    payload_digest: str
    payload: str


def check_finished(context: ModelContext, result: ResultRecord) -> None:
    """Return if the node has done its last iteration, or the process is completed without it."""
    if context.status not in (ProcessState.RUNNING, ProcessState.COMPLETED):
        raise StateError("PROCESS_NOT_RUNNING", f"process {context.process} is {context.status}")
    if context.status is ProcessState.RUNNING and result.iteration + 1 < context.iterations:
        raise StateError(
            "MODEL_UNFINISHED",
            f"{result.node} has done iteration {result.iteration} of {context.iterations}",
        )


def check_last(context: ModelContext, result: ResultRecord) -> None:
    """Return if the node has done the last iteration of a process that others may then publish it of."""
    check_finished(context, result)
    if result.iteration + 1 < context.iterations:
        raise StateError("MODEL_UNFINISHED", f"{result.node} left after iteration {result.iteration}")


def make_record(ctx: Context, owner: str, result: ResultRecord, metrics: Raw) -> ModelRecord:
    """Make a model's record of a node's last result, as if all of its trees had been shared."""
    return ModelRecord(
        process=result.process,
        node=result.node,
        owner=owner,
        iteration=result.iteration,
        image=result.image,
        result=result.signed.payload_digest,
        estimators=result.ensemble,
        digest=result.ensemble_digest,
        metrics=metrics,
        stored=(),
        published=provenance(ctx),
    )


def check_same(publication: ModelPublication, result: ResultRecord) -> None:
    """Return if the model is the ensemble of the last result."""
    if publication.ids != [str(member.id) for member in result.ensemble]:
        raise StateError("MODEL_ESTIMATORS", "the estimators are not those of the node's last ensemble")
    if publication.digest != str(result.ensemble_digest):
        raise StateError(
            "MODEL_DIGEST", f"the last task signed {result.ensemble_digest}, not {publication.digest}"
        )


def trees_to_store(
    ctx: Context, publication: ModelPublication, result: ResultRecord
) -> tuple[Estimator, ...]:
    """Return the trees of the model that the process never shared: those its readers find nowhere else."""
    digests = {member.id: member.digest for member in result.ensemble}
    missing = never_shared(ctx, publication.process, list(digests))
    if not missing:
        return ()
    agreed = specification_of(ctx, publication.process)
    limits = agreed.voting(publication.node, result.iteration).limits
    digest = Digest.parse(publication.payload_digest)
    raw = read_payload(ctx.transient.get("trees"), publication.payload, digest, MAX_TREES_BYTES)
    share = Share.from_bytes(raw, ShareLimits(len(missing), MAX_TREES_BYTES), limits)
    if share.ids != tuple(missing):
        raise StateError("MODEL_TREES", f"{len(missing)} trees were never shared, from {missing[0]} on")
    for estimator in share.estimators:
        if estimator.tree.digest != digests[estimator.id]:
            raise StateError("MODEL_TREES", f"{estimator.id} is {digests[estimator.id]} in the last ensemble")
        check_format(estimator.tree, limits)
    return share.estimators


def write_trees(ctx: Context, context: ModelContext, node: str, trees: tuple[Estimator, ...]) -> None:
    """Store trees along with the model."""
    for estimator in trees:
        key = keys.tree(context.process, estimator.id, node)
        write_tree(ctx, key, estimator, context.collection)


def write_members(ctx: Context, model: ModelRecord) -> None:
    """Note for each estimator that it is in this model, for its lineage."""
    for member in model.estimators:
        write(ctx, keys.member(model.process, member.id, model.node), MemberRecord(model.node))


def never_shared(ctx: Context, process: str, ids: list[EstimatorId]) -> list[EstimatorId]:
    """Return those of these estimators whose trees the process never shared."""
    missing: list[EstimatorId] = []
    for first in range(0, len(ids), MAX_PAGE):
        missing += shared_digests(ctx, process, ids[first : first + MAX_PAGE]).missing
    return missing
