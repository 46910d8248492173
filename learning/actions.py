"""The three actions of a node, FIT, SHARE and GET, as functions from state to state without any I/O.

The simulator and the learner in its container call these same functions; whoever calls them moves the bytes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from learning.ensemble import Ensemble
from learning.errors import KernelError, ParameterError
from learning.fit import FitTask
from learning.fit import fit as fit_estimators
from learning.kernel import KernelOptions, all_rankable, check_rankable
from learning.parameters import Parameters
from learning.predict import Predictor
from learning.ranking import Ranking
from learning.reach import OwnFit
from learning.robust import HOME_CHECK, TreeRefusal
from learning.rows import Rows
from learning.together import given_up
from protocol.defence import vote_weights
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.trees.content import Content
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TreeLimits
from protocol.values import dataclass

EMPTY = Ensemble()


@dataclass(frozen=True)
class NodeState:
    """What a node carries from one iteration to the next.

    `created` holds the digest of every tree the node trained, by counter, of which the first is `first`: a
    tree that comes back under the node's name is recognised, even long after it was cropped. Only a process
    that starts from a published model has another `first` than 0: the model's trees keep their counters.
    """

    node: str
    seed: int
    iteration: int = 0
    ensemble: Ensemble = EMPTY
    created: tuple[Digest, ...] = ()
    refusals: tuple[TreeRefusal, ...] = ()
    first: int = 0

    @property
    def counter(self) -> int:
        """The counter of the next estimator."""
        return self.first + len(self.created)

    def has_created(self, estimator: Estimator) -> bool:
        """Whether the node trained exactly this tree under this id in this process."""
        place = estimator.id.counter - self.first
        return 0 <= place < len(self.created) and self.created[place] == estimator.tree.digest


def fit_task(state: NodeState, rows: Rows, parameters: Parameters) -> FitTask:
    """Say which trees FIT will train next; it depends on nothing the neighbours send."""
    limits = parameters.limits(rows.n_features)
    return FitTask(
        state.node, state.iteration, state.counter, parameters.n_new, state.seed, parameters.fit, limits
    )


def fit(
    state: NodeState, rows: Rows, parameters: Parameters, fitted: Sequence[Estimator] | None = None
) -> NodeState:
    """FIT: train n_new estimators (or take them from a cache), ADD them, CROP to n_max."""
    if fitted is None:
        fitted = fit_estimators(rows, fit_task(state, rows, parameters))
    expected = [EstimatorId(state.node, state.counter + i) for i in range(parameters.n_new)]
    if [estimator.id for estimator in fitted] != expected:
        raise ParameterError(
            f"FIT of {state.node} must create {parameters.n_new} estimators from {state.counter}"
        )
    return replace(
        state,
        ensemble=_crop(state, state.ensemble.add(fitted), parameters, rows, "fit"),
        created=state.created + tuple(estimator.tree.digest for estimator in fitted),
        refusals=(),
    )


def share(state: NodeState, parameters: Parameters, rows: Rows | None = None) -> tuple[Estimator, ...]:
    """SHARE: return the top n_share, best first, to be written to the slots of the neighbours."""
    ranking = _ranking(state, rows, parameters, "share")
    return state.ensemble.get_top(parameters.n_share, ranking, parameters.quota_of(state.node))


def get(
    state: NodeState,
    slots: Mapping[str, Sequence[Estimator]],
    parameters: Parameters,
    rows: Rows,
) -> NodeState:
    """GET: ADD what the slots hold, except what is refused and recorded, and CROP to n_max.

    What foreign trees agree on shows only when it is known which are held together; those that are then given
    up make room for others.
    """
    taken, refusals = _screen(state, slots, parameters, rows)
    candidates = state.ensemble.add(taken)
    gone: set[EstimatorId] = set()
    while True:
        ensemble = _crop(state, candidates.without(gone), parameters, rows, "get")
        too_many = given_up(state.node, ensemble, parameters, rows, _own_fit(state, parameters, rows))
        if not too_many:
            break
        gone |= too_many
    refused = tuple(TreeRefusal(e.id, HOME_CHECK) for e in taken if e.id in gone)
    return replace(
        state,
        iteration=state.iteration + 1,
        ensemble=ensemble,
        refusals=tuple(sorted((*refusals, *refused), key=_by_place)),
    )


def predictor(node: str, ensemble: Ensemble, parameters: Parameters) -> Predictor:
    """Return a node's ensemble ready to predict, the vote of each other organisation capped."""
    weights = vote_weights(node, parameters.members, ensemble.ids, parameters.vote_cap)
    return Predictor.of([estimator.tree for estimator in ensemble], weights)


