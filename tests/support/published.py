"""A model of trees from three origins, on data with missing values, and the answers a ledger would give."""

from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from executor.model.content import Model, assemble
from learning.ensemble import Ensemble
from learning.fit import FitOptions, FitTask, fit
from learning.options import to_options
from learning.parameters import Parameters
from learning.rows import Rows
from protocol.agreement.lifecycle import ProcessState, TaskState
from protocol.agreement.process import Specification
from protocol.agreement.schema import FeatureSchema
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.ledger.common import EnsembleMember, ImageVersion, Provenance, Signed
from protocol.ledger.estimators import SharedEstimator
from protocol.ledger.models import ModelRecord
from protocol.ledger.processes import ProcessRecord
from protocol.ledger.tasks import ResultRecord, Standing, TaskEvidence
from protocol.signing import SigningKey
from protocol.task.opening import Opening, TaskId, statement
from protocol.task.result import TaskResult, ensemble_digest
from protocol.task.statement import Action, sign_statement
from protocol.trees.estimator import Estimator
from protocol.trees.limits import TreeLimits
from protocol.trees.tree import Tree

N = 6
SCHEMA = FeatureSchema(tuple(f"V{i}" for i in range(N)), "Class")


def values(rows: int, seed: int = 1) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, N)).astype(np.float32)
    X[rng.random(X.shape) < 0.1] = np.nan
    return X


@cache
def estimators() -> tuple[Estimator, ...]:
    """Twelve, six and two trees, and one without a split."""
    X = values(600)
    rows = Rows.of(X, np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1] * X[:, 2]) > 1)
    made: list[Estimator] = []
    for node, count in (("node01", 12), ("node06", 6), ("node11", 2)):
        made += fit(rows, FitTask(node, 0, 0, count, 7, FitOptions("balanced"), TreeLimits(N)))
    leaf = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.75])
    return (*made, Estimator(EstimatorId("node16", 0), leaf))


def specification(**options: Any) -> Specification:
    record = {
        "version": 1,
        "process": "fraud",
        "organisations": ["Org1MSP"],
        "nodes": {"node01": "Org1MSP"},
        "topology": {"kind": "ring"},
        "steps": [
            {
                "name": "train",
                "image": {"name": "attestree/learner", "version": "1"},
                "iterations": 3,
                "parameters": {
                    "n_new": 10,
                    "n_max": 50,
                    "n_share": 10,
                    "seed": 1,
                    "limits": {"n_features": N},
                    "schema_digest": str(SCHEMA.digest),
                    "options": options,
                },
            }
        ],
    }
    return Specification.from_dict(record)


@dataclass
class Answers:
    """What the ledger answers about one model; a test alters one of them."""

    record: ModelRecord
    trees: list[SharedEstimator]
    agreed: ProcessRecord
    task: TaskEvidence
    standing: Standing

    def assemble(self) -> Model:
        return assemble(self.record, iter(self.trees), self.agreed, self.task, self.standing)

    def agree(self, specification: Specification) -> None:
        """Let the process have accepted another specification."""
        self.agreed = replace(
            self.agreed, specification=specification, specification_digest=specification.digest
        )
        self.task = agreed_task(specification, self.record)


def agreed_task(made: Specification, record: ModelRecord) -> TaskEvidence:
    """The node's last task, whose key signed its result under the parameters of the process."""
    task, key = TaskId(record.process, record.node, record.iteration), SigningKey(bytes(range(32)))
    unknown = Digest.of(b"of no account here")
    opening = Opening(
        key.verify_key,
        unknown,
        unknown,
        made.parameters(record.node, record.iteration).digest,
        SCHEMA.digest,
        None,
        unknown,
        unknown,
    )
    signature = sign_statement(key, statement(task, opening, Action.COMPLETE, record.result))
    signed = Signed(record.result, signature.hex(), record.published)
    outcome = ResultRecord(
        **task.to_dict(),
        organisation=record.owner,
        attempt=1,
        image=record.image,
        share=None,
        created=(),
        slots=(),
        ensemble=record.estimators,
        ensemble_digest=record.digest,
        state=unknown,
        metrics={},
        signed=signed,
    )
    return TaskEvidence(
        **task.to_dict(),
        organisation=record.owner,
        state=TaskState.COMPLETED,
        attempt=1,
        opening=opening,
        result=signed,
        outcome=outcome,
    )


def answers(**options: Any) -> Answers:
    members = tuple(EnsembleMember(e.id, e.tree.digest) for e in estimators())
    made = specification(**(to_options(Parameters()) | options))
    by = Provenance("Org1MSP", "node01", "node", Digest.of(b"certificate"), "2026-11-16T00:00:00Z", "tx")
    digest = ensemble_digest([(member.id, member.digest) for member in members])
    ids = tuple(member.id for member in members)
    result = TaskResult(0, (), (), ids, digest, Digest.of(b"of no account here"), {})
    record = ModelRecord(
        process="fraud",
        node="node01",
        owner="Org1MSP",
        iteration=2,
        image=ImageVersion("attestree/learner", "1"),
        result=result.digest,
        estimators=members,
        digest=digest,
        metrics={},
        stored=(),
        published=by,
    )
    agreed = ProcessRecord("fraud", ProcessState.COMPLETED, made, made.digest, by)
    trees = [SharedEstimator.of(e) for e in estimators()]
    standing = Standing("fraud", "node01", record.iteration, 0)
    return Answers(record, trees, agreed, agreed_task(made, record), standing)


def small_model() -> Model:
    """The same model with three of its trees, for tests that read it many times."""
    model = answers().assemble()
    made = model.ensemble.estimators[-3:]
    digest = ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in made])
    return Model(replace(model.terms, digest=digest), Ensemble(made))
