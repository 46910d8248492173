"""Reading labelled Parquet into arrays: types and size are checked before a single value is read."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from executor.data.columns import Columns
from executor.data.source import check_cells, too_large
from executor.errors import DatasetError

if TYPE_CHECKING:
    import pyarrow

MAGIC = b"PAR1"
BATCH_ROWS = 65_536
# Of the footer alone, which is parsed before anything in it can be checked.
MOST_METADATA_BYTES, MOST_METADATA_ITEMS = 64 << 20, 4 << 20
# Decoded size that the footer admits to, per cell: a value is 8 bytes, with room for levels and dictionaries.
MOST_BYTES_PER_CELL = 64


def is_parquet(raw: bytes) -> bool:
    """Tell by the first and the last bytes."""
    return len(raw) >= 12 and raw.startswith(MAGIC) and raw.endswith(MAGIC)


def parse(
    path: Path, raw: bytes, label: str | None, drop: Sequence[str] = ()
) -> tuple[NDArray[np.float32], NDArray[np.int8] | None, tuple[str, ...]]:
    """Return values, labels and the features' names, or refuse with file, row, column and remedy."""
    import pyarrow  # noqa: PLC0415 - slow, and most data is CSV

    try:
        return _parse(path, raw, label, drop)
    except DatasetError:
        raise
    # For damaged files pyarrow raises ValueError, OSError and others besides its own.
    except (pyarrow.ArrowException, OSError, ValueError, TypeError, KeyError, OverflowError) as error:
        raise DatasetError(
            "DATA_FORMAT",
            f"{path}: cannot be read as Parquet: {' '.join(str(error).split())[:200]}",
            case="parquet",
        ) from error


def _parse(
    path: Path, raw: bytes, label: str | None, drop: Sequence[str]
) -> tuple[NDArray[np.float32], NDArray[np.int8] | None, tuple[str, ...]]:
    import pyarrow  # noqa: PLC0415
    import pyarrow.parquet  # noqa: PLC0415

    file = pyarrow.parquet.ParquetFile(
        pyarrow.BufferReader(raw),
        thrift_string_size_limit=MOST_METADATA_BYTES,
        thrift_container_size_limit=MOST_METADATA_ITEMS,
    )
    columns = Columns(path, file.schema_arrow.names, label, drop)
    for position in columns.used:
        _check_type(columns, position, file.schema_arrow.types[position])
    rows = file.metadata.num_rows
    _check_size(columns, file.metadata)
    values = np.empty((rows, len(columns.features)), dtype=np.float32)
    labels = np.empty(rows, dtype=np.int8)
    done = 0
    names = [file.schema_arrow.names[position] for position in columns.used]
    for batch in file.iter_batches(batch_size=BATCH_ROWS, columns=names, use_threads=False):
        if done + len(batch) > rows:
            raise ValueError("there are more rows than the footer says")
        chosen = slice(done, done + len(batch))
        for target, position in enumerate(columns.feature_positions):
            column = batch.column(file.schema_arrow.names[position])
            values[chosen, target] = _features(columns, position, done, column)
        if columns.label_position is not None:
            column = batch.column(file.schema_arrow.names[columns.label_position])
            labels[chosen] = _labels(columns, columns.label_position, done, column)
        done += len(batch)
    if done != rows:
        raise ValueError("there are fewer rows than the footer says")
    return values, None if columns.label is None else labels, columns.features


def _check_type(columns: Columns, position: int, kind: "pyarrow.DataType") -> None:
    from pyarrow import types  # noqa: PLC0415

    inner = kind.value_type if types.is_dictionary(kind) else kind
    numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal, types.is_null)
    if not any(is_kind(inner) for is_kind in numeric):
        raise DatasetError(
            "DATA_VALUE",
            f"{columns.path}, column {columns.names[position]!r}: type {str(kind)[:80]} is not a number",
            case="type",
        )


def _check_size(columns: Columns, metadata: Any) -> None:
    """A file of a few kilobytes can stand for billions of values; its footer says how many."""
    rows = metadata.num_rows
    if rows < 1:
        raise DatasetError("DATA_EMPTY", f"{columns.path}: there are no rows", case="rows")
    check_cells(columns.path, rows * len(columns.used))
    decoded = sum(
        metadata.row_group(group).column(column).total_uncompressed_size
        for group in range(metadata.num_row_groups)
        for column in range(metadata.num_columns)
    )
    if decoded > max(rows * metadata.num_columns * MOST_BYTES_PER_CELL, 1 << 20):
        raise too_large(columns.path, f"{decoded} bytes when unpacked for {rows} rows")


def _numbers(column: Any) -> NDArray[np.float64]:
    """Return a column as float64 with NaN for null."""
    from pyarrow import float64, types  # noqa: PLC0415

    if types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if types.is_null(column.type):
        return np.full(len(column), np.nan)
    if types.is_boolean(column.type):
        column = column.cast("uint8")
    numbers: NDArray[np.float64] = column.cast(float64(), safe=False).to_numpy(zero_copy_only=False)
    return numbers


def _features(columns: Columns, position: int, before: int, column: Any) -> NDArray[np.float32]:
    numbers = _numbers(column)
    with np.errstate(over="ignore"):
        values = numbers.astype(np.float32)
    wrong = np.flatnonzero(np.isinf(values))
    if len(wrong):
        raise DatasetError(
            "DATA_VALUE",
            f"{columns.where(f'row {before + wrong[0] + 1}', position)}: infinite, or beyond float32",
            case="null",
        )
    return values


def _labels(columns: Columns, position: int, before: int, column: Any) -> NDArray[np.int8]:
    numbers = _numbers(column)
    wrong = np.flatnonzero((numbers != 0) & (numbers != 1))
    if len(wrong):
        raise DatasetError(
            "DATA_LABEL",
            f"{columns.where(f'row {before + wrong[0] + 1}', position)}: neither 0 nor 1",
        )
    return numbers.astype(np.int8)
