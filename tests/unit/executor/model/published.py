"""A model of trees from three origins, on data with missing values, and the answers a ledger would give."""

import base64
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from executor.model.content import Model, assemble
from learning.fit import FitOptions, FitTask, fit
from learning.options import to_options
from learning.parameters import Parameters
from learning.rows import Rows
from protocol.agreement.process import Specification
from protocol.agreement.schema import FeatureSchema
from protocol.identifiers import EstimatorId
from protocol.task.result import ensemble_digest
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
    """What the ledger answers about one model."""

    record: dict[str, Any]
    trees: list[dict[str, Any]]
    agreed: dict[str, Any]

    def assemble(self) -> Model:
        return assemble(self.record, iter(self.trees), self.agreed)


def answers(**options: Any) -> Answers:
    members = [(e.id, e.tree.digest) for e in estimators()]
    made = specification(**(to_options(Parameters()) | options))
    listed = [{"id": str(id_), "digest": str(digest)} for id_, digest in members]
    return Answers(
        {
            "process": "fraud",
            "node": "node01",
            "owner": "Org1MSP",
            "iteration": 2,
            "digest": str(ensemble_digest(members)),
            "estimators": listed,
        },
        [
            entry | {"tree": base64.b64encode(e.tree.to_bytes()).decode()}
            for entry, e in zip(listed, estimators(), strict=True)
        ],
        {"specification": made.to_dict(), "specification_digest": str(made.digest)},
    )
