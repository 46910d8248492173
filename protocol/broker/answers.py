"""The two answers of the broker that say something: which task to run, and what the slots hold.

Fields are read here once, each by the reader of its kind; whatever that refuses, the message is at fault.
"""

from collections.abc import Callable
from typing import Any, Self, TypeVar

from protocol.agreement.parameters import MAX_NODES
from protocol.broker import frames
from protocol.broker.messages import ANSWERS, Answer, Verb
from protocol.errors import DataError, FrameError
from protocol.fields import Fields
from protocol.identifiers import parse_node
from protocol.task.opening import Opening, TaskId
from protocol.task.result import Offer
from protocol.values import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class TaskAnswer:
    """Which task to run: the ledger's task context and the opening, as the task commits to them."""

    task: TaskId
    neighbours: tuple[str, ...]
    parameters: frames.Header
    """Exactly the record `parameters` of the ledger's task context; its digest is the parameter hash."""
    opening: Opening

    def to_answer(self) -> Answer:
        """Return the answer to `task`."""
        fields: frames.Header = {
            **self.task.to_dict(),
            "neighbours": [*self.neighbours],
            "parameters": self.parameters,
            "opening": self.opening.to_dict(),
        }
        return Answer(Verb.TASK, fields)

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """Read the answer to `task`."""
        return _read(lambda: cls._of(answer.fields))

    @classmethod
    def _of(cls, found: Any) -> Self:
        fields = Fields(found, "the answer to task", ANSWERS[Verb.TASK].fields)
        neighbours = tuple(map(parse_node, fields.items("neighbours", MAX_NODES)))
        if list(neighbours) != sorted(set(neighbours)):
            raise FrameError("FRAME_FIELDS", "the neighbours are not sorted, each once")
        if not isinstance(found["parameters"], dict):
            raise FrameError("FRAME_FIELDS", "the parameters are not an object")
        task = TaskId(found["process"], found["node"], found["iteration"])
        return cls(task, neighbours, found["parameters"], Opening.from_dict(found["opening"]))


@dataclass(frozen=True, slots=True)
class SlotsAnswer:
    """What the slots of the node hold, by sender, and the estimators they name in share format, by id."""

    offers: tuple[Offer, ...]
    bundle: bytes

    def to_answer(self) -> Answer:
        """Return the answer to `slots`."""
        return Answer(Verb.SLOTS, {"slots": [offer.to_dict() for offer in self.offers]}, (self.bundle,))

    @classmethod
    def of(cls, answer: Answer) -> Self:
        """Read the answer to `slots`; the bundle is for the reader to parse within its limits."""
        return _read(lambda: cls(_offers(answer.fields), answer.blobs[0]))


def _offers(found: Any) -> tuple[Offer, ...]:
    records = Fields(found, "slots", ("slots",)).items("slots", MAX_NODES)
    offers = tuple(map(Offer.from_dict, records))
    senders = [offer.sender for offer in offers]
    if senders != sorted(set(senders)):
        raise FrameError("FRAME_FIELDS", "the slots are not sorted by sender, each once")
    return offers


def _read(build: Callable[[], T]) -> T:
    """Say of whatever a field's own reader refuses that the message is at fault."""
    try:
        return build()
    except FrameError:
        raise
    except DataError as error:
        raise FrameError("FRAME_FIELDS", f"{error.code}: {error.cause}") from error
