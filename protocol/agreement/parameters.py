"""What a task depends on besides image and data: parameters, its place in the process, an initial model."""

from dataclasses import dataclass
from typing import Self

from protocol import canonical
from protocol.agreement.step import AGREED, MAX_ITERATIONS, StepKind, StepParameters, read_kind
from protocol.digest import Digest
from protocol.fields import AgreementFields, Fields


@dataclass(frozen=True, slots=True)
class InitialModel:
    """The published model a process starts from, fixed by its digest."""

    process: str
    node: str
    digest: Digest

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """Accept a record of an initial model, or raise."""
        found = AgreementFields(record, "initial_model", ("process", "node", "digest"))
        return cls(found.process(), found.node(), found.digest("digest"))

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        return {"process": self.process, "node": self.node, "digest": str(self.digest)}


@dataclass(frozen=True, slots=True)
class TaskParameters:
    """All that a node's task in an iteration depends on besides image and data.

    The SHA-256 of its canonical bytes is the parameter hash that the task commits to and signs.
    """

    agreed: StepParameters
    step: str
    kind: StepKind
    first_iteration: int
    """The first iteration of the step, as `iterations` is how many the step has."""
    iterations: int
    synchronous: bool
    initial_model: InitialModel | None

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """Accept the record that a task commits to."""
        found = Fields(record, "the parameters", (*AGREED, *_PLACE))
        initial = found["initial_model"]
        return cls(
            StepParameters.from_dict({name: found[name] for name in AGREED}),
            found.text("step"),
            read_kind(found["kind"]),
            found.count("first_iteration"),
            found.whole("iterations", 1, MAX_ITERATIONS),
            found.flag("synchronous"),
            None if initial is None else InitialModel.from_dict(initial),
        )

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        return {
            **self.agreed.to_dict(),
            "step": self.step,
            "kind": self.kind.value,
            "first_iteration": self.first_iteration,
            "iterations": self.iterations,
            "synchronous": self.synchronous,
            "initial_model": None if self.initial_model is None else self.initial_model.to_dict(),
        }

    @property
    def digest(self) -> Digest:
        """The parameter hash."""
        return canonical.digest(self.to_dict())


_PLACE = ("step", "kind", "first_iteration", "iterations", "synchronous", "initial_model")
