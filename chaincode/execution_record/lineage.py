"""Where an estimator came from and where it went, from the index that shares, results and models leave."""

from collections.abc import Iterator
from itertools import islice

from chaincode.common import read, stored_page
from chaincode.common.calls import model_uses
from chaincode.common.records import parse
from chaincode.execution_record.store import find_shares, find_task
from chaincode.shim import Context
from protocol.digest import Digest
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
    Taker,
    TwinRecord,
)
from protocol.ledger.tasks import TaskRecord
from protocol.task.opening import TaskId

MAX_READERS = 1000
"""How many recipients one page asks about; its bookmark leads on from there."""

MAX_TWINS = 100


def trace(ctx: Context, process: str, wanted: EstimatorId, size: int, bookmark: str) -> Lineage:
    """Return the lineage of an estimator, one page of its offers at a time."""
    shared = read(ctx, keys.estimator(process, wanted), EstimatorRecord)
    announced = read(ctx, keys.creation(process, wanted), CreationRecord)
    # FIT announces a tree when its task completes; until then the share is all there is.
    origin = announced or shared
    if origin is None:
        raise StateError("ESTIMATOR_UNKNOWN", f"no task of {process} announced or shared {wanted}")
    parts = (process, wanted.creator, keys.counter_text(wanted.counter))
    page = stored_page(ctx, ("offer", *parts), size, bookmark, OfferRecord)
    offers = _with_recipients(ctx, process, page.items)
    kept = _within_reach(offers)
    following = page.bookmark if len(kept) == len(offers) else _bookmark(process, wanted, offers[len(kept)])
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
        offers=kept,
        bookmark=following,
        taken=tuple(taker for offer in kept for taker in _takers(ctx, process, offer)),
        models=model_uses(ctx, process, wanted).models,
        twins=_twins(ctx, process, wanted, origin.digest),
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
            offer.sender,
            offer.iteration,
            offer.place,
            shares[offer.iteration, offer.sender].recipients,
        )
        for offer in offers
    )


def _within_reach(offers: tuple[OfferTrace, ...]) -> tuple[OfferTrace, ...]:
    """Return the first offers, at least one, whose recipients are not too many to ask about."""
    readers = 0
    for number, offer in enumerate(offers):
        readers += len(offer.recipients)
        if number and readers > MAX_READERS:
            return offers[:number]
    return offers


def _bookmark(process: str, wanted: EstimatorId, offer: OfferTrace) -> str:
    return str(keys.parse(keys.offer(process, wanted, offer.sender, offer.iteration)))


def _takers(ctx: Context, process: str, offer: OfferTrace) -> Iterator[Taker]:
    """Find who took what stood at this place of the share, in whichever iteration it read it."""
    for item in ctx.partial("taken", (process, offer.sender, keys.counter_text(offer.iteration))):
        found = parse(item.value, TakenRecord)
        if offer.place in found.places:
            yield Taker(found.node, found.iteration)


def _twins(ctx: Context, process: str, wanted: EstimatorId, digest: Digest) -> tuple[TwinRecord, ...]:
    """Find the first of the others that were shared with the very same tree."""
    with ctx.partial("twin", (process, str(digest))) as found:
        records = [parse(item.value, TwinRecord) for item in islice(found, MAX_TWINS)]
    return tuple(record for record in records if record.id != wanted)
