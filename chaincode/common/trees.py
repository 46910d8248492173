"""The bytes of trees on the ledger: nothing else writes or reads them.

Everything that is known about an estimator without its tree (its digest above all) is in records of its own,
so that checks read digests alone, and whoever keeps the bytes elsewhere changes these functions only.
"""

from collections.abc import Sequence

from chaincode.common.records import read_many, write
from chaincode.shim import Context
from protocol.ledger.estimators import TreeRecord
from protocol.trees.estimator import Estimator


def write_tree(ctx: Context, key: str, estimator: Estimator) -> None:
    """Store the tree of an estimator under a key of the kind `sharedtree` or `tree`."""
    write(ctx, key, TreeRecord.of(estimator))


def read_trees(ctx: Context, keys: Sequence[str]) -> list[TreeRecord | None]:
    """Read trees in the order of their keys, None for each that is not there."""
    return read_many(ctx, keys, TreeRecord)
