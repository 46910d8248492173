"""What the neighbours offer: asked of the broker, and checked to be the shares that the ledger names."""

from learner.broker import Broker
from learner.outcome import Exit, ends_with, need
from learner.task import Task
from learning.robust import TreeRefusal
from protocol.broker.answers import SlotsAnswer
from protocol.broker.frames import MAX_BLOB
from protocol.broker.messages import Request, Verb
from protocol.task.result import Offer, SlotRead
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share, ShareLimits
from protocol.values import dataclass


@dataclass(frozen=True)
class Slots:
    """The offers by sender, each with its estimators, best first."""

    offers: tuple[tuple[Offer, tuple[Estimator, ...]], ...] = ()

    def by_sender(self) -> dict[str, tuple[Estimator, ...]]:
        """Return what GET works on."""
        return {offer.sender: estimators for offer, estimators in self.offers}

    def read(self, refusals: tuple[TreeRefusal, ...]) -> tuple[SlotRead, ...]:
        """Say of each slot what was taken, the estimators already held included, and what refused and why."""
        reasons = {refusal.id: refusal.reason for refusal in refusals}
        return tuple(
            SlotRead(
                offer.sender,
                offer.iteration,
                offer.share,
                tuple(id_ for id_ in offer.ids if id_ not in reasons),
                tuple((id_, reasons[id_]) for id_ in offer.ids if id_ in reasons),
            )
            for offer, _ in self.offers
        )


def ask_slots(broker: Broker, task: Task) -> Slots:
    """Ask what the slots hold; in a synchronous step the answer comes when every neighbour has shared."""
    answer = broker.ask(Request(Verb.SLOTS))
    with ends_with(Exit.TREES):
        said = SlotsAnswer.of(answer)
        for offer in said.offers:
            _check_sender(offer, task)
        named = sorted({id_ for offer in said.offers for id_ in offer.ids})
        bundle = Share.from_bytes(said.bundle, ShareLimits(len(named), MAX_BLOB), task.limits)
        need(list(bundle.ids) == named, Exit.TREES, "the estimators are not those that the slots name, by id")
        held = {estimator.id: estimator for estimator in bundle.estimators}
        return Slots(
            tuple((offer, _checked(offer, tuple(held[id_] for id_ in offer.ids))) for offer in said.offers)
        )


def _check_sender(offer: Offer, task: Task) -> None:
    need(offer.sender in task.neighbours, Exit.TREES, f"{offer.sender} is not a neighbour")
    need(
        not task.agreed.synchronous or offer.iteration == task.id.iteration,
        Exit.TREES,
        f"the slot of {offer.sender} is of iteration {offer.iteration}, the task is {task.id.iteration}",
    )


def _checked(offer: Offer, estimators: tuple[Estimator, ...]) -> tuple[Estimator, ...]:
    """Return the estimators if they are, byte for byte, the share that the sender signed.

    The result names that share, and the ledger compares it: a tree altered on the way is found here or there.
    """
    found = Share(estimators).digest
    need(
        found == offer.share,
        Exit.TREES,
        f"the trees of {offer.sender} have digest {found}, and it shared {offer.share}",
    )
    return estimators
