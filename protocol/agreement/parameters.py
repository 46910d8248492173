"""What a task depends on besides image and data: parameters, its place in the process, an initial model."""

from typing import Self

from protocol import canonical
from protocol.agreement.step import AGREED, MAX_ITERATIONS, StepParameters
from protocol.agreement.step_kind import StepKind, read_kind
from protocol.defence import Membership
from protocol.digest import Digest
from protocol.errors import ProcessError
from protocol.fields import AgreementFields, Fields
from protocol.identifiers import parse_node, parse_organisation
from protocol.values import dataclass

MAX_NODES = 1_000


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
    members: Membership | None = None
    """Who belongs to which organisation, on which the defence counts; none in a process of version 1."""

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """Accept the record that a task commits to."""
        found = Fields(record, "the parameters", (*AGREED, *_PLACE), ("members",))
        initial = found["initial_model"]
        return cls(
            StepParameters.from_dict({name: found[name] for name in AGREED}),
            found.text("step"),
            read_kind(found["kind"]),
            found.count("first_iteration"),
            found.whole("iterations", 1, MAX_ITERATIONS),
            found.flag("synchronous"),
            None if initial is None else InitialModel.from_dict(initial),
            read_members(found["members"]) if "members" in found else None,
        )

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        record: dict[str, canonical.Record] = {
            **self.agreed.to_dict(),
            "step": self.step,
            "kind": self.kind.value,
            "first_iteration": self.first_iteration,
            "iterations": self.iterations,
            "synchronous": self.synchronous,
            "initial_model": None if self.initial_model is None else self.initial_model.to_dict(),
        }
        if self.members is not None:
            record["members"] = dict(self.members.nodes)
        return record

    @property
    def needs_estimators(self) -> bool:
        """Whether the task can do nothing on a node without estimators: it makes none and uses them."""
        return self.kind is StepKind.EVALUATE or (self.kind.learns and self.agreed.n_new == 0)

    @property
    def digest(self) -> Digest:
        """The parameter hash."""
        return canonical.digest(self.to_dict())


def read_members(record: object) -> Membership:
    """Accept nodes with their organisations, or raise."""
    if not isinstance(record, dict) or not 1 <= len(record) <= MAX_NODES:
        raise ProcessError("PROCESS_NODES", f"nodes is not an object of 1 to {MAX_NODES} nodes")
    return Membership.of(
        {parse_node(node): parse_organisation(record[node]) for node in sorted(record, key=str)}
    )


_PLACE = ("step", "kind", "first_iteration", "iterations", "synchronous", "initial_model")
