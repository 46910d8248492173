"""Which estimators a node may offer; chaincode and auditor ask the same.

Only FIT creates, and only under the node's own name: a node's new estimators carry the counters that follow
those on record. An estimator of an earlier FIT that is offered for the first time must be the one that its
task announced. Of others, a node offers only what its last ensemble holds, byte for byte: it can neither
forge a creator, nor pass on what it was never offered, nor put its own name to a tree that it took.
"""

from collections.abc import Mapping
from typing import TypeAlias

from protocol.digest import Digest
from protocol.errors import StateError
from protocol.identifiers import EstimatorId

Members: TypeAlias = Mapping[EstimatorId, Digest]
"""Estimators by id, each with the digest of its tree."""
MAX_CHANCE = 16
"""Trees of at most so many splits may be equal by chance (docs/adr/0405): they are marked, never refused."""


def check_held(node: str, others: Members, held: Members) -> None:
    """Refuse estimators of others that the node does not have, or has with other bytes."""
    for estimator_id, digest in others.items():
        if estimator_id not in held:
            raise StateError(
                "ESTIMATOR_NOT_HELD", f"{node} offers {estimator_id}, which its last ensemble does not hold"
            )
        check_same(estimator_id, digest, held[estimator_id])


def check_counters(new: Members, announced: Members, following: int, n_new: int) -> None:
    """Refuse counters beyond this FIT, and below it any tree that its own task did not announce."""
    for estimator_id in new:
        if estimator_id.counter >= following + n_new:
            raise StateError(
                "ESTIMATOR_COUNTER",
                f"{estimator_id}: this FIT creates counters {following} to {following + n_new - 1}",
            )
    for estimator_id, digest in new.items():
        if estimator_id.counter < following:
            if estimator_id not in announced:
                raise StateError(
                    "ESTIMATOR_COUNTER", f"{estimator_id} goes back to a counter no task announced"
                )
            check_same(estimator_id, digest, announced[estimator_id])


def check_not_copied(node: str, new: Members, splits: Mapping[EstimatorId, int], held: Members) -> None:
    """Refuse as an own creation what the node took from another; small trees may be equal by chance.

    Compared with what the node itself holds, and nothing else: nobody can have an honest node refused by
    bringing its tree to the ledger before it.
    """
    taken = {digest: id_ for id_, digest in held.items() if id_.creator != node}
    for estimator_id, digest in new.items():
        origin = taken.get(digest)
        if origin is not None and splits[estimator_id] > MAX_CHANCE:
            raise StateError("ESTIMATOR_COPIED", f"{estimator_id} is {origin}, which {node} took")


def check_same(estimator_id: EstimatorId, digest: Digest, known: Digest) -> None:
    """Refuse other bytes than the ledger has under an id."""
    if digest != known:
        raise StateError("ESTIMATOR_CONFLICT", f"{estimator_id} is {known} on the ledger, not {digest}")
