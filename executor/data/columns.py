"""Which column of a file is the label and which are features."""

import unicodedata
from collections.abc import Sequence
from pathlib import Path

from executor.errors import DatasetError
from protocol.agreement.schema import MAX_COLUMN_NAME
from protocol.trees.limits import FORMAT_MAX_FEATURES as MAX_FEATURES

PANDAS_INDEX = "__index_level_"
_SHOWN = 40


class Columns:
    """The names of a file's columns, each once, and the part each plays; without a label all are features."""

    def __init__(self, path: Path, names: Sequence[str], label: str | None, drop: Sequence[str] = ()) -> None:
        self.path = path
        self.names = [plain(name) for name in names]
        self.label = None if label is None else plain(label)
        dropped = {plain(name) for name in drop}
        self._check_names()
        self._check_asked(dropped)
        self.label_position = None if self.label is None else self.names.index(self.label)
        self.feature_positions = [
            position
            for position, name in enumerate(self.names)
            if position != self.label_position and name not in dropped
        ]
        self.features = tuple(self.names[position] for position in self.feature_positions)
        self._check_features()
        labels = [] if self.label_position is None else [self.label_position]
        self.used = sorted([*labels, *self.feature_positions])

    def where(self, row: str, position: int) -> str:
        """Say where a cell is, for a refusal; what it holds is private and not said."""
        return f"{self.path}, {row}, column {self.names[position]!r}"

    def _check_names(self) -> None:
        seen: dict[str, int] = {}
        for number, name in enumerate(self.names, 1):
            if name in seen:
                raise DatasetError(
                    "DATA_HEADER",
                    f"{self._place}: columns {seen[name]} and {number} have one name",
                    case="twice",
                )
            seen[name] = number

    def _check_asked(self, dropped: set[str]) -> None:
        for name in (*([] if self.label is None else [self.label]), *sorted(dropped)):
            if name not in self.names:
                raise DatasetError("DATA_COLUMN", missing(self.path, name, len(self.names)))

    def _check_features(self) -> None:
        if not 1 <= len(self.features) <= MAX_FEATURES:
            raise DatasetError(
                "DATA_COLUMN",
                f"{self._place}: {len(self.features)} feature columns; 1 to {MAX_FEATURES} are possible",
                case="count",
            )
        for position in self.feature_positions:
            name = self.names[position]
            if not 1 <= len(name) <= MAX_COLUMN_NAME or not name.isprintable():
                raise DatasetError(
                    "DATA_HEADER",
                    f"{self._place}: the name of column {position + 1} is empty, long or unprintable",
                    case="name",
                    most=MAX_COLUMN_NAME,
                )
            if name.startswith(PANDAS_INDEX):
                raise DatasetError(
                    "DATA_COLUMN",
                    f"{self._place}: {name!r} is an index that pandas wrote",
                    case="index",
                    name=name,
                )

    @property
    def _place(self) -> str:
        return f"{self.path}, column names"


def missing(path: Path, name: str, count: int) -> str:
    """Say that a file lacks a column; those it has are not listed: without a header they are a row."""
    return f"{path}, column names: there is no column {name[:_SHOWN]!r} among the {count} on its first line"


def plain(name: str) -> str:
    """Return a column's name in its one form: no white space around it, Unicode form NFC."""
    return unicodedata.normalize("NFC", name.strip())
