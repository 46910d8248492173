"""Rows to be scored, from CSV or Parquet; a label is not needed, and columns can be found by name."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from executor.data.columns import missing, plain
from executor.data.dataset import load, load_features
from executor.data.parquet import is_parquet
from executor.data.source import read_file
from executor.errors import DatasetError
from protocol.agreement.schema import FeatureSchema
from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.values import dataclass


@dataclass(frozen=True)
class ScoringRows:
    """Feature values in the order of the process's schema, and the columns to be carried into the result."""

    X: NDArray[np.float32]
    kept: tuple[tuple[str, ...], ...]


def find_schema(path: Path, label: str, drop: Sequence[str], wanted: Digest) -> FeatureSchema:
    """Return the schema that a file's columns give, if it is the one of the process."""
    left_out = {plain(label), *map(plain, drop)}
    columns = tuple(name for name in names_of(path) if name not in left_out)
    try:
        schema = FeatureSchema(columns, plain(label))
    except RecordError as error:
        # Its words may quote a name, which is a value of a row where there is no header.
        raise DatasetError("DATA_SCHEMA", f"{path}, column names: no schema of features") from error
    if schema.digest != wanted:
        raise DatasetError(
            "DATA_SCHEMA",
            f"{path}: its {len(columns)} columns with the label {label!r} are not, in this order, those that "
            "the process agreed on",
        )
    return schema


def read(path: Path, schema: FeatureSchema, keep: Sequence[str] = ()) -> ScoringRows:
    """Read the features of every row, in the order of the schema, and the columns to be kept as text."""
    names = names_of(path)
    for name in (*schema.features, *map(plain, keep)):
        if name not in names:
            raise DatasetError("DATA_COLUMN", missing(path, name, len(names)), case="feature")
    wanted = set(schema.features)
    values, found = load_features(path, drop=[name for name in names if name not in wanted])
    order = [found.index(name) for name in schema.features]
    kept = _kept(path, [names.index(plain(name)) for name in keep]) if keep else ()
    return ScoringRows(np.ascontiguousarray(values[:, order]), kept)


def labels_of(path: Path, schema: FeatureSchema) -> NDArray[np.uint8] | None:
    """Return the labels of rows that have them; None where the column is missing or is something else."""
    names = names_of(path)
    if schema.label not in names:
        return None
    others = [name for name in names if name != schema.label and name not in schema.features]
    try:
        return load(path, schema.label, others).table.y
    except DatasetError:
        return None


def names_of(path: Path) -> list[str]:
    """Return the names of a file's columns."""
    raw = read_file(path)
    if is_parquet(raw):
        return [plain(name) for name in _arrow(raw).schema_arrow.names]
    return [plain(name) for name in next(_cells(path, raw), [])]


def _kept(path: Path, places: list[int]) -> tuple[tuple[str, ...], ...]:
    raw = read_file(path)
    if is_parquet(raw):
        table = _arrow(raw).read()
        rows = zip(*(table.column(place).to_pylist() for place in places), strict=True)
        return tuple(tuple("" if cell is None else str(cell) for cell in row) for row in rows)
    lines = _cells(path, raw)
    next(lines)
    return tuple(tuple(line[place] for place in places) for line in lines if line)


def _cells(path: Path, raw: bytes) -> Iterator[list[str]]:
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DatasetError("DATA_FORMAT", f"{path}: not UTF-8", case="text") from error
    first = text[: text.find("\n") + 1] or text
    return csv.reader(io.StringIO(text, newline=""), delimiter=max(",;\t", key=first.count))


def _arrow(raw: bytes) -> Any:
    import pyarrow  # noqa: PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    return pyarrow.parquet.ParquetFile(pyarrow.BufferReader(raw))
