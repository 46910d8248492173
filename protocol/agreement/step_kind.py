"""The kinds of steps: which of them learn, and what those state that do not (docs/formats/process-v2.md).

A step that does not learn creates no estimators and leaves each node's ensemble as it is. Its tasks come to
a typed output instead (`protocol/task/output.py`), checked against what the step states in its options.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, TypeAlias

from protocol import canonical
from protocol.canonical import Record
from protocol.digest import Digest
from protocol.errors import DataError, ProcessError

Range: TypeAlias = tuple[float, float] | None
"""The least and the greatest value of a column; None where nothing was agreed."""

RANGES, HELD_OUT = "ranges", "held_out"


class StepKind(StrEnum):
    """What the tasks of a step do, and how many of them each node has."""

    SINGLE = "single"
    """One task per node that learns, without neighbours."""
    ITERATIVE = "iterative"
    """FIT, SHARE and GET in each iteration."""
    PREPARE = "prepare"
    """One task per node that holds its rows against the schema and the ranges agreed on."""
    EVALUATE = "evaluate"
    """One task per node that measures its ensemble on rows which no step before has learned from."""

    @property
    def learns(self) -> bool:
        """Whether its tasks create estimators and change the ensemble."""
        return self in (StepKind.SINGLE, StepKind.ITERATIVE)


def read_kind(value: object) -> StepKind:
    """Read the kind of a step."""
    try:
        return StepKind(value)  # type: ignore[arg-type]
    except ValueError:
        raise ProcessError(
            "PROCESS_VALUE", f"kind {str(value)[:40]!r} is none of {', '.join(StepKind)}"
        ) from None


def check_options(kind: StepKind, options: Mapping[str, Any], n_features: int) -> None:
    """Refuse a step that lacks what its kind has to state."""
    if kind is StepKind.PREPARE:
        ranges_of(options, n_features)
    if kind is StepKind.EVALUATE and held_out_of(options) is None:
        raise ProcessError("PROCESS_FIELDS", "the options of an evaluate step lack held_out")


def ranges_of(options: Mapping[str, Any], n_features: int) -> tuple[Range, ...]:
    """Return the ranges that a prepare step states, one for each feature."""
    found = options.get(RANGES)
    if not isinstance(found, list) or len(found) != n_features:
        raise ProcessError(
            "PROCESS_FIELDS", f"the options of a prepare step have ranges for each of {n_features} features"
        )
    return tuple(_range(place, item) for place, item in enumerate(found))


def ranges_digest(options: Mapping[str, Any]) -> Digest:
    """Return the digest of the ranges that a prepare step states."""
    stated: Record = options[RANGES]
    return canonical.digest(stated)


def held_out_of(options: Mapping[str, Any]) -> float | None:
    """Return which part of its rows a node learns nothing from; None where it learns from all."""
    found = options.get(HELD_OUT)
    if found is None:
        return None
    part = _number(HELD_OUT, found)
    if not 0.0 < part < 1.0:
        raise ProcessError("PROCESS_VALUE", f"held_out {found} is not between 0 and 1")
    return part


def _range(place: int, item: object) -> Range:
    if item is None:
        return None
    if not isinstance(item, list) or len(item) != 2:
        raise ProcessError("PROCESS_VALUE", f"range {place} is neither null nor a pair")
    low, high = (_number(f"range {place}", value) for value in item)
    if low > high:
        raise ProcessError("PROCESS_VALUE", f"range {place} begins at {item[0]} and ends at {item[1]}")
    return low, high


def _number(name: str, value: Any) -> float:
    try:
        return canonical.parse_float(value)
    except DataError as error:
        raise ProcessError("PROCESS_VALUE", f"{name}: {error.cause}") from error
