"""The registry of one recipient: a slot per sender, each holding only the sender's latest SHARE.

Overwriting is what bounds it: at most n_share estimators for each of the other nodes, however many
iterations pass.
"""

from collections.abc import Sequence

from learning.errors import ParameterError
from protocol.trees.estimator import Estimator


class Registry:
    """What the other nodes currently offer to one node."""

    def __init__(self, recipient: str) -> None:
        self.recipient = recipient
        self._slots: dict[str, tuple[Estimator, ...]] = {}

    def write(self, sender: str, estimators: Sequence[Estimator]) -> None:
        """Overwrite the sender's slot; an empty SHARE empties it."""
        if sender == self.recipient:
            raise ParameterError(f"{sender} writes to its own registry")
        self._slots[sender] = tuple(estimators)

    def slots(self) -> dict[str, tuple[Estimator, ...]]:
        """Return every slot, by sender ascending."""
        return {sender: self._slots[sender] for sender in sorted(self._slots)}

    def __len__(self) -> int:
        return sum(len(slot) for slot in self._slots.values())
