"""A model as an ONNX graph: the same comparisons, the same weights, in double precision.

    features (float, N x d) -> Cast to double -> TreeEnsemble (sum over trees of weight * leaf)
        -> Div by the sum of weights -> score (double, N) -> Greater than threshold -> anomalous (bool, N)

Of boosted estimators TreeEnsemble gives one sum each, (N x estimators), and before the division stands

        -> Add the bases -> 1 / (1 + exp(-x)) -> MatMul with the weights

Rows are compared as float32 values, as everywhere in this project, and leaves added in double. The operator
is that of ai.onnx.ml 5, the first whose output is not rounded to float32; where a missing value goes is said
node by node.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from executor.model.content import Model
from executor.model.errors import ModelError
from protocol.trees.boosted import Boosted
from protocol.trees.content import Content

OPSET, TREES_OPSET, IR = 21, 5, 10
INPUT, SCORE, DECISION = "features", "score", "anomalous"
LEQ, SUM, NO_TRANSFORM = 0, 1, 0


def to_onnx(model: Model, features: Sequence[str] | None = None) -> bytes:
    """Return the bytes of the graph; the same model gives the same bytes."""
    if not len(model.ensemble):
        raise ModelError("MODEL_EXPORT", "the model has no trees", case="empty")
    weights = model.weights
    nodes, constants = (_boosted_sums if _is_boosted(model) else _tree_sums)(model, weights)
    graph = helper.make_graph(
        [
            helper.make_node("Cast", [INPUT], ["rows"], to=TensorProto.DOUBLE),
            *nodes,
            helper.make_node("Div", ["sums", "total"], ["means"]),
            helper.make_node("Reshape", ["means", "flat"], [SCORE]),
            helper.make_node("Greater", [SCORE, "threshold"], [DECISION]),
        ],
        "attestree",
        [helper.make_tensor_value_info(INPUT, TensorProto.FLOAT, ["N", model.n_features])],
        [
            helper.make_tensor_value_info(SCORE, TensorProto.DOUBLE, ["N"]),
            helper.make_tensor_value_info(DECISION, TensorProto.BOOL, ["N"]),
        ],
        [
            numpy_helper.from_array(np.array(weights.sum()), "total"),
            numpy_helper.from_array(np.array(model.voting.threshold), "threshold"),
            numpy_helper.from_array(np.array([-1], dtype=np.int64), "flat"),
            *constants,
        ],
    )
    made = helper.make_model(
        graph,
        producer_name="attestree",
        ir_version=IR,
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", TREES_OPSET)],
    )
    helper.set_model_props(made, _properties(model, features))
    onnx.checker.check_model(made)
    return bytes(made.SerializeToString(deterministic=True))


def _properties(model: Model, features: Sequence[str] | None) -> dict[str, str]:
    found = {
        "process": model.terms.process,
        "node": model.terms.node,
        "digest": str(model.digest),
        "schema_digest": str(model.terms.schema_digest),
    }
    return found | ({"features": "\n".join(features)} if features else {})


def _is_boosted(model: Model) -> bool:
    return any(isinstance(estimator.tree, Boosted) for estimator in model.ensemble)


def _tree_sums(model: Model, weights: NDArray[np.float64]) -> tuple[list[Any], list[Any]]:
    """Add up what single trees say, each with its weight in its leaves."""
    parts = Arrays()
    for estimator, weight in zip(model.ensemble, weights, strict=True):
        value = estimator.tree.value
        number = value if model.voting.vote == "mean" else (value > 0.5).astype(np.float64)
        parts.add(estimator.tree, weight * number, 0)
    return [trees_node(parts, 1, "sums")], []


def _boosted_sums(model: Model, weights: NDArray[np.float64]) -> tuple[list[Any], list[Any]]:
    """Give each boosted estimator a sum of its own, make it a probability, and add those up by weight."""
    parts, bases = Arrays(), []
    for target, estimator in enumerate(model.ensemble):
        if not isinstance(estimator.tree, Boosted):
            raise ModelError("MODEL_EXPORT", "the model has estimators of several kinds")
        parts.add(estimator.tree, estimator.tree.value, target)
        bases.append(estimator.tree.base)
    nodes = [
        trees_node(parts, len(bases), "corrections"),
        helper.make_node("Add", ["corrections", "bases"], ["log_odds"]),
        helper.make_node("Sigmoid", ["log_odds"], ["probabilities"]),
    ]
    constants = {
        "bases": np.array([bases]),
        "weights": weights[None, :],
        "estimators": np.array([1]),
    }
    counted = "probabilities"
    if model.voting.vote != "mean":
        nodes += [
            helper.make_node("Greater", ["probabilities", "half"], ["alarms"]),
            helper.make_node("Cast", ["alarms"], ["votes"], to=TensorProto.DOUBLE),
        ]
        constants["half"] = np.array(0.5)
        counted = "votes"
    # Not MatMul: ONNX Runtime joins it with the division that follows, which it then does in float32.
    nodes += [
        helper.make_node("Mul", [counted, "weights"], ["weighted"]),
        helper.make_node("ReduceSum", ["weighted", "estimators"], ["sums"], keepdims=1),
    ]
    return nodes, [numpy_helper.from_array(array, name) for name, array in constants.items()]


def trees_node(parts: "Arrays", targets: int, output: str) -> Any:
    """Return the operator with internal nodes and leaves in arrays of their own, as it wants them."""
    return helper.make_node(
        "TreeEnsemble",
        ["rows"],
        [output],
        domain="ai.onnx.ml",
        aggregate_function=SUM,
        post_transform=NO_TRANSFORM,
        n_targets=targets,
        tree_roots=parts.roots,
        nodes_featureids=parts.feature,
        nodes_splits=numpy_helper.from_array(np.array(parts.threshold), "splits"),
        nodes_modes=numpy_helper.from_array(np.full(len(parts.feature), LEQ, dtype=np.uint8), "modes"),
        nodes_missing_value_tracks_true=parts.missing,
        nodes_truenodeids=parts.true,
        nodes_trueleafs=parts.true_leaf,
        nodes_falsenodeids=parts.false,
        nodes_falseleafs=parts.false_leaf,
        leaf_targetids=parts.targets,
        leaf_weights=numpy_helper.from_array(np.array(parts.leaves), "leaves"),
    )


class Arrays:
    """The operator's arrays, filled tree by tree."""

    def __init__(self) -> None:
        self.roots: list[int] = []
        self.feature: list[int] = []
        self.threshold: list[float] = []
        self.missing: list[int] = []
        self.true: list[int] = []
        self.true_leaf: list[int] = []
        self.false: list[int] = []
        self.false_leaf: list[int] = []
        self.leaves: list[float] = []
        self.targets: list[int] = []

    def add(self, content: Content, leaves: NDArray[np.float64], target: int) -> None:
        """Append the trees of an estimator, whose leaves contribute these numbers to a sum."""
        ends = [*content.roots[1:].tolist(), content.n_nodes]
        for first, end in zip(content.roots.tolist(), ends, strict=True):
            self._add_tree(content, leaves, first, end)
        self.targets += [target] * (len(self.leaves) - len(self.targets))

    def _add_tree(self, tree: Content, leaves: NDArray[np.float64], first: int, end: int) -> None:
        self.roots.append(len(self.feature))
        splits = first + np.flatnonzero(tree.feature[first:end] >= 0)
        if not len(splits):
            self._add_leaf(float(leaves[first]))
            return
        # Where each node of the tree ends up among the operator's internal nodes, or among its leaves.
        place = np.empty(tree.n_nodes, dtype=np.int64)
        place[splits] = len(self.feature) + np.arange(len(splits))
        ends = first + np.flatnonzero(tree.feature[first:end] < 0)
        place[ends] = len(self.leaves) + np.arange(len(ends))
        is_leaf = (tree.feature < 0).astype(np.int64)
        self.feature += tree.feature[splits].tolist()
        self.threshold += tree.threshold[splits].tolist()
        self.missing += tree.missing_left[splits].astype(np.int64).tolist()
        self.true += place[tree.left[splits]].tolist()
        self.true_leaf += is_leaf[tree.left[splits]].tolist()
        self.false += place[tree.right[splits]].tolist()
        self.false_leaf += is_leaf[tree.right[splits]].tolist()
        self.leaves += leaves[ends].tolist()

    def _add_leaf(self, value: float) -> None:
        """Append a tree without a split as one whose both sides are alike; the operator knows no other.

        Each side has a leaf of its own: ONNX Runtime 1.21 to 1.27 count a leaf with two parents wrongly.
        """
        leaf = len(self.leaves)
        self.feature.append(0)
        self.threshold.append(0.0)
        self.missing.append(0)
        self.true.append(leaf)
        self.true_leaf.append(1)
        self.false.append(leaf + 1)
        self.false_leaf.append(1)
        self.leaves += [value, value]
