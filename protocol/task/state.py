"""State format v1: what a node carries from task to task, as one byte string (docs/formats/state-v1.md).

    u8 version
    u8 length and ASCII text of the process, the same of the node
    u32 iteration, u64 seed, u32 first, u32 number of created digests, 32 bytes each
    the ensemble by ascending id in share format v1, to the end

All numbers little-endian. The state stays on the organisation's disk; its digest is in the record of the
task that left it, and the next task commits to it.
"""

import struct
from collections.abc import Sequence
from typing import Self

from protocol.canonical import MAX_INTEGER
from protocol.digest import SIZE, Digest
from protocol.errors import NodeStateError
from protocol.identifiers import MAX_COUNTER, check_counter, parse_node, parse_process
from protocol.task.opening import TaskId
from protocol.task.result import ensemble_digest
from protocol.trees.estimator import Estimator
from protocol.trees.limits import FORMAT_MAX_OFFERED, TreeLimits
from protocol.trees.share import Share, ShareLimits
from protocol.values import dataclass

VERSION = 1
MAX_BYTES = 16 << 20

_NUMBERS = struct.Struct("<IQII")


@dataclass(frozen=True, slots=True)
class StateRecord:
    """A node between two tasks.

    `created` holds the digests of all trees the node trained in this process, by counter, of which the first
    is `first`: not 0 when the process starts from a model that has trees of this node.
    """

    process: str
    node: str
    iteration: int
    """The first iteration that may start from this state."""
    seed: int
    """The seed of the task that left the state, or that starts from a model."""
    first: int
    created: tuple[Digest, ...]
    ensemble: tuple[Estimator, ...]
    """By ascending id."""

    def __post_init__(self) -> None:
        parse_process(self.process)
        parse_node(self.node)
        check_counter(self.iteration, "iteration")
        check_counter(self.first, "first counter")
        if type(self.seed) is not int or not 0 <= self.seed <= MAX_INTEGER:
            raise NodeStateError("NODE_STATE_VALUE", "the seed is not a whole number from 0 to 2**53-1")
        if type(self.created) is not tuple or not all(type(item) is Digest for item in self.created):
            raise NodeStateError("NODE_STATE_VALUE", "created is not a tuple of digests")
        if self.next_counter > MAX_COUNTER:
            raise NodeStateError("NODE_STATE_VALUE", "the counters of the created trees leave their range")
        ids = Share(self.ensemble).ids
        if list(ids) != sorted(ids):
            raise NodeStateError("NODE_STATE_ORDER", "the ensemble is not sorted by id")
        for estimator in self.ensemble:
            self._check_own(estimator)

    @classmethod
    def initial(cls, task: TaskId, seed: int, model: Sequence[Estimator]) -> Self:
        """Return the state of a node whose first task starts from a published model."""
        ensemble = tuple(sorted(model, key=lambda estimator: estimator.id))
        own = [estimator.id.counter for estimator in ensemble if estimator.id.creator == task.node]
        return cls(task.process, task.node, task.iteration, seed, max(own, default=-1) + 1, (), ensemble)

    @classmethod
    def from_bytes(cls, raw: bytes, limits: TreeLimits) -> Self:
        """Accept the one byte string of a state, every tree within the limits, or raise."""
        _check_start(raw)
        process, position = _text(raw, 1)
        node, position = _text(raw, position)
        numbers, position = _take(raw, position, _NUMBERS.size)
        iteration, seed, first, count = _NUMBERS.unpack(numbers)
        digests, position = _take(raw, position, SIZE * count)
        created = tuple(Digest(digests[at : at + SIZE]) for at in range(0, len(digests), SIZE))
        ensemble = Share.from_bytes(raw[position:], ShareLimits(FORMAT_MAX_OFFERED, MAX_BYTES), limits)
        return cls(process, node, iteration, seed, first, created, ensemble.estimators)

    def to_bytes(self) -> bytes:
        """Return the one byte string of this state."""
        process, node = self.process.encode(), self.node.encode()
        numbers = _NUMBERS.pack(self.iteration, self.seed, self.first, len(self.created))
        raw = b"".join(
            (
                bytes((VERSION, len(process))),
                process,
                bytes((len(node),)),
                node,
                numbers,
                *(digest.raw for digest in self.created),
                Share(self.ensemble).to_bytes(),
            )
        )
        if len(raw) > MAX_BYTES:
            raise NodeStateError("NODE_STATE_SIZE", f"{len(raw)} bytes are more than {MAX_BYTES}")
        return raw

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the bytes: what a task's result and the next task's opening name."""
        return Digest.of(self.to_bytes())

    @property
    def next_counter(self) -> int:
        """The counter of the node's next estimator."""
        return self.first + len(self.created)

    @property
    def ensemble_digest(self) -> Digest:
        """The digest of the ensemble as results and models state it."""
        return ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in self.ensemble])

    def _check_own(self, estimator: Estimator) -> None:
        """Refuse a tree under the node's own name that the node did not create."""
        id_ = estimator.id
        if id_.creator != self.node or id_.counter < self.first:
            return
        if id_.counter >= self.next_counter:
            raise NodeStateError("NODE_STATE_CREATED", f"{id_} is in the ensemble and was never created")
        if self.created[id_.counter - self.first] != estimator.tree.digest:
            raise NodeStateError("NODE_STATE_CREATED", f"{id_} is not the tree that was created as such")


def _check_start(raw: bytes) -> None:
    if type(raw) is not bytes:
        raise NodeStateError("NODE_STATE_INPUT", f"a state is read from bytes, not {type(raw).__name__}")
    if len(raw) > MAX_BYTES:
        raise NodeStateError("NODE_STATE_SIZE", f"{len(raw)} bytes are more than {MAX_BYTES}")
    if _take(raw, 0, 1)[0][0] != VERSION:
        raise NodeStateError("NODE_STATE_VERSION", f"first byte {raw[0]} is not state format {VERSION}")


def _text(raw: bytes, position: int) -> tuple[str, int]:
    length, position = _take(raw, position, 1)
    text, position = _take(raw, position, length[0])
    # Bytes that are not ASCII become characters that no name allows.
    return text.decode("latin-1"), position


def _take(raw: bytes, position: int, length: int) -> tuple[bytes, int]:
    end = position + length
    if end > len(raw):
        raise NodeStateError("NODE_STATE_LENGTH", f"the bytes end within the state, {end - len(raw)} short")
    return raw[position:end], end
