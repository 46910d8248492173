"""The features of a process: listed, read from a data file, or known by their digest alone."""

from pathlib import Path
from typing import Any

from executor.data.columns import plain
from executor.process.document import Document, Path_
from executor.process.located import fault, located
from protocol.agreement.schema import FeatureSchema
from protocol.trees.limits import TreeLimits


def features_of(document: Document) -> FeatureSchema | None:
    """Return the schema that a file names, None if it names none."""
    content = document.content
    listed, file = content.get("features"), content.get("schema_from")
    if listed is None and file is None:
        return None
    if listed is not None and file is not None:
        raise fault(document, ("schema_from",), "features are listed as well", "Keep one of the two")
    if "label" not in content:
        where = ("features",) if file is None else ("schema_from",)
        raise fault(document, where, "the label is not named", "Add label: the name of the label column")
    label = content["label"]
    if listed is not None:
        with located(document, ("features",)):
            return FeatureSchema(tuple(map(plain, listed)), plain(label))
    with located(document, ("schema_from",)):
        return _columns_of(Path(document.file).parent / str(file), label, content.get("drop", []))


def schema_and_limits(
    document: Document, path: Path_, given: dict[str, Any], features: FeatureSchema | None
) -> tuple[str, dict[str, int]]:
    """Return the schema's digest and the limits of trees for the parameters at a path."""
    limits = dict(given.get("limits", {}))
    if features is None:
        for name, found in (("schema_digest", given), ("n_features", limits)):
            if name not in found:
                raise fault(
                    document,
                    path,
                    f"without features, {name} is needed",
                    "List features and label, or give both schema_digest and limits.n_features",
                )
        return given["schema_digest"], _full(limits)
    digest, count = str(features.digest), len(features.features)
    for place, found_value, computed in (
        ((*path, "schema_digest"), given.get("schema_digest", digest), digest),
        ((*path, "limits", "n_features"), limits.get("n_features", count), count),
    ):
        if found_value != computed:
            raise fault(
                document,
                place,
                f"{place[-1]} is {found_value}, and the listed features give {computed}",
                f"Leave {place[-1]} out where features are listed",
            )
    return digest, _full({**limits, "n_features": count})


def _full(given: dict[str, Any]) -> dict[str, int]:
    limits = TreeLimits(**given)
    return {
        "n_features": limits.n_features,
        "max_internal": limits.max_internal,
        "max_depth": limits.max_depth,
    }


def _columns_of(path: Path, label: str, drop: list[str]) -> FeatureSchema:
    from executor.data import load  # noqa: PLC0415 - reads Parquet, so slow to import

    return load(path, label, drop).schema
