"""What a consortium agrees on before anything runs: a process (docs/formats/process-v1.md).

Parsed once at the door; inside, nobody checks again. The canonical bytes have every default written out, so
equal agreements have equal digests.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from protocol import canonical
from protocol.agreement.step import AGREED, MAX_ITERATIONS, Step, StepKind, StepParameters, read_kind
from protocol.agreement.topology import Schedule, Topology
from protocol.digest import Digest
from protocol.errors import EncodingError, ProcessError
from protocol.fields import AgreementFields, Fields
from protocol.identifiers import parse_node, parse_organisation

VERSION = 1
MAX_ORGANISATIONS = 256
MAX_NODES = 1_000
MAX_STEPS = 32
MAX_CHANGES = 1_000
DEFAULT_TASK_SECONDS = 3_600
MAX_TASK_SECONDS = 30 * 86_400


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


@dataclass(frozen=True, slots=True)
class Specification:
    """Who learns what from whom: organisations, nodes, topology by iteration, and steps."""

    process: str
    description: str
    organisations: tuple[str, ...]
    nodes: Mapping[str, str]
    topology: Schedule
    steps: tuple[Step, ...]
    initial_model: InitialModel | None
    task_seconds: int

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """Accept a record that describes a process which can run, or raise."""
        needed = {"version", "process", "organisations", "nodes", "topology", "steps"}
        optional = {"description", "topology_changes", "initial_model", "task_seconds"}
        found = AgreementFields(record, "the specification", needed, optional)
        found.version(VERSION)
        initial = found.get("initial_model", None)
        specification = cls(
            found.process(),
            found.text("description", default=""),
            _organisations(found.items("organisations", MAX_ORGANISATIONS)),
            _nodes(found["nodes"]),
            _schedule(found),
            tuple(map(Step.from_dict, found.items("steps", MAX_STEPS))),
            None if initial is None else InitialModel.from_dict(initial),
            found.whole("task_seconds", 1, MAX_TASK_SECONDS, DEFAULT_TASK_SECONDS),
        )
        specification.check()
        return specification

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Accept the canonical bytes of a specification."""
        return cls.from_dict(canonical.decode(raw))

    def check(self) -> None:
        """Return if the parts fit together."""
        if not self.organisations:
            raise ProcessError("PROCESS_CONSORTIUM", "the consortium is empty")
        for node, organisation in self.nodes.items():
            if organisation not in self.organisations:
                raise ProcessError("PROCESS_NODES", f"{organisation} of {node} is not in the consortium")
        _check_steps(self.steps, self.iterations)
        for step in self.steps:
            step.check_nodes(self.nodes)
        self.topology.first.check_nodes(self.nodes)
        for start, topology in self.topology.changes:
            topology.check_nodes(self.nodes)
            if start >= self.iterations:
                raise ProcessError(
                    "TOPOLOGY_CHANGE", f"iteration {start} is beyond the last, {self.iterations - 1}"
                )

    @property
    def iterations(self) -> int:
        """How many iterations the steps have together."""
        return sum(step.iterations for step in self.steps)

    def step_at(self, iteration: int) -> tuple[Step, int]:
        """Return the step that an iteration belongs to, and the step's first iteration."""
        first = 0
        for step in self.steps:
            if iteration < first + step.iterations:
                return step, first
            first += step.iterations
        raise ProcessError("PROCESS_STEPS", f"iteration {iteration} is beyond the last, {first - 1}")

    def parameters(self, node: str, iteration: int) -> TaskParameters:
        """Return what a node's task in an iteration depends on."""
        step, first = self.step_at(iteration)
        agreed = step.parameters_of(node)
        return TaskParameters(
            agreed, step.name, step.kind, first, step.iterations, step.synchronous, self.initial_model
        )

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record with every default written out and every list in its one order."""
        return {
            "version": VERSION,
            "process": self.process,
            "description": self.description,
            "organisations": list(self.organisations),
            "nodes": dict(self.nodes),
            "topology": self.topology.first.to_dict(),
            "topology_changes": [
                {"iteration": start, "topology": topology.to_dict()}
                for start, topology in self.topology.changes
            ],
            "steps": [step.to_dict() for step in self.steps],
            "initial_model": None if self.initial_model is None else self.initial_model.to_dict(),
            "task_seconds": self.task_seconds,
        }

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        try:
            return canonical.encode(self.to_dict())
        except EncodingError as error:
            raise ProcessError("PROCESS_VALUE", f"the specification: {error.cause}") from error

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the canonical bytes: what each organisation accepts."""
        return Digest.of(self.to_bytes())


def _organisations(names: list[Any]) -> tuple[str, ...]:
    ordered = tuple(sorted(map(parse_organisation, names)))
    for name in ordered:
        if ordered.count(name) > 1:
            raise ProcessError("PROCESS_CONSORTIUM", f"{name} is named twice")
    return ordered


def _nodes(record: object) -> dict[str, str]:
    if not isinstance(record, dict) or not 1 <= len(record) <= MAX_NODES:
        raise ProcessError("PROCESS_NODES", f"nodes is not an object of 1 to {MAX_NODES} nodes")
    return {parse_node(node): parse_organisation(record[node]) for node in sorted(record, key=str)}


def _schedule(found: AgreementFields) -> Schedule:
    changes = []
    for item in found.items("topology_changes", MAX_CHANGES, []):
        change = AgreementFields(item, "a topology change", ("iteration", "topology"))
        iteration = change.whole("iteration", 1, MAX_ITERATIONS)
        changes.append((iteration, Topology.from_dict(change["topology"])))
    return Schedule(Topology.from_dict(found["topology"]), tuple(changes))


def _check_steps(steps: tuple[Step, ...], iterations: int) -> None:
    if not steps:
        raise ProcessError("PROCESS_STEPS", "there is no step")
    names = [step.name for step in steps]
    for name in names:
        if names.count(name) > 1:
            raise ProcessError("PROCESS_STEPS", f"two steps are called {name}")
    if iterations > MAX_ITERATIONS:
        raise ProcessError("PROCESS_VALUE", f"{iterations} iterations are more than {MAX_ITERATIONS}")
