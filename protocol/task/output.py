"""What a task of a step that does not learn comes to (docs/formats/output-v1.md).

A prepare step gives `schema`: under which schema and ranges a node looked at its rows, and how many columns
keep to them. An evaluate step gives `metrics`: the paper's three, of the whole ensemble and of the node's own
trees in it. Learner, executor, chaincode and auditor check an output by the same code.
"""

from collections.abc import Iterable
from dataclasses import fields
from typing import Any, ClassVar, Self

from protocol import canonical
from protocol.agreement.parameters import TaskParameters
from protocol.agreement.step_kind import StepKind, ranges_digest
from protocol.digest import Digest
from protocol.errors import DataError, RecordError, StateError
from protocol.fields import Fields
from protocol.identifiers import EstimatorId
from protocol.trees.limits import FORMAT_MAX_FEATURES
from protocol.values import dataclass

DECIMALS = 3
"""How exact a published figure is: more would tell how many rows it was counted on."""


class Output:
    """An output of some type; `from_dict` reads any of them."""

    __slots__ = ()
    type: ClassVar[str]

    @staticmethod
    def from_dict(record: Any) -> "Output":
        """Accept an output of a known type with exactly its fields."""
        found = record.get("type") if isinstance(record, dict) else None
        kind = _TYPES.get(found) if isinstance(found, str) else None
        if kind is None:
            raise RecordError("RECORD_VALUE", f"an output is of type {' or '.join(_TYPES)}")
        return kind.read(record)

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        raise NotImplementedError

    def check(self, parameters: TaskParameters, own: bool) -> None:
        """Refuse an output that does not fit the task; `own` says whether the node holds trees of its own."""
        raise NotImplementedError


@dataclass(frozen=True, slots=True)
class SchemaOutput(Output):
    """Under which schema and ranges a node looked at its rows, and how many of the columns keep to them."""

    type: ClassVar[str] = "schema"

    schema: Digest
    ranges: Digest
    """The digest of the ranges that the step states."""
    columns: int
    holding: int
    """How many of them have no value outside the range agreed on."""

    @classmethod
    def read(cls, record: Any) -> Self:
        """Accept a record with exactly the fields of this type."""
        found = Fields(record, "a schema output", ("type", "schema", "ranges", "columns", "holding"))
        columns = found.whole("columns", 1, FORMAT_MAX_FEATURES)
        holding = found.whole("holding", 0, columns)
        return cls(found.digest("schema"), found.digest("ranges"), columns, holding)

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        return {
            "type": self.type,
            "schema": str(self.schema),
            "ranges": str(self.ranges),
            "columns": self.columns,
            "holding": self.holding,
        }

    def check(self, parameters: TaskParameters, own: bool) -> None:  # noqa: ARG002
        """Refuse a look at the rows under something else than was agreed on."""
        agreed = parameters.agreed
        for what, said, expected in (
            ("schema", self.schema, agreed.schema_digest),
            ("ranges", self.ranges, ranges_digest(agreed.options)),
            ("columns", self.columns, agreed.limits.n_features),
        ):
            if said != expected:
                raise StateError("OUTPUT_MISMATCH", f"{what} is {said}, and {expected} was agreed on")


@dataclass(frozen=True, slots=True)
class Figures:
    """The paper's three metrics, each from 0 to 1 with at most three decimals."""

    balanced_accuracy: float
    precision: float
    recall: float

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Accept a record with exactly these figures, each as text in its one spelling."""
        names = [field.name for field in fields(cls)]
        found = Fields(record, "figures", names)
        return cls(*(_figure(name, found[name]) for name in names))

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        return {field.name: canonical.float_text(getattr(self, field.name)) for field in fields(self)}


@dataclass(frozen=True, slots=True)
class MetricsOutput(Output):
    """How well a node's ensemble does on its held-out rows; null where these are not of both classes.

    `own` is of the node's own trees in that ensemble, and null if it holds none.
    """

    type: ClassVar[str] = "metrics"

    federation: Figures | None
    own: Figures | None

    @classmethod
    def read(cls, record: Any) -> Self:
        """Accept a record with exactly the fields of this type."""
        found = Fields(record, "a metrics output", ("type", "federation", "own"))
        federation, own = (
            None if found[name] is None else Figures.from_dict(found[name]) for name in ("federation", "own")
        )
        if federation is None and own is not None:
            raise RecordError("RECORD_VALUE", "metrics: own has figures, and federation has none")
        return cls(federation, own)

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        return {
            "type": self.type,
            "federation": None if self.federation is None else self.federation.to_dict(),
            "own": None if self.own is None else self.own.to_dict(),
        }

    def check(self, parameters: TaskParameters, own: bool) -> None:  # noqa: ARG002
        """Refuse figures of trees that the node does not hold, and none of trees that it does."""
        if self.federation is not None and own != (self.own is not None):
            holds = "trees" if own else "no trees"
            raise StateError("OUTPUT_MISMATCH", f"the node holds {holds} of its own, and own says otherwise")


_TYPES: dict[str, type[SchemaOutput] | type[MetricsOutput]] = {
    kind.type: kind for kind in (SchemaOutput, MetricsOutput)
}
OUTPUTS: dict[StepKind, type[Output]] = {StepKind.PREPARE: SchemaOutput, StepKind.EVALUATE: MetricsOutput}
"""By kind of step that does not learn, what its tasks come to."""


def check_output(
    output: Output | None, parameters: TaskParameters, node: str, ensemble: Iterable[EstimatorId]
) -> None:
    """Refuse an output of another type than the step's kind has, or one that does not fit what was agreed."""
    expected = OUTPUTS.get(parameters.kind)
    if expected is None and output is None:
        return
    if expected is None or type(output) is not expected:
        wanted = "no output" if expected is None else f"an output of type {expected.type}"
        found = "none" if output is None else f"one of type {output.type}"
        raise StateError("RESULT_KIND", f"a step of kind {parameters.kind} comes to {wanted}, not {found}")
    output.check(parameters, any(estimator_id.creator == node for estimator_id in ensemble))


def _figure(name: str, text: Any) -> float:
    try:
        value = canonical.parse_float(text)
    except DataError as error:
        raise RecordError("RECORD_VALUE", f"figures: {name}: {error.cause}") from error
    if not 0.0 <= value <= 1.0 or round(value, DECIMALS) != value:
        raise RecordError(
            "RECORD_VALUE", f"figures: {name} is not a number from 0 to 1 with {DECIMALS} decimals"
        )
    return value
