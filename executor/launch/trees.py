"""Trees that neighbours offer: fetched from the ledger once, however many nodes of this host GET them."""

import threading
from collections import OrderedDict, defaultdict
from collections.abc import Iterable

from executor.ledger.chaincodes.proxies import Ledger
from protocol.errors import StateError
from protocol.identifiers import EstimatorId
from protocol.ledger.estimators import SharedEstimator
from protocol.ledger.processes import TaskContext
from protocol.trees.estimator import Estimator

MAX_BYTES = 64 << 20
"""How much of trees is remembered; the longest unused go first."""

Key = tuple[str, EstimatorId]


class KnownTrees:
    """Remembers trees by process and id, within bounds; nodes that ask for the same at once fetch it once.

    An id stands for one tree for good, and what enough organisations said of it holds. Besides, the learner
    compares every tree with the share that its sender signed.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._trees: OrderedDict[Key, tuple[Estimator, int]] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()
        self._fetching: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)

    def offered(self, ledger: Ledger, context: TaskContext, ids: list[EstimatorId]) -> list[Estimator]:
        """Return estimators by id, in that order; what is not known is fetched."""
        with self._lock:
            fetching = self._fetching[context.process]
        with fetching:
            known = self._known(context.process, ids)
            fetched = offered_estimators(ledger, context, [id_ for id_ in ids if id_ not in known])
            self.add(context.process, fetched)
        known |= {estimator.id: estimator for estimator in fetched}
        return [known[id_] for id_ in ids]

    def add(self, process: str, estimators: Iterable[Estimator]) -> None:
        """Remember what is on the ledger."""
        with self._lock:
            for estimator in estimators:
                key = process, estimator.id
                size = len(estimator.tree.to_bytes())
                self._bytes += size - self._trees.pop(key, (estimator, 0))[1]
                self._trees[key] = estimator, size
            while self._bytes > self._max_bytes:
                _, (_, size) = self._trees.popitem(last=False)
                self._bytes -= size

    def _known(self, process: str, ids: Iterable[EstimatorId]) -> dict[EstimatorId, Estimator]:
        found = {}
        with self._lock:
            for id_ in ids:
                if (held := self._trees.get((process, id_))) is not None:
                    self._trees.move_to_end((process, id_))
                    found[id_] = held[0]
        return found


def offered_estimators(ledger: Ledger, context: TaskContext, ids: list[EstimatorId]) -> list[Estimator]:
    """Fetch estimators by id; those of an initial model are with the model."""
    found = _decoded(context, ledger.execution.estimators(context.process, ids).estimators)
    initial = context.parameters.initial_model
    if len(found) < len(ids) and initial is not None:
        trees = ledger.models.trees(initial.process, initial.node, used_by=context.process)
        found = _decoded(context, trees) | found
    lost = [estimator_id for estimator_id in ids if estimator_id not in found]
    if lost:
        raise _lost(ledger, context, lost)
    return [found[estimator_id] for estimator_id in ids]


def _lost(ledger: Ledger, context: TaskContext, ids: list[EstimatorId]) -> StateError:
    """Say what became of trees that are offered and cannot be read: their digests outlive them."""
    names = ", ".join(map(str, ids[:5]))
    if ledger.execution.digests(context.process, ids).estimators:
        return StateError("TREES_GONE", f"{names} is offered and no longer kept by the peers")
    return StateError("ESTIMATOR_UNKNOWN", f"{names} is offered and not on the ledger")


def _decoded(context: TaskContext, estimators: Iterable[SharedEstimator]) -> dict[EstimatorId, Estimator]:
    return {shared.id: shared.decode(context.limits) for shared in estimators}
