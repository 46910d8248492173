"""An exported model as numpy arrays, which any program reads without code of ours (docs/models.md)."""

import io
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from executor.model.content import Model
from executor.model.files import ARRAYS, from_flat
from protocol.identifiers import EstimatorId
from protocol.trees import encoding_boosted
from protocol.trees.boosted import Boosted
from protocol.trees.content import Content
from protocol.trees.limits import BOOSTED, FORMAT_LIMITS
from protocol.trees.tree import Tree


def to_npz(model: Model) -> bytes:
    """Return the model as numpy arrays: nodes of all trees one after the other, tree i from first[i] on."""
    trees = [estimator.tree for estimator in model.ensemble]
    sizes = np.array([tree.n_nodes for tree in trees], dtype=np.int64)
    arrays: dict[str, NDArray[Any]] = {
        name: np.concatenate([getattr(tree, name) for tree in trees]) for name in ARRAYS
    }
    arrays |= {
        "first": np.cumsum(sizes) - sizes,
        "size": sizes,
        "creator": np.array([estimator.id.creator for estimator in model.ensemble]),
        "counter": np.array([estimator.id.counter for estimator in model.ensemble], dtype=np.int64),
        "format": np.array([tree.format for tree in trees], dtype=np.int64),
        "weight": model.weights,
        "decision_threshold": np.array(model.voting.threshold),
        "vote": np.array(model.voting.vote),
        "n_features": np.array(model.n_features),
        "process": np.array(model.terms.process),
        "node": np.array(model.terms.node),
        "digest": np.array(str(model.digest)),
        "schema_digest": np.array(str(model.terms.schema_digest)),
    }
    boosted = [tree for tree in trees if isinstance(tree, Boosted)]
    if boosted:
        starts = zip(boosted, arrays["first"], strict=True)
        arrays["base"] = np.array([tree.base for tree in boosted])
        arrays["root"] = np.concatenate([tree.roots + first for tree, first in starts])
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def trees_of_npz(raw: bytes) -> Sequence[tuple[EstimatorId, Content]]:
    """Read the trees of an npz form back."""
    with np.load(io.BytesIO(raw), allow_pickle=False) as found:
        arrays = {name: found[name] for name in found.files}
    trees: list[tuple[EstimatorId, Content]] = []
    for i, (first, size) in enumerate(zip(arrays["first"], arrays["size"], strict=True)):
        part = {name: arrays[name][first : first + size] for name in ARRAYS}
        number = int(arrays["format"][i])
        tree: Content
        if number == encoding_boosted.FORMAT:
            inside = (arrays["root"] >= first) & (arrays["root"] < first + size)
            roots = (arrays["root"][inside] - first).tolist()
            tree = from_flat(float(arrays["base"][i]), roots, part, replace(FORMAT_LIMITS, kind=BOOSTED))
        else:
            tree = Tree.from_arrays(**part, limits=replace(FORMAT_LIMITS, format=number))
        trees.append((EstimatorId(str(arrays["creator"][i]), int(arrays["counter"][i])), tree))
    return trees