def _crop(state: NodeState, ensemble: Ensemble, parameters: Parameters, rows: Rows, purpose: str) -> Ensemble:
    """CROP under the quota, whose places are for trees that tell rows apart."""
    quota = parameters.quota_of(state.node)
    candidates = ensemble if quota is None else ensemble.informed(state.node)
    return candidates.crop(parameters.n_max, _ranking(state, rows, parameters, purpose), quota)


def _ranking(state: NodeState, rows: Rows | None, parameters: Parameters, purpose: str) -> Ranking:
    return parameters.ranking_for(state.node, state.iteration, purpose, state.seed, rows)


def _screen(
    state: NodeState, slots: Mapping[str, Sequence[Estimator]], parameters: Parameters, rows: Rows
) -> tuple[list[Estimator], tuple[TreeRefusal, ...]]:
    """Part what the slots hold into what may be added, and what is refused and why, both by id."""
    reasons: dict[EstimatorId, str | None] = {}
    offered = _by_id(state, slots)
    limits = parameters.limits(rows.n_features)
    for id_, contents in offered.items():
        # Who tells the truth cannot be known here, so neither is taken; the ledger knows.
        conflict = len(contents) > 1
        reasons[id_] = "ENSEMBLE_CONFLICT" if conflict else _unfit(state, contents[0], limits)
    sound = [offered[id_][0] for id_, reason in reasons.items() if reason is None]
    if not all_rankable([estimator.tree for estimator in sound], parameters.kernel):
        reasons |= {estimator.id: _unrankable(estimator.tree, parameters.kernel) for estimator in sound}
    if parameters.home_check is not None:
        foreign = [e for e in sound if reasons[e.id] is None and e.id.creator != state.node]
        found = parameters.home_check.reasons_to_refuse(
            [estimator.tree for estimator in foreign],
            rows,
            parameters.threshold,
            _own_fit(state, parameters, rows),
        )
        reasons |= zip((estimator.id for estimator in foreign), found, strict=True)
    taken = [estimator for estimator in sound if reasons[estimator.id] is None]
    return taken, tuple(TreeRefusal(id_, reason) for id_, reason in reasons.items() if reason is not None)


def _own_fit(state: NodeState, parameters: Parameters, rows: Rows) -> OwnFit:
    return OwnFit(state.node, state.seed, parameters.fit, parameters.limits(rows.n_features))


def _by_place(refusal: TreeRefusal) -> tuple[str, int]:
    return refusal.id.creator, refusal.id.counter


def _by_id(state: NodeState, slots: Mapping[str, Sequence[Estimator]]) -> dict[EstimatorId, list[Estimator]]:
    """Collect the contents offered under each id: none if it is held as offered, the held one too if not."""
    held = {estimator.id: estimator for estimator in state.ensemble}
    offered: dict[EstimatorId, list[Estimator]] = {}
    for sender in sorted(slots):
        for estimator in slots[sender]:
            mine = held.get(estimator.id)
            if mine is not None and mine.tree == estimator.tree:
                continue
            contents = offered.setdefault(estimator.id, [] if mine is None else [mine])
            if all(known.tree != estimator.tree for known in contents):
                contents.append(estimator)
    return dict(sorted(offered.items(), key=lambda item: (item[0].creator, item[0].counter)))


def _unfit(state: NodeState, estimator: Estimator, limits: TreeLimits) -> str | None:
    tree = estimator.tree
    if tree.kind != limits.kind:
        return "TREE_VERSION"
    # What the node made before this process is part of the initial model, for which the ledger vouches.
    if estimator.id.creator == state.node and estimator.id.counter >= state.first:
        return None if state.has_created(estimator) else "FORGED_CREATOR"
    if tree.n_internal > limits.max_internal or tree.depth > limits.max_depth:
        return "TREE_LIMITS"
    if tree.n_internal and int(tree.feature.max()) >= limits.n_features:
        return "TREE_FEATURE_RANGE"
    return None


def _unrankable(tree: Content, options: KernelOptions) -> str | None:
    try:
        check_rankable(tree, options)
    except KernelError as error:
        return error.code
    return None
