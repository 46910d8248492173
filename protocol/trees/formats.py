"""The formats of an estimator by number, which is the first byte of each."""

from collections.abc import Callable, Sequence

from protocol.errors import TreeError
from protocol.trees import encoding, encoding_v2
from protocol.trees.encoding import Parsed
from protocol.trees.limits import TreeLimits

_PARSERS: dict[int, Callable[[bytes, TreeLimits], Parsed]] = {
    encoding.VERSION: encoding.parse,
    encoding_v2.VERSION: encoding_v2.parse,
}
_ENCODERS = {encoding.VERSION: encoding.encode, encoding_v2.VERSION: encoding_v2.encode}


def parse(raw: bytes, limits: TreeLimits) -> Parsed:
    """Read a tree of the format that the limits name, or of an earlier one; raise if it is none.

    Earlier ones are read because a process may start from the model of an older one, whose trees keep their
    bytes. That new trees are of the process's own format is for the ledger to check.
    """
    if type(raw) is not bytes:
        raise TreeError("TREE_INPUT", f"a tree is read from bytes, not {type(raw).__name__}")
    if not raw:
        raise TreeError("TREE_LENGTH", "0 bytes are too few for a tree")
    if raw[0] not in _PARSERS or raw[0] > limits.format:
        raise TreeError("TREE_VERSION", f"first byte {raw[0]} is no format up to {limits.format}")
    return _PARSERS[raw[0]](raw, limits)


def encode(
    number: int, features: Sequence[int], thresholds: Sequence[float], values: Sequence[float], missing: int
) -> bytes:
    """Write checked parts in preorder in the format of that number."""
    return _ENCODERS[number](features, thresholds, values, missing)
