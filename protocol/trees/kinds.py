"""The kinds of estimators by their registered names: what each is on the wire.

A process names its kind (`estimator_kind`), a task's limits carry the name, and every party reads estimators
through `read`. A new kind is a `Content`, its format page and golden file, a name in `limits.KIND_NAMES` and
an entry here; `learning.kinds` says how it is fitted and how it scores. No rule of the ledger knows a kind.
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
