"""A node's rows as a task uses them, with what the task commits to."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from executor.data import csv, parquet
from executor.data.columns import plain
from executor.data.source import file_digest, read_file
from executor.errors import DatasetError
from protocol.agreement.schema import FeatureSchema
from protocol.digest import Digest
from protocol.task.commitment import data_commitment
from protocol.task.table import Table
from protocol.values import dataclass

PARQUET_SUFFIXES = {".parquet", ".pq"}


@dataclass(frozen=True)
class Dataset:
    """The rows of a file, their columns' names, and the digest of the very bytes they were read from."""

    table: Table
    schema: FeatureSchema
    file: Digest
    path: Path

    def commitment(self, salt: bytes) -> Digest:
        """Return what goes on the ledger: it fits this file and no other, and tells nothing about it."""
        return data_commitment(salt, self.file, self.table.digest, self.schema.digest)

    def unchanged(self) -> None:
        """Return if the file still has the bytes that were committed to."""
        try:
            found = file_digest(self.path)
        except DatasetError as error:
            raise _changed(error.cause) from error
        if found != self.file:
            raise _changed(f"{self.path}: the file has changed since it was read")


def load(path: Path, label: str, drop: Sequence[str] = ()) -> Dataset:
    """Read a node's labelled rows from CSV or Parquet.

    A node may have one row, no anomaly, or a column without a value: the federation has other nodes.
    """
    return parsed(path, read_file(path), label, drop)


def parsed(path: Path, raw: bytes, label: str, drop: Sequence[str] = ()) -> Dataset:
    """Return the labelled rows of a file's bytes; the path is for its name and for what is refused."""
    values, labels, features = _parse(path, raw, label, drop)
    if labels is None:
        raise AssertionError("a label was asked for")
    schema = FeatureSchema(features, plain(label))
    return Dataset(Table(values, labels), schema, Digest.of(raw), path)


def load_features(path: Path, drop: Sequence[str] = ()) -> tuple[NDArray[np.float32], tuple[str, ...]]:
    """Read rows without a label, to score them: the values and the names of their columns."""
    values, _, features = _parse(path, read_file(path), None, drop)
    return values, features


Parsed = tuple[NDArray[np.float32], NDArray[np.int8] | None, tuple[str, ...]]


def _parse(path: Path, raw: bytes, label: str | None, drop: Sequence[str]) -> Parsed:
    if parquet.is_parquet(raw):
        return parquet.parse(path, raw, label, drop)
    if path.suffix.lower() in PARQUET_SUFFIXES:
        raise DatasetError(
            "DATA_FORMAT",
            f"{path}: the file does not begin and end as Parquet does",
            case="cut",
        )
    values, labels, features = csv.parse(path, raw, label, drop)
    return values.astype(np.float32), labels, features


def _changed(cause: str) -> DatasetError:
    return DatasetError("DATA_CHANGED", cause)
