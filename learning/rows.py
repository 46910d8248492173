"""A node's private rows, checked once: what FIT and prediction then read without asking again."""

from functools import cached_property
from hashlib import sha256
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from learning.errors import RowsError
from protocol.values import dataclass


@dataclass(frozen=True, eq=False)
class Rows:
    """Feature values (float32, NaN where missing) and labels (1 anomalous, 0 normal), both read-only."""

    X: NDArray[np.float32]
    y: NDArray[np.int8]

    @classmethod
    def of(cls, X: Any, y: Any) -> Self:
        """Accept any numeric table with labels 0 and 1, or say which row and column is wrong."""
        values = as_features(X)
        labels = np.asarray(y)
        if labels.shape != (len(values),):
            raise RowsError(f"{len(values)} rows and labels of shape {labels.shape}", "count")
        if len(values) == 0:
            raise RowsError("there are no rows", "empty")
        if labels.dtype.kind not in "biuf":
            raise RowsError(f"labels are {labels.dtype}, not numbers", "label")
        wrong = np.flatnonzero(~np.isin(labels, (0, 1)))
        if len(wrong):
            raise RowsError(f"row {wrong[0]} has label {labels[wrong[0]]}", "label")
        labels = labels.astype(np.int8)
        labels.setflags(write=False)
        return cls(values, labels)

    @property
    def n_features(self) -> int:
        """The number of columns."""
        return int(self.X.shape[1])

    @cached_property
    def digest(self) -> bytes:
        """A key for caches; never published, since it would let others test guesses about the rows."""
        return sha256(b"%d,%d;" % self.X.shape + self.X.tobytes() + self.y.tobytes()).digest()

    def __len__(self) -> int:
        return len(self.y)


def as_features(X: Any) -> NDArray[np.float32]:
    """Return the table as read-only float32, the precision in which scikit-learn's trees compare."""
    try:
        table = np.asarray(X)
        if table.dtype.kind not in "biuf":
            table = table.astype(np.float64)
        if table.ndim != 2:
            raise RowsError(f"rows have shape {table.shape}", "shape")
        with np.errstate(over="ignore"):
            values = np.ascontiguousarray(table, dtype=np.float32)
    except (ValueError, TypeError) as error:
        raise RowsError(f"the rows are not all numbers ({error})", "text") from error
    if np.isinf(values).any():
        row, column = np.argwhere(np.isinf(values))[0]
        raise RowsError(
            f"row {row}, column {column} is infinite or beyond float32",
            "infinite",
        )
    if values is table:
        values = values.view()
    values.setflags(write=False)
    return values
