"""The functions of the execution record that read estimators: their trees, digests, twins and lineage."""

from chaincode.common import DEFAULT_PAGE, LedgerContract, caller_of, read, stored_page
from chaincode.common.calls import MODEL, model_context
from chaincode.common.records import fields_of
from chaincode.common.trees import read_trees
from chaincode.execution_record.lineage import trace
from chaincode.execution_record.store import find_digests
from chaincode.shim import Context, RefusalError, evaluate
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId, parse_process
from protocol.ledger import keys
from protocol.ledger.common import MAX_PAGE, EnsembleMember, Page
from protocol.ledger.estimators import (
    EstimatorEvidence,
    EstimatorRecord,
    Lineage,
    SharedDigests,
    SharedEstimators,
    TwinRecord,
)


class EstimatorQueries(LedgerContract):
    """Trees are for the organisations of the process; all else about them the whole channel may read."""

    @evaluate
    def estimator(self, ctx: Context, process: str, estimator: str) -> EstimatorEvidence:
        """Return an estimator with its tree in base64 and its origin, to members of the consortium."""
        collection = _collection_for_reader(ctx, process)
        wanted = EstimatorId.parse(estimator)
        found = read(ctx, keys.estimator(process, wanted), EstimatorRecord)
        if found is None:
            raise StateError("ESTIMATOR_UNKNOWN", f"{estimator} was never shared in {process}")
        (tree,) = read_trees(ctx, [keys.sharedtree(process, wanted)], collection)
        if tree is None:
            raise StateError("TREES_GONE", f"the tree of {estimator} is no longer kept")
        return EstimatorEvidence(**fields_of(found), tree=tree.tree)

    @evaluate
    def estimators(self, ctx: Context, process: str, ids: list[str]) -> SharedEstimators:
        """Return digests and trees (base64) of up to 1000 estimators, to members of the consortium.

        `missing` lists those that were never shared in the process, or that are no longer kept.
        """
        collection = _collection_for_reader(ctx, process)
        wanted = _ids(ids)
        found = read_trees(ctx, [keys.sharedtree(process, id_) for id_ in wanted], collection)
        return SharedEstimators(
            tuple(record.shared for record in found if record is not None),
            tuple(id_ for id_, record in zip(wanted, found, strict=True) if record is None),
        )

    @evaluate
    def digests(self, ctx: Context, process: str, ids: list[str]) -> SharedDigests:
        """Return the digests of up to 1000 estimators; `missing` lists those that were never shared."""
        wanted = _ids(ids)
        found = find_digests(ctx, parse_process(process), wanted)
        return SharedDigests(
            tuple(EnsembleMember(id_, found[id_]) for id_ in wanted if id_ in found),
            tuple(id_ for id_ in wanted if id_ not in found),
        )

    @evaluate
    def twins(
        self, ctx: Context, process: str, digest: str = "", size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Page[TwinRecord]:
        """List the trees that were shared, by digest, so that those of several creators stand together.

        All of a process, or those of one digest. Where the creators differ, one of them may have copied;
        trees of few splits can also be equal by chance, and single leaves are not listed.
        """
        prefix = ("twin", parse_process(process), *([str(Digest.parse(digest))] if digest else ()))
        return stored_page(ctx, prefix, size, bookmark, TwinRecord)

    @evaluate
    def lineage(
        self, ctx: Context, process: str, estimator: str, size: int = DEFAULT_PAGE, bookmark: str = ""
    ) -> Lineage:
        """Trace an estimator: its creator, task and image, the slots it went into, its takers, its models.

        The slots come page by page: `offers` has a sender, an iteration and the recipients of each SHARE.
        """
        return trace(ctx, process, EstimatorId.parse(estimator), size, bookmark)


def _ids(texts: list[str]) -> list[EstimatorId]:
    if len(texts) > MAX_PAGE:
        raise RefusalError("BAD_ARGUMENT", f"ask for at most {MAX_PAGE} estimators")
    return [EstimatorId.parse(text) for text in texts]


def _collection_for_reader(ctx: Context, process: str) -> str | None:
    """Let the organisations of the process read trees, and the model chaincode for those with a grant."""
    context = model_context(ctx, process)
    if ctx.addressed != MODEL:
        caller_of(ctx).need_member(context.consortium)
    return context.collection
