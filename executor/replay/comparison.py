"""What came out of a replay beside what is on the ledger: equal, or which tree differs."""

from executor.replay.recorded import Recorded
from executor.replay.run import ReplayedTask
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.challenges import MAX_NAMED, Replayed
from protocol.ledger.tasks import ResultRecord
from protocol.task.result import TaskResult
from protocol.values import dataclass


@dataclass(frozen=True)
class Comparison:
    """The digests that came out, and in words where they are others than the ledger's."""

    replayed: Replayed
    differences: tuple[str, ...]

    @property
    def same(self) -> bool:
        """Whether everything came out as it is on the ledger."""
        return not self.differences


def compare(recorded: Recorded, came: ReplayedTask) -> Comparison:
    """Compare share and result as a whole, and tree by tree."""
    task = recorded.task
    share = None if came.shared is None or task.offered is None else Digest.of(came.shared)
    result = None if came.result is None or task.outcome is None else Digest.of(came.result)
    trees: list[EstimatorId] = []
    found: list[str] = []
    if task.outcome is not None and came.result is not None:
        trees, found = _of_result(task.outcome, TaskResult.from_bytes(came.result))
        if result != task.outcome.signed.payload_digest and not found:
            found.append("the result names other slots, other figures or another output")
    if task.offered is not None and share != task.offered.signed.payload_digest:
        found.append(f"the share is {share} here and {task.offered.signed.payload_digest} on the ledger")
    return Comparison(Replayed(share, result, tuple(trees[:MAX_NAMED])), tuple(found))


def _of_result(recorded: ResultRecord, came: TaskResult) -> tuple[list[EstimatorId], list[str]]:
    trees, found = [], []
    for place, member in enumerate(recorded.created):
        made = came.created[place] if place < len(came.created) else None
        if made != member.digest:
            trees.append(member.id)
            found.append(f"tree {member.id} is {made or 'not made'} here and {member.digest} on the ledger")
    if len(came.created) > len(recorded.created):
        found.append(f"{len(came.created)} trees are made here, {len(recorded.created)} are on the ledger")
    if came.ensemble_digest != recorded.ensemble_digest:
        found.append(
            f"the ensemble is {came.ensemble_digest} here and {recorded.ensemble_digest} on the ledger"
        )
    if came.state != recorded.state:
        found.append(f"the state is {came.state} here and {recorded.state} on the ledger")
    return trees, found
