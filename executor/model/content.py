"""A published model with its trees, accepted only whole and unaltered.

1. the answers are about the model that was asked for
2. the members' digests give the ensemble digest of the record
3. that digest is what the node's last task signed, under the parameters of the process
4. the trees are exactly the members, in their order, and each has its member's digest
5. each tree keeps the limits that the process agreed on for the step that learned it
"""

from collections.abc import Iterable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from executor.ledger.chaincodes.proxies import Ledger
from executor.model.errors import ModelError, altered
from executor.model.evidence import check_signed
from learning.actions import predictor
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.options import from_step
from learning.parameters import Parameters
from learning.predict import Predictor
from protocol.agreement.process import Specification
from protocol.agreement.step import StepParameters
from protocol.defence import NOBODY, Membership, vote_weights
from protocol.digest import Digest
from protocol.errors import DataError
from protocol.identifiers import EstimatorId
from protocol.ledger.estimators import SharedEstimator
from protocol.ledger.models import ModelRecord
from protocol.ledger.processes import ProcessRecord
from protocol.ledger.tasks import Standing, TaskEvidence
from protocol.task.opening import TaskId
from protocol.task.result import ensemble_digest
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TreeLimits
from protocol.values import dataclass

Members = tuple[tuple[EstimatorId, Digest], ...]


@dataclass(frozen=True)
class Voting:
    """How trees become a score and a score a decision."""

    threshold: float
    vote: str
    vote_cap: float | None
    members: Membership = NOBODY
    """Who belongs to which organisation: the cap is on organisations."""

    @classmethod
    def of(cls, parameters: Parameters, members: Membership) -> Self:
        """Take it from a process's parameters."""
        return cls(parameters.threshold, parameters.vote, parameters.vote_cap, members)

    def parameters(self) -> Parameters:
        """Return the parameters that vote like this."""
        return Parameters(
            threshold=self.threshold, vote=self.vote, vote_cap=self.vote_cap, members=self.members
        )


@dataclass(frozen=True)
class ModelTerms:
    """All of a model but its trees: which one it is, whose, what its last task signed, and how it votes."""

    process: str
    node: str
    owner: str
    iteration: int
    result: Digest
    """The payload digest of the signed result whose ensemble it is."""
    digest: Digest
    specification_digest: Digest
    parameters_digest: Digest
    schema_digest: Digest
    n_features: int
    voting: Voting


@dataclass(frozen=True)
class Model:
    """A node's published ensemble, its origin, and how it votes."""

    terms: ModelTerms
    ensemble: Ensemble

    @property
    def digest(self) -> Digest:
        """The ensemble digest that the node's last task signed."""
        return self.terms.digest

    @property
    def n_features(self) -> int:
        """How many features a row has."""
        return self.terms.n_features

    @property
    def voting(self) -> Voting:
        """How its trees vote."""
        return self.terms.voting

    @property
    def weights(self) -> NDArray[np.float64]:
        """The weight of each tree in the vote, in the order of ids."""
        voting = self.voting
        return np.array(vote_weights(self.terms.node, voting.members, self.ensemble.ids, voting.vote_cap))

    @property
    def predictor(self) -> Predictor:
        """The ensemble ready to predict, as the nodes use it."""
        return predictor(self.terms.node, self.ensemble, self.voting.parameters())

    def scores(self, X: Any) -> NDArray[np.float64]:
        """Return the score of each row: the weighted mean of probabilities, or of decisions for majority."""
        voters = self.predictor
        return voters.scores(X) if self.voting.vote == "mean" else voters.votes(X)

    def decide(self, scores: NDArray[np.float64], threshold: float | None = None) -> NDArray[np.int8]:
        """Return 1 where the score exceeds the threshold; exactly on it is normal."""
        limit = self.voting.threshold if threshold is None else threshold
        return (scores > limit).astype(np.int8)


def fetch(ledger: Ledger, process: str, node: str) -> Model:
    """Read a model and its trees from the ledger, and accept them as the module says, or raise."""
    record, agreed, task, standing = _records(ledger, process, node)
    _check_asked(record, agreed, process, node)
    return assemble(record, ledger.models.trees(process, node), agreed, task, standing)


