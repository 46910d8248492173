"""An exported model: plain JSON, which any program reads without code of ours (docs/models.md).

The file holds all that decides how the model scores, and the digests of the other forms beside it. It has one
spelling, so its SHA-256 stands for all of it: `sha256sum model.json` is the digest of the export.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from executor.model.content import Model, ModelTerms, Voting
from executor.model.errors import ModelError, altered
from executor.user_files import parse_json
from learning.ensemble import Ensemble
from protocol.agreement.schema import FeatureSchema
from protocol.defence import Membership
from protocol.digest import Digest
from protocol.errors import DataError
from protocol.identifiers import EstimatorId, check_counter, parse_node, parse_organisation, parse_process
from protocol.task.result import ensemble_digest
from protocol.trees import encoding_boosted
from protocol.trees.boosted import Boosted
from protocol.trees.content import Content
from protocol.trees.estimator import Estimator
from protocol.trees.limits import BOOSTED, FORMAT_MAX_INTERNAL, TreeLimits
from protocol.trees.tree import Tree
from protocol.values import dataclass

FORMAT, VERSION = "attestree-model", 2
ARRAYS = ("feature", "threshold", "left", "right", "missing_left", "value")
OTHER_FORMS = ("npz", "onnx")
MAX_BYTES = 1 << 30


@dataclass(frozen=True)
class Exported:
    """What model.json holds: the model, the names of its features, and the digests of its other forms."""

    model: Model
    schema: FeatureSchema | None = None
    forms: Mapping[str, Digest] = field(default_factory=dict)


def to_json(exported: Exported) -> bytes:
    """Return the model as one JSON object in its one spelling; numbers read back as the same floats."""
    return (json.dumps(to_dict(exported), indent=1) + "\n").encode()


def to_dict(exported: Exported) -> dict[str, Any]:
    """Return what the JSON form holds."""
    model, schema = exported.model, exported.schema
    return {
        "format": FORMAT,
        "version": VERSION,
        **terms_dict(model.terms),
        "features": None if schema is None else list(schema.features),
        "label": None if schema is None else schema.label,
        "files": {f"model.{kind}": str(digest) for kind, digest in sorted(exported.forms.items())},
        "estimators": [
            {
                "id": str(estimator.id),
                "format": estimator.tree.format,
                "digest": str(estimator.tree.digest),
                "weight": weight,
                **_boosting(estimator.tree),
                **{name: getattr(estimator.tree, name).tolist() for name in ARRAYS},
            }
            for estimator, weight in zip(model.ensemble, model.weights.tolist(), strict=True)
        ],
    }


def _boosting(content: Content) -> dict[str, Any]:
    """Return what a boosted estimator has and a single tree has not: its base, and where its trees begin."""
    if not isinstance(content, Boosted):
        return {}
    return {"base": content.base, "roots": content.roots.tolist()}


def terms_dict(terms: ModelTerms) -> dict[str, Any]:
    """Return what the JSON form holds of a model besides its trees."""
    voting = terms.voting
    return {
        "process": terms.process,
        "node": terms.node,
        "owner": terms.owner,
        "iteration": terms.iteration,
        "result": str(terms.result),
        "digest": str(terms.digest),
        "specification_digest": str(terms.specification_digest),
        "parameters_digest": str(terms.parameters_digest),
        "schema_digest": str(terms.schema_digest),
        "n_features": terms.n_features,
        "voting": {
            "threshold": voting.threshold,
            "vote": voting.vote,
            "vote_cap": voting.vote_cap,
            "organisations": dict(voting.members.nodes),
        },
    }


def from_json(raw: bytes, file: str) -> Exported:
    """Read an exported model back and check that it agrees with itself; who wrote it is checked elsewhere."""
    try:
        record = parse_json(raw)
        if (record["format"], record["version"]) != (FORMAT, VERSION):
            raise _no_model(file, f"format {record['format']!r}, version {record['version']!r}")
        exported = Exported(_model(record), _schema(record), _forms(record))
        different = difference(record, to_dict(exported))
    except ModelError as error:
        raise ModelError(error.code, f"{file}: {error.cause.removeprefix(f'{file}: ')}") from error
    except DataError as error:
        raise altered(f"{file}: {error.cause}") from error
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise _no_model(file, f"{type(error).__name__} {error}") from error
    if different is not None:
        raise altered(f"{file}: {different} is not what the rest of the file gives")
    if to_json(exported) != raw:
        raise altered(f"{file}: it is spelled otherwise than it was exported")
    return exported


def difference(found: Any, expected: Any, place: str = "") -> str | None:
    """Name the first place where two JSON values differ, such as voting.threshold; None if nowhere."""
    if isinstance(found, dict) and isinstance(expected, dict):
        for name in sorted(found.keys() | expected.keys()):
            inner = f"{place}.{name}" if place else name
            if name not in found or name not in expected:
                return inner
            if (deeper := difference(found[name], expected[name], inner)) is not None:
                return deeper
        return None
    if isinstance(found, list) and isinstance(expected, list) and len(found) == len(expected):
        pairs = enumerate(zip(found, expected, strict=True))
        return next((d for i, (a, b) in pairs if (d := difference(a, b, f"{place}[{i}]"))), None)
    # Python has True == 1 and 1 == 1.0, and JSON has not.
    return None if type(found) is type(expected) and found == expected else place or "all of it"


def _model(record: Mapping[str, Any]) -> Model:
    voting = record["voting"]
    widest = TreeLimits(record["n_features"], FORMAT_MAX_INTERNAL, FORMAT_MAX_INTERNAL)
    check_counter(record["iteration"], "iteration")
    terms = ModelTerms(
        parse_process(record["process"]),
        parse_node(record["node"]),
        parse_organisation(record["owner"]),
        record["iteration"],
        Digest.parse(record["result"]),
        Digest.parse(record["digest"]),
        Digest.parse(record["specification_digest"]),
        Digest.parse(record["parameters_digest"]),
        Digest.parse(record["schema_digest"]),
        record["n_features"],
        Voting(voting["threshold"], voting["vote"], voting["vote_cap"], _membership(voting["organisations"])),
    )
    terms.voting.parameters()
    model = Model(terms, Ensemble.of([_estimator(entry, widest) for entry in record["estimators"]]))
    found = ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in model.ensemble])
    if found != model.digest:
        raise altered(f"its trees give the digest {found}, and it says {model.digest}")
    return model


def _membership(record: Mapping[str, Any]) -> Membership:
    return Membership.of({parse_node(node): parse_organisation(name) for node, name in record.items()})


def _schema(record: Mapping[str, Any]) -> FeatureSchema | None:
    if record["features"] is None:
        return None
    schema = FeatureSchema(tuple(record["features"]), record["label"])
    if str(schema.digest) != record["schema_digest"]:
        raise altered("the features do not give the schema's digest")
    if len(schema.features) != record["n_features"]:
        raise altered(f"{len(schema.features)} features, and it says {record['n_features']}")
    return schema


def _forms(record: Mapping[str, Any]) -> dict[str, Digest]:
    found = {f"model.{kind}": kind for kind in OTHER_FORMS}
    for name in record["files"]:
        if name not in found:
            raise altered(f"files: {str(name)[:40]!r} is no form of a model")
    return {found[name]: Digest.parse(text) for name, text in record["files"].items()}


def _estimator(entry: Mapping[str, Any], widest: TreeLimits) -> Estimator:
    arrays = {name: entry[name] for name in ARRAYS}
    tree: Content
    if entry["format"] == encoding_boosted.FORMAT:
        tree = from_flat(entry["base"], entry["roots"], arrays, replace(widest, kind=BOOSTED))
    else:
        tree = Tree.from_arrays(**arrays, limits=replace(widest, format=entry["format"]))
    if str(tree.digest) != entry["digest"]:
        raise altered(
            f"the tree of {entry['id']} has the digest {tree.digest}, and it says {entry['digest']}"
        )
    return Estimator(EstimatorId.parse(entry["id"]), tree)


def from_flat(base: float, roots: Sequence[int], arrays: Mapping[str, Any], limits: TreeLimits) -> Content:
    """Return the boosted estimator whose trees stand in arrays one after the other, each from its root."""
    trees = []
    ends = [*roots[1:], len(arrays["feature"])]
    for first, end in zip(roots, ends, strict=True):
        tree = {name: array[first:end] for name, array in arrays.items()}
        for side in ("left", "right"):
            tree[side] = [child if child < 0 else child - first for child in tree[side]]
        trees.append(tree)
    return Boosted.from_arrays(base, trees, limits)


def _no_model(file: str, cause: str) -> ModelError:
    return ModelError(
        "MODEL_FILE",
        f"{file}: this is no exported model: {cause}",
    )
