"""The kinds of estimators by their registered names: what each is on the wire.

A process names its kind (`estimator_kind`), a task's limits carry the name, and every party reads estimators
through `read`. No rule of the ledger knows a kind. A new one needs something in each of these places, and for
each there is a test that goes through `limits.KIND_NAMES`:

1. on the wire: a `Content` with its encoding, a name in `limits.KIND_NAMES`, an entry here; a page in
   docs/formats and a golden file of the same name
2. in a federation file: the name in executor/process/federation.schema.json
3. in `learning`: an entry in `kinds` with how it is fitted and how it scores; its ways in `fit_options.WAYS`
   and `DEFAULT_WAYS`; in `options` what its ways alone are told; in `explain` what its leaves add up to; in
   `attacks` what a hostile tree is as one of it
4. in `executor.model`: in `files` (JSON) and `npz` what it holds besides the arrays of its nodes, there and
   back; in `graph` how ONNX adds up its leaves
"""

from collections.abc import Callable

from protocol.errors import TreeError
from protocol.trees import encoding_boosted
from protocol.trees.boosted import Boosted
from protocol.trees.content import Content
from protocol.trees.limits import BOOSTED, TREE, TreeLimits
from protocol.trees.tree import Tree
from protocol.values import dataclass


@dataclass(frozen=True)
class WireKind:
    """How estimators of one kind are read, and in which format they are new."""

    read: Callable[[bytes, TreeLimits], Content]
    written: Callable[[TreeLimits], int]
    """The first byte of new ones in a process of these limits."""


KINDS: dict[str, WireKind] = {
    TREE: WireKind(Tree.from_bytes, lambda limits: limits.format),
    BOOSTED: WireKind(Boosted.from_bytes, lambda _: encoding_boosted.FORMAT),
}


def read(raw: bytes, limits: TreeLimits) -> Content:
    """Accept the canonical bytes of an estimator of the process's kind within its limits, or raise."""
    return KINDS[limits.kind].read(raw, limits)


def check_format(content: Content, limits: TreeLimits) -> None:
    """Return if a new estimator is in the format of the process: in another it would pass for another one."""
    written = KINDS[limits.kind].written(limits)
    if content.format != written:
        raise TreeError(
            "TREE_VERSION",
            f"a new estimator is of format {content.format}, and the process's is {written}",
        )