def fetch_terms(ledger: Ledger, process: str, node: str) -> ModelTerms:
    """Read what the ledger says of a model, without its trees, and accept it as the module says, or raise."""
    record, agreed, task, standing = _records(ledger, process, node)
    _check_asked(record, agreed, process, node)
    return terms_of(record, agreed, task, standing)


def _records(
    ledger: Ledger, process: str, node: str
) -> tuple[ModelRecord, ProcessRecord, TaskEvidence, Standing]:
    record = ledger.models.get(process, node)
    task = ledger.execution.get_task(TaskId(process, node, record.iteration))
    return record, ledger.orchestration.get(process), task, ledger.execution.standing(process, node)


def _check_asked(record: ModelRecord, agreed: ProcessRecord, process: str, node: str) -> None:
    """Compare what came with what was asked for: a peer may answer with another model, sound in itself."""
    if (record.process, record.node) != (process, node):
        raise altered(f"{process}/{node} was asked for, and {record.process}/{record.node} came")
    if process not in {agreed.process} & {agreed.specification.process}:
        raise altered(f"process {process} was asked for, and {agreed.process} came")


def assemble(
    record: ModelRecord,
    trees: Iterable[SharedEstimator],
    agreed: ProcessRecord,
    task: TaskEvidence,
    standing: Standing,
) -> Model:
    """Put a model together from the answers of the ledger, or refuse them."""
    terms = terms_of(record, agreed, task, standing)
    limits = agreed.specification.voting(record.node, record.iteration).limits
    return Model(terms, Ensemble(check_trees(members_of(record), trees, limits)))


def terms_of(
    record: ModelRecord, agreed: ProcessRecord, task: TaskEvidence, standing: Standing
) -> ModelTerms:
    """Return what the answers of the ledger say of a model without its trees, or refuse them."""
    members_of(record)
    specification = specification_of(agreed)
    parameters = agreed.plan.parameters(record.node, record.iteration)
    made = specification.voting(record.node, record.iteration)
    check_signed(record, task, standing, parameters.digest)
    return ModelTerms(
        record.process,
        record.node,
        record.owner,
        record.iteration,
        record.result,
        record.digest,
        specification.digest,
        parameters.digest,
        made.schema_digest,
        made.limits.n_features,
        _voting(made, Membership.of(agreed.plan.members(record.iteration))),
    )


def members_of(record: ModelRecord) -> Members:
    """Return the members of a model if they give its digest."""
    members = tuple((member.id, member.digest) for member in record.estimators)
    if list(members) != sorted(set(members)):
        raise altered("its members are not in the order of their ids, each once")
    found = ensemble_digest(members)
    if found != record.digest:
        raise altered(f"its members give the digest {found}, and it is published as {record.digest}")
    return members


def specification_of(agreed: ProcessRecord) -> Specification:
    """Return the specification of a process's record if it has the digest that was accepted."""
    if agreed.specification.digest != agreed.specification_digest:
        raise altered(f"the specification of {agreed.process} has not the digest that was accepted")
    return agreed.specification


def check_trees(
    members: Members, trees: Iterable[SharedEstimator], limits: TreeLimits
) -> tuple[Estimator, ...]:
    """Return the estimators if they are exactly the members."""
    estimators = []
    for position, shared in enumerate(trees):
        if position >= len(members):
            raise altered(f"there are more trees than its {len(members)} members")
        id_, digest = members[position]
        if shared.id != id_:
            raise altered(f"tree {position} is {shared.id}, and the member there is {id_}")
        if shared.digest != digest:
            raise altered(f"the tree of {id_} has the digest {shared.digest}, and its member says {digest}")
        estimators.append(_decoded(shared, limits))
    if len(estimators) < len(members):
        raise altered(f"only {len(estimators)} of its {len(members)} trees came")
    return tuple(estimators)


def _decoded(shared: SharedEstimator, limits: TreeLimits) -> Estimator:
    try:
        return shared.decode(limits)
    except DataError as error:
        raise altered(f"the tree of {shared.id} is refused: {error.cause}") from error


def _voting(parameters: StepParameters, members: Membership) -> Voting:
    try:
        return Voting.of(from_step(parameters), members)
    except ParameterError as error:
        raise ModelError(
            "MODEL_OPTIONS",
            f"the process has options of another learner: {error.cause}",
        ) from error
