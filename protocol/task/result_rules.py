"""What a result must be, given what the ledger had before it; chaincode and auditor ask the same.

Each function takes what was read from the ledger as plain values, because the two read it in other ways.
"""

from collections.abc import Iterable, Mapping

from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.task.result import SlotRead, TaskResult


def created_ids(result: TaskResult, node: str, following: int, n_new: int) -> tuple[EstimatorId, ...]:
    """Return the ids of what FIT created: n_new of the node's own, with the counters that follow."""
    if result.first != following or len(result.created) != n_new:
        raise StateError(
            "RESULT_CREATED",
            f"the result creates {len(result.created)} estimators from {result.first},"
            f" and this FIT creates {n_new} from {following}",
        )
    return tuple(EstimatorId(node, following + number) for number in range(n_new))


def check_iteration(slot: SlotRead, iteration: int) -> None:
    """Refuse a slot of another iteration, in a synchronous step."""
    if slot.iteration != iteration:
        raise StateError("RESULT_SLOT", f"the slot of {place_of(slot)} was read in iteration {iteration}")


def unread_neighbours(slots: Iterable[SlotRead], neighbours: Iterable[str]) -> list[str]:
    """Return the neighbours whose slots a result did not read."""
    read_from = {slot.sender for slot in slots}
    return [sender for sender in neighbours if sender not in read_from]


def check_unread(unread: Iterable[str], offered: Mapping[str, bool]) -> None:
    """Refuse a result that left out a neighbour, unless that one shared before it became a neighbour.

    `offered` says of each that has shared in this iteration whether its share was for the node.
    """
    for sender in unread:
        if offered.get(sender, True):
            raise StateError("RESULT_SLOT", f"the slot of {sender} was not read")


def place_of(slot: SlotRead) -> str:
    """Return whose slot of which iteration it is, in words."""
    return f"{slot.sender} in iteration {slot.iteration}"
