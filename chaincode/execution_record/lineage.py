"""Where an estimator came from and where it went, from the index that shares, results and models leave."""

from chaincode.common import read, stored_page
from chaincode.common.calls import model_uses
from chaincode.common.records import parse
from chaincode.execution_record.store import find_shares, find_task
from chaincode.shim import Context
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys
from protocol.ledger.estimators import (
    CreationRecord,
    EstimatorRecord,
    Lineage,
    LineageImage,
    OfferRecord,
    OfferTrace,
    TakenRecord,
)
from protocol.ledger.tasks import TaskRecord
from protocol.task.opening import TaskId


def trace(ctx: Context, process: str, wanted: EstimatorId, size: int, bookmark: str) -> Lineage:
    """Return the lineage of an estimator, one page of its offers at a time."""
    shared = read(ctx, keys.estimator(process, wanted), EstimatorRecord)
    announced = read(ctx, keys.creation(process, wanted), CreationRecord)
    # FIT announces a tree when its task completes; until then the share is all there is.
    origin = announced or shared
    if origin is None:
        raise StateError("ESTIMATOR_UNKNOWN", f"no task of {process} announced or shared {wanted}")
    parts = (process, wanted.creator, keys.counter_text(wanted.counter))
    offers = stored_page(ctx, ("offer", *parts), size, bookmark, OfferRecord)
    task = find_task(ctx, TaskId(process, wanted.creator, origin.iteration))
    opening = None if task is None else task.opening
    return Lineage(
        process=process,
        id=wanted,
        digest=origin.digest,
        creator=wanted.creator,
        organisation=None if task is None else task.organisation,
        iteration=origin.iteration,
        attempt=None if task is None else task.attempt,
        image=_image(task),
        public_key=None if opening is None else opening.public_key,
        shared=shared is not None,
        offers=_with_recipients(ctx, process, offers.items),
        bookmark=offers.bookmark,
        taken=tuple(parse(item.value, TakenRecord) for item in ctx.partial("taken", parts)),
        models=model_uses(ctx, process, wanted).models,
    )


def _image(task: TaskRecord | None) -> LineageImage:
    if task is None:
        return LineageImage(None)
    image_id = None if task.opening is None else task.opening.image_id
    if task.image is None:
        return LineageImage(image_id)
    return LineageImage(image_id, task.image.name, task.image.version)


def _with_recipients(ctx: Context, process: str, offers: tuple[OfferRecord, ...]) -> tuple[OfferTrace, ...]:
    shares = find_shares(ctx, process, [(offer.iteration, offer.sender) for offer in offers])
    return tuple(
        OfferTrace(
            offer.sender, offer.iteration, offer.place, shares[offer.iteration, offer.sender].recipients
        )
        for offer in offers
    )
