"""Reading a labelled CSV file into arrays: accepted whole, or refused with file, line and remedy."""

import array
import contextlib
import csv
import re
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
import numpy.typing as npt

from executor.experiment.errors import DatasetError
from protocol.limits import FORMAT_MAX_FEATURES as MAX_FEATURES

MISSING = frozenset({"", "na", "n/a", "nan", "null"})
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
COMPRESSED = {b"PK\x03\x04": "zip", b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}

Floats = npt.NDArray[np.float64]
Labels = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Table:
    """Feature rows with NaN where a value is missing, and one label per row: 1 anomalous, 0 normal."""

    X: Floats
    y: Labels
    features: tuple[str, ...]
    source: str


def read_csv(path: Path, label: str, drop: Sequence[str] = ()) -> Table:
    """Read a CSV file with a header; columns are separated by comma, or by `;` or tab if the header is."""
    with _open(path) as file:
        delimiter, header = _header(path, file)
        columns = _Columns(path, header, label, tuple(drop))
        body = file.tell()
        values = _read_fast(file, delimiter, columns)
        if values is None:
            file.seek(body)
            values = _read_checked(file, delimiter, columns)
    table = Table(
        X=np.ascontiguousarray(values[:, columns.feature_positions]),
        y=values[:, columns.label_position].astype(np.int8),
        features=columns.features,
        source=str(path),
    )
    _check_content(table, path)
    return table


class _Columns:
    """Which column of the file is the label and which are features."""

    def __init__(self, path: Path, header: list[str], label: str, drop: tuple[str, ...]) -> None:
        self.path = path
        self.header = header
        seen: set[str] = set()
        for name in header:
            if name in seen:
                raise DatasetError(
                    "DATA_HEADER", f"{path}, line 1: column {name!r} appears twice", "Rename one"
                )
            seen.add(name)
        if all(_number(name) is not None for name in header):
            raise DatasetError(
                "DATA_HEADER", f"{path}, line 1: holds numbers, not column names", "Add a line with the names"
            )
        for name in (label, *drop):
            if name not in seen:
                raise DatasetError(
                    "DATA_COLUMN",
                    f"{path}, line 1: there is no column {name!r} among {', '.join(header[:40])}",
                    "Name the label with --label and columns to leave out with --drop",
                )
        self.label_position = header.index(label)
        self.feature_positions = [i for i, name in enumerate(header) if name != label and name not in drop]
        self.features = tuple(header[i] for i in self.feature_positions)
        self.used = sorted([self.label_position, *self.feature_positions])
        if not 1 <= len(self.features) <= MAX_FEATURES:
            raise DatasetError(
                "DATA_COLUMN",
                f"{path}, line 1: {len(self.features)} feature columns; 1 to {MAX_FEATURES} are possible",
                "Leave columns out with --drop, or add some",
            )


@contextlib.contextmanager
def _open(path: Path) -> Iterator[TextIO]:
    try:
        with path.open("rb") as raw:
            start = raw.read(4)
    except OSError as error:
        raise DatasetError(
            "DATA_FILE", f"{path}: {error.strerror}", "Check the path and its permissions"
        ) from error
    if not start:
        raise DatasetError("DATA_EMPTY", f"{path}: the file is empty", "Give a CSV file with a header line")
    for magic, kind in COMPRESSED.items():
        if start.startswith(magic):
            raise DatasetError("DATA_FORMAT", f"{path}: this is a {kind} archive", "Unpack it first")
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError as error:
        raise DatasetError(
            "DATA_FORMAT", f"{path}: byte {error.start} of a block is not UTF-8", "Save it as CSV in UTF-8"
        ) from error
    except csv.Error as error:
        raise DatasetError("DATA_FORMAT", f"{path}: {error}", "Save it as plain CSV in UTF-8") from error


def _header(path: Path, file: TextIO) -> tuple[str, list[str]]:
    line = file.readline()
    if not line.strip():
        raise DatasetError("DATA_HEADER", f"{path}, line 1: empty", "Put the column names on the first line")
    delimiter = max(",;\t", key=line.count)  # the first of the best, so a single column reads as comma
    header = [name.strip() for name in next(csv.reader([line], delimiter=delimiter))]
    return delimiter, header


def _read_fast(file: TextIO, delimiter: str, columns: _Columns) -> Floats | None:
    """numpy's reader for files without a fault; None sends the file to the checked reader."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an empty body: the checked reader says so
            values = np.loadtxt(file, delimiter=delimiter, quotechar='"', comments=None, ndmin=2)
    except ValueError:
        return None
    if len(values) == 0 or values.shape[1] != len(columns.header):
        return None
    labels = values[:, columns.label_position]
    clean = not np.isinf(values[:, columns.used]).any() and bool(((labels == 0) | (labels == 1)).all())
    return np.asarray(values, dtype=np.float64) if clean else None


def _read_checked(file: TextIO, delimiter: str, columns: _Columns) -> Floats:
    """Row by row: fills missing values with NaN and names the line of the first bad cell."""
    values = array.array("d")
    reader = csv.reader(file, delimiter=delimiter)
    used = set(columns.used)
    for cells in reader:
        line = reader.line_num + 1
        if not cells:
            continue
        if len(cells) != len(columns.header):
            raise DatasetError(
                "DATA_ROW",
                f"{columns.path}, line {line}: {len(cells)} cells under {len(columns.header)} columns",
                f"Give every row one cell per column, separated by {delimiter!r}",
            )
        values.extend(_cell(columns, line, i, cells[i]) if i in used else 0.0 for i in range(len(cells)))
    if not values:
        raise DatasetError("DATA_EMPTY", f"{columns.path}: a header and no rows", "Add the rows")
    return np.frombuffer(values, dtype=np.float64).reshape(-1, len(columns.header))


def _cell(columns: _Columns, line: int, position: int, text: str) -> float:
    text = text.strip()
    where = f"{columns.path}, line {line}, column {columns.header[position]!r}"
    if position == columns.label_position:
        value = _number(text)
        if value not in {0.0, 1.0}:
            raise DatasetError(
                "DATA_LABEL", f"{where}: label {text!r}", "Labels are 0 (normal) and 1 (anomalous)"
            )
        return value
    if text.lower() in MISSING:
        return float("nan")
    value = _number(text)
    if value is None:
        raise DatasetError(
            "DATA_VALUE",
            f"{where}: {text!r} is not a number",
            "Use a decimal point, encode categories as numbers, or leave the column out with --drop",
        )
    if abs(value) == float("inf"):
        raise DatasetError(
            "DATA_VALUE", f"{where}: {text!r} is infinite", "Leave the cell empty if it is missing"
        )
    return value


def _number(text: str) -> float | None:
    if NUMBER.fullmatch(text):
        return float(text)
    if text.lower().lstrip("+-") in {"inf", "infinity"}:
        return float("inf")
    return None


def _check_content(table: Table, path: Path) -> None:
    if len(table.y) < 2:
        raise DatasetError("DATA_TOO_SMALL", f"{path}: one row", "Training and testing need more")
    anomalous = int(table.y.sum())
    if anomalous in {0, len(table.y)}:
        kind = "anomalous" if anomalous == 0 else "normal"
        raise DatasetError(
            "DATA_ONE_CLASS",
            f"{path}: no {kind} row among {len(table.y)}",
            "A federation may hold nodes without anomalies, but the whole needs both classes",
        )
    absent = np.isnan(table.X).all(axis=0)
    if absent.any():
        name = table.features[int(np.argmax(absent))]
        raise DatasetError("DATA_VALUE", f"{path}: column {name!r} has no value at all", f"Use --drop {name}")
