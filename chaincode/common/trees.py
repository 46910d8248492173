"""The bytes of trees on the ledger: nothing else writes or reads them.

Everything that is known about an estimator without its tree (its digest above all) is in records of its own,
so that checks read digests alone. The trees of a confidential process are in a collection of private data
that the peers of its organisations hold; the keys are the same.
"""

from collections.abc import Sequence

from chaincode.common.records import encode, parse, read_many, write
from chaincode.shim import Context
from protocol.errors import AccessError
from protocol.ledger.estimators import TreeRecord
from protocol.trees.estimator import Estimator


def write_tree(ctx: Context, key: str, estimator: Estimator, collection: str | None) -> None:
    """Store the tree of an estimator under a key of the kind `sharedtree` or `tree`."""
    if collection is None:
        write(ctx, key, TreeRecord.of(estimator))
    else:
        ctx.private(collection).put(key, encode(TreeRecord.of(estimator)))


def read_trees(ctx: Context, keys: Sequence[str], collection: str | None) -> list[TreeRecord | None]:
    """Read trees in the order of their keys, None for each that is not there, or not any more."""
    if collection is None:
        return read_many(ctx, keys, TreeRecord)
    found = ctx.private(collection).get_many(keys, TreeRecord.max_bytes)
    return [None if raw is None else parse(raw, TreeRecord) for raw in found]


def check_channel(payload: str, collection: str | None) -> None:
    """Refuse the trees of a confidential process as an argument: arguments are in the block."""
    if collection is not None and payload:
        raise AccessError("TREES_CONFIDENTIAL", "the trees came as an argument, which every peer keeps")
