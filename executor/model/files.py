"""An exported model: plain JSON and npz, which any program reads without code of ours (docs/models.md).

Both hold the trees as they are, so that whoever has a file can compute the model's digest again.
"""

import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from executor.model.content import Model, Voting
from executor.model.errors import ModelError, altered
from learning.ensemble import Ensemble
from protocol.agreement.schema import FeatureSchema
from protocol.defence import Membership
from protocol.digest import Digest
from protocol.errors import DataError
from protocol.identifiers import EstimatorId, parse_node, parse_organisation, parse_process
from protocol.task.result import ensemble_digest
from protocol.trees.estimator import Estimator
from protocol.trees.limits import FORMAT_MAX_INTERNAL, TreeLimits
from protocol.trees.tree import Tree

FORMAT, VERSION = "attestree-model", 2
ARRAYS = ("feature", "threshold", "left", "right", "missing_left", "value")
MAX_BYTES = 1 << 30


def to_json(model: Model, schema: FeatureSchema | None = None) -> bytes:
    """Return the model as one JSON object; numbers read back as the same floats."""
    return (json.dumps(to_dict(model, schema), indent=1) + "\n").encode()


def to_dict(model: Model, schema: FeatureSchema | None = None) -> dict[str, Any]:
    """Return what the JSON form holds."""
    voting = model.voting
    return {
        "format": FORMAT,
        "version": VERSION,
        "process": model.process,
        "node": model.node,
        "owner": model.owner,
        "digest": str(model.digest),
        "specification_digest": str(model.specification_digest),
        "schema_digest": str(model.schema_digest),
        "n_features": model.n_features,
        "features": None if schema is None else list(schema.features),
        "label": None if schema is None else schema.label,
        "voting": {
            "threshold": voting.threshold,
            "vote": voting.vote,
            "vote_cap": voting.vote_cap,
            "organisations": dict(voting.members.nodes),
        },
        "estimators": [
            {
                "id": str(estimator.id),
                "digest": str(estimator.tree.digest),
                "weight": weight,
                **{name: getattr(estimator.tree, name).tolist() for name in ARRAYS},
            }
            for estimator, weight in zip(model.ensemble, model.weights.tolist(), strict=True)
        ],
    }


def from_json(raw: bytes, file: str) -> tuple[Model, FeatureSchema | None]:
    """Read an exported model back and check it as one that comes from the ledger."""
    if len(raw) > MAX_BYTES:
        raise _no_model(file, f"more than {MAX_BYTES} bytes")
    try:
        record = json.loads(raw)
        if (record["format"], record["version"]) != (FORMAT, VERSION):
            raise _no_model(file, f"format {record['format']!r}, version {record['version']!r}")
        model = _model(record)
        schema = (
            None if record["features"] is None else FeatureSchema(tuple(record["features"]), record["label"])
        )
    except ModelError:
        raise
    except DataError as error:
        raise altered(f"{file}: {error.cause}") from error
    except (ValueError, KeyError, TypeError, RecursionError, AttributeError) as error:
        raise _no_model(file, f"{type(error).__name__} {error}") from error
    if schema is not None and schema.digest != model.schema_digest:
        raise altered(f"{file}: the features do not give the schema's digest")
    if schema is not None and len(schema.features) != model.n_features:
        raise altered(f"{file}: {len(schema.features)} features, and it says {model.n_features}")
    return model, schema


def _model(record: Mapping[str, Any]) -> Model:
    voting = record["voting"]
    limits = TreeLimits(record["n_features"], FORMAT_MAX_INTERNAL, FORMAT_MAX_INTERNAL)
    model = Model(
        parse_process(record["process"]),
        parse_node(record["node"]),
        parse_organisation(record["owner"]),
        Digest.parse(record["digest"]),
        Digest.parse(record["specification_digest"]),
        Digest.parse(record["schema_digest"]),
        record["n_features"],
        Ensemble.of([_estimator(entry, limits) for entry in record["estimators"]]),
        Voting(
            voting["threshold"], voting["vote"], voting["vote_cap"], _membership(voting["organisations"])
        ),
    )
    model.voting.parameters()
    found = ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in model.ensemble])
    if found != model.digest:
        raise altered(f"its trees give the digest {found}, and it says {model.digest}")
    return model


def _membership(record: Mapping[str, Any]) -> Membership:
    return Membership.of({parse_node(node): parse_organisation(name) for node, name in record.items()})


def _estimator(entry: Mapping[str, Any], limits: TreeLimits) -> Estimator:
    tree = Tree.from_arrays(
        entry["feature"],
        entry["threshold"],
        entry["left"],
        entry["right"],
        entry["value"],
        entry["missing_left"],
        limits,
    )
    if str(tree.digest) != entry["digest"]:
        raise altered(
            f"the tree of {entry['id']} has the digest {tree.digest}, and it says {entry['digest']}"
        )
    return Estimator(EstimatorId.parse(entry["id"]), tree)


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
        "weight": model.weights,
        "decision_threshold": np.array(model.voting.threshold),
        "vote": np.array(model.voting.vote),
        "n_features": np.array(model.n_features),
        "process": np.array(model.process),
        "node": np.array(model.node),
        "digest": np.array(str(model.digest)),
        "schema_digest": np.array(str(model.schema_digest)),
    }
    file = io.BytesIO()
    np.savez_compressed(file, allow_pickle=False, **arrays)
    return file.getvalue()


def trees_of_npz(raw: bytes) -> Sequence[tuple[EstimatorId, Tree]]:
    """Read the trees of an npz form back."""
    with np.load(io.BytesIO(raw), allow_pickle=False) as found:
        arrays = {name: found[name] for name in (*ARRAYS, "first", "size", "creator", "counter")}
    trees = []
    for i, (first, size) in enumerate(zip(arrays["first"], arrays["size"], strict=True)):
        part = {name: arrays[name][first : first + size] for name in ARRAYS}
        trees.append(
            (EstimatorId(str(arrays["creator"][i]), int(arrays["counter"][i])), Tree.from_arrays(**part))
        )
    return trees


def _no_model(file: str, cause: str) -> ModelError:
    return ModelError(
        "MODEL_FILE",
        f"{file}: this is no exported model: {cause}",
    )


def write(path: Path, raw: bytes) -> None:
    """Write a file whole or not at all."""
    unfinished = path.with_name(f".{path.name}.unfinished")
    unfinished.write_bytes(raw)
    unfinished.replace(path)
