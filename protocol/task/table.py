"""Rows format v1: a node's private rows and labels as one byte string (docs/formats/table-v1.md).

    u8 version, u32 number of rows, u16 number of features
    float32 values, row by row, then one byte 0 or 1 per row

All numbers little-endian. A missing value is the one NaN 7fc00000, nothing is infinite and zero has no sign,
so equal tables have equal bytes. The bytes never leave the node; a salted commitment to their digest does.
"""

import struct
from typing import Any, NoReturn, Self

import numpy as np
from numpy.typing import NDArray

from protocol.digest import Digest
from protocol.errors import TableError

VERSION = 1
MAX_ROWS = 2**32 - 1
MAX_FEATURES = 65_535

_HEADER = struct.Struct("<BIH")
_SIGN, _INFINITE, _MISSING = np.uint32(0x80000000), np.uint32(0x7F800000), np.uint32(0x7FC00000)


class Table:
    """Feature values (float32, NaN where missing) and labels (1 anomalous, 0 normal), both read-only."""

    __slots__ = ("X", "y")

    X: NDArray[np.float32]
    y: NDArray[np.uint8]

    def __init__(self, X: NDArray[Any], y: NDArray[Any]) -> None:
        """Take float32 values by row and labels 0 and 1; every NaN and every zero gets its one spelling."""
        _check_arrays(X, y)
        values = np.array(X, dtype=np.float32, order="C")
        # Adding zero takes the sign off a negative one and changes no other number.
        values += np.float32(0.0)
        values[np.isnan(values)] = np.nan
        self._set(_checked_values(values), _checked_labels(y))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Accept the one byte string of a table, or raise `TableError`."""
        n_rows, n_features = _check_header(raw)
        count = n_rows * n_features
        # A copy, because the values do not begin on a multiple of four bytes.
        values = np.frombuffer(raw, "<f4", count, _HEADER.size).astype(np.float32)
        labels = np.frombuffer(raw, np.uint8, n_rows, _HEADER.size + 4 * count)
        table = object.__new__(cls)
        table._set(_checked_values(values.reshape(n_rows, n_features)), _checked_labels(labels))
        return table

    def to_bytes(self) -> bytes:
        """Return the one byte string of this table."""
        header = _HEADER.pack(VERSION, self.n_rows, self.n_features)
        return b"".join((header, self.X.astype("<f4").tobytes(), self.y.tobytes()))

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the bytes; only a salted commitment to it may be published."""
        return Digest.of(self.to_bytes())

    @property
    def n_rows(self) -> int:
        """The number of rows."""
        return int(self.X.shape[0])

    @property
    def n_features(self) -> int:
        """The number of columns, the label not counted."""
        return int(self.X.shape[1])

    def _set(self, X: NDArray[np.float32], y: NDArray[np.uint8]) -> None:
        for name, array in (("X", X), ("y", y)):
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"a table is immutable: {name}")

    def __eq__(self, other: object) -> bool:
        return self.to_bytes() == other.to_bytes() if isinstance(other, Table) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    def __repr__(self) -> str:
        return f"Table(n_rows={self.n_rows}, n_features={self.n_features})"


def _check_header(raw: bytes) -> tuple[int, int]:
    if type(raw) is not bytes:
        raise TableError("TABLE_INPUT", f"a table is read from bytes, not {type(raw).__name__}")
    if len(raw) < _HEADER.size:
        raise TableError("TABLE_LENGTH", f"{len(raw)} bytes are too few for a table")
    version, n_rows, n_features = _HEADER.unpack_from(raw)
    if version != VERSION:
        raise TableError("TABLE_VERSION", f"first byte {version} is not rows format {VERSION}")
    _check_shape(n_rows, n_features)
    expected = _HEADER.size + n_rows * (4 * n_features + 1)
    if len(raw) != expected:
        raise TableError(
            "TABLE_LENGTH",
            f"{n_rows} rows of {n_features} features have {expected} bytes, not {len(raw)}",
        )
    return n_rows, n_features


def _check_arrays(X: Any, y: Any) -> None:
    if not isinstance(X, np.ndarray) or X.ndim != 2 or X.dtype != np.float32:
        raise TableError("TABLE_INPUT", "the values are not a two-dimensional array of float32")
    if not isinstance(y, np.ndarray) or y.ndim != 1 or y.dtype.kind not in "biu":
        raise TableError("TABLE_INPUT", "the labels are not a one-dimensional array of whole numbers")
    if len(X) != len(y):
        raise TableError("TABLE_SHAPE", f"{len(X)} rows have {len(y)} labels")
    _check_shape(*X.shape)


def _check_shape(n_rows: int, n_features: int) -> None:
    if not 1 <= n_rows <= MAX_ROWS or not 1 <= n_features <= MAX_FEATURES:
        raise TableError("TABLE_SHAPE", f"{n_rows} rows of {n_features} features are no table")


def _checked_values(values: NDArray[np.float32]) -> NDArray[np.float32]:
    bits = values.view(np.uint32)
    size = bits & ~_SIGN
    other = ((size >= _INFINITE) & (bits != _MISSING)) | (bits == _SIGN)
    if other.any():
        # Where, not what: a value must not reach a log by way of a refusal.
        row, column = np.argwhere(other)[0]
        raise TableError(
            "TABLE_VALUE",
            f"row {row}, column {column} is infinite, or a second spelling of NaN or zero",
        )
    return values


def _checked_labels(labels: NDArray[Any]) -> NDArray[np.uint8]:
    other = np.flatnonzero((labels != 0) & (labels != 1))
    if len(other):
        raise TableError("TABLE_LABEL", f"row {other[0]} is labelled neither 0 nor 1")
    return labels.astype(np.uint8)
