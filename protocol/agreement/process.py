"""What a consortium agrees on before anything runs: a process (docs/formats/process-v2.md).

Parsed once at the door; inside, nobody checks again. The canonical bytes have every default written out (but
those of `estimator_kind`, `change_quota`, `image_attestations`, `model_access`, `model_licence` and
`coordinator`, which came later and are left out), so that equal agreements have equal digests. Version 1 is
read as it was written, with the defaults of version 2 for what it could not say.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any, Self

from protocol import canonical
from protocol.agreement import collections
from protocol.agreement.image import ImagePin
from protocol.agreement.parameters import InitialModel, TaskParameters, read_members
from protocol.agreement.sequence import check_sequence
from protocol.agreement.step import MAX_ITERATIONS, VERSION, Step, StepParameters
from protocol.agreement.topology import Schedule, Topology
from protocol.defence import Membership
from protocol.digest import Digest
from protocol.errors import EncodingError, ProcessError
from protocol.fields import AgreementFields
from protocol.identifiers import parse_organisation
from protocol.text import check_printable
from protocol.trees.limits import FIRST_FORMAT, KIND_NAMES, LATEST_FORMAT, TREE
from protocol.values import dataclass

MAX_ORGANISATIONS = 256
MAX_STEPS = 32
MAX_SPECIFICATION_BYTES = 640 << 10
"""What a specification may have; its process, with all that comes to it later, has half as much again."""
MAX_CHANGES = 1_000
DEFAULT_TASK_SECONDS = 3_600
MAX_TASK_SECONDS = 30 * 86_400
DEFAULT_SILENCE_SECONDS = 86_400
MAX_SILENCE_SECONDS = 366 * 86_400
MAX_CONFIDENTIAL_BLOCKS = 1 << 31


class AbortRule(StrEnum):
    """Who may give a running process up."""

    MAJORITY = "majority"
    """More than half of the organisations that take part."""
    ANY = "any"
    """Each organisation that takes part, by itself."""


class ModelAccess(StrEnum):
    """Who decides on access to a model of the completed process."""

    OWNER = "owner"
    """The organisation whose model it is."""
    MAJORITY = "majority"
    """More than half of the organisations that take part."""
    ALL = "all"
    """Each organisation that takes part."""


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
    silence_seconds: int = DEFAULT_SILENCE_SECONDS
    """How long a node may be silent before a majority may leave it out."""
    abort: AbortRule = AbortRule.MAJORITY
    confidential: bool = False
    """Whether the trees are for the peers of these organisations alone."""
    confidential_blocks: int = 0
    """For how many blocks those peers keep a tree; 0 is for good."""
    version: int = VERSION
    estimator_format: int = LATEST_FORMAT
    """In which format the nodes write their trees."""
    estimator_kind: str = TREE
    """Of which kind the estimators are."""
    change_quota: int = MAX_CHANGES
    """How many changes of the running process each organisation may ask for."""
    image_attestations: int = 0
    """How many organisations have to get each image from its source before it runs."""
    model_access: ModelAccess = ModelAccess.OWNER
    model_licence: Digest | None = None
    """SHA-256 of the text that whoever asks for a model accepts."""
    coordinator: str | None = None
    """The organisation that opens each step; None where the nodes go from step to step by themselves."""

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """Accept a record that describes a process which can run, or raise."""
        version = _version(record)
        found = AgreementFields(record, "the specification", _NEEDED, _OPTIONAL[version])
        initial = found.get("initial_model", None)
        specification = cls(
            found.process(),
            _description(found, version),
            _organisations(found.items("organisations", MAX_ORGANISATIONS)),
            read_members(found["nodes"]).organisations,
            _schedule(found),
            tuple(Step.from_dict(step, version) for step in found.items("steps", MAX_STEPS)),
            None if initial is None else InitialModel.from_dict(initial),
            found.whole("task_seconds", 1, MAX_TASK_SECONDS, DEFAULT_TASK_SECONDS),
            found.whole("silence_seconds", 1, MAX_SILENCE_SECONDS, DEFAULT_SILENCE_SECONDS),
            _abort(found.get("abort", AbortRule.MAJORITY.value)),
            found.flag("confidential", default=False),
            found.whole("confidential_blocks", 0, MAX_CONFIDENTIAL_BLOCKS, 0),
            version,
            found.whole("estimator_format", FIRST_FORMAT, LATEST_FORMAT, _FORMATS[version]),
            _estimator_kind(found.get("estimator_kind", TREE)),
            found.whole("change_quota", 1, MAX_CHANGES, MAX_CHANGES),
            found.whole("image_attestations", 0, MAX_ORGANISATIONS, 0),
            _model_access(found.get("model_access", ModelAccess.OWNER.value)),
            found.optional_digest("model_licence") if "model_licence" in found else None,
            found.organisation("coordinator") if "coordinator" in found else None,
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
        if self.coordinator is not None and self.coordinator not in self.organisations:
            raise ProcessError("PROCESS_CONSORTIUM", f"{self.coordinator} coordinates and is not in it")
        if self.image_attestations > len(self.organisations):
            raise ProcessError("PROCESS_VALUE", "image_attestations is more than there are organisations")
        if self.confidential_blocks and not self.confidential:
            raise ProcessError("PROCESS_VALUE", "confidential_blocks is for a confidential process")
        _check_steps(self.steps, self.iterations)
        check_sequence(self.steps, self.nodes, starts_empty=self.initial_model is None)
        for step in self.steps:
            step.check_nodes(self.nodes)
            if step.parameters.limits.format != FIRST_FORMAT:
                raise ProcessError("PROCESS_FIELDS", "limits has a format, which estimator_format is for")
            if step.parameters.limits.kind != TREE:
                raise ProcessError("PROCESS_FIELDS", "limits has a kind, which estimator_kind is for")
        if self.estimator_kind != TREE and self.estimator_format != LATEST_FORMAT:
            raise ProcessError("PROCESS_VALUE", "estimator_format is for single trees")
        self.topology.first.check_nodes(self.nodes)
        for start, topology in self.topology.changes:
            topology.check_nodes(self.nodes)
            if start >= self.iterations:
                raise ProcessError(
                    "TOPOLOGY_CHANGE", f"iteration {start} is beyond the last, {self.iterations - 1}"
                )

    @property
    def collection(self) -> str | None:
        """The collection of private data that holds the trees; None where every peer holds them."""
        return collections.trees(self.organisations, self.confidential_blocks) if self.confidential else None

    @property
    def is_pinned(self) -> bool:
        """Whether every step says which bytes its image version stands for."""
        return all(step.pin is not None for step in self.steps)

    def pinned(self, pin_of: Callable[[str, str], ImagePin]) -> "Specification":
        """Return the specification with the digests of each image by name and version, where it has none."""
        steps = (
            step if step.pin else replace(step, pin=pin_of(step.image_name, step.image_version))
            for step in self.steps
        )
        return replace(self, steps=tuple(steps))

    @property
    def iterations(self) -> int:
        """How many iterations the steps have together."""
        return sum(step.iterations for step in self.steps)

    def places(self) -> Iterator[tuple[Step, int]]:
        """Iterate over the steps, each with its first iteration."""
        first = 0
        for step in self.steps:
            yield step, first
            first += step.iterations

    def step_at(self, iteration: int) -> tuple[Step, int]:
        """Return the step that an iteration belongs to, and the step's first iteration."""
        for step, first in self.places():
            if iteration < first + step.iterations:
                return step, first
        last = self.iterations - 1
        raise ProcessError("PROCESS_STEPS", f"iteration {iteration} is beyond the last, {last}")

    def parameters(
        self, node: str, iteration: int, members: Mapping[str, str] | None = None
    ) -> TaskParameters:
        """Return what a node's task in an iteration depends on; the members are the nodes if none joined."""
        step, first = self.step_at(iteration)
        agreed = self._agreed(step, node)
        counted = Membership.of(self.nodes if members is None else members)
        return TaskParameters(
            agreed,
            step.name,
            step.kind,
            first,
            step.iterations,
            step.synchronous,
            self.initial_model,
            counted if self.version > 1 else None,
        )

    def voting(self, node: str, iteration: int) -> StepParameters:
        """Return the parameters by which a node's model of an iteration votes, and its trees were made.

        They are those of the last step by then that learns: a step that does not learn leaves the ensemble
        as it is, and how it votes. Its features and limits say nothing of the model.
        """
        learning = [(step, first) for step, first in self.places() if step.kind.learns]
        begun = [step for step, first in learning if first <= iteration]
        step = begun[-1] if begun else learning[0][0]
        return self._agreed(step, node)

    def _agreed(self, step: Step, node: str) -> StepParameters:
        return step.parameters_of(node).in_format(self.estimator_format, self.estimator_kind)

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record with every default written out and every list in its one order."""
        record: dict[str, canonical.Record] = {
            "version": self.version,
            "process": self.process,
            "description": self.description,
            "organisations": list(self.organisations),
            "nodes": dict(self.nodes),
            "topology": self.topology.first.to_dict(),
            "topology_changes": [
                {"iteration": start, "topology": topology.to_dict()}
                for start, topology in self.topology.changes
            ],
            "steps": [step.to_dict(self.version) for step in self.steps],
            "initial_model": None if self.initial_model is None else self.initial_model.to_dict(),
            "task_seconds": self.task_seconds,
        }
        if self.version > 1:
            record |= {"silence_seconds": self.silence_seconds, "abort": self.abort.value}
            record |= {"confidential": self.confidential, "confidential_blocks": self.confidential_blocks}
            record["estimator_format"] = self.estimator_format
        # Single trees go without saying, so that what was agreed on before there were kinds keeps its digest.
        if self.estimator_kind != TREE:
            record["estimator_kind"] = self.estimator_kind
        if self.change_quota != MAX_CHANGES:
            record["change_quota"] = self.change_quota
        if self.image_attestations:
            record["image_attestations"] = self.image_attestations
        if self.model_access is not ModelAccess.OWNER:
            record["model_access"] = self.model_access.value
        if self.model_licence is not None:
            record["model_licence"] = str(self.model_licence)
        if self.coordinator is not None:
            record["coordinator"] = self.coordinator
        return record

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        try:
            return canonical.encode(self.to_dict(), max_bytes=MAX_SPECIFICATION_BYTES)
        except EncodingError as error:
            raise ProcessError("PROCESS_VALUE", f"the specification: {error.cause}") from error

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the canonical bytes: what each organisation accepts."""
        return Digest.of(self.to_bytes())


_NEEDED = ("version", "process", "organisations", "nodes", "topology", "steps")
_FIRST = ("description", "topology_changes", "initial_model", "task_seconds")
_SECOND = (
    "silence_seconds",
    "abort",
    "confidential",
    "confidential_blocks",
    "estimator_format",
    "estimator_kind",
    "change_quota",
    "image_attestations",
    "model_access",
    "model_licence",
    "coordinator",
)
_OPTIONAL = {1: _FIRST, VERSION: (*_FIRST, *_SECOND)}
"""By version, the fields that have defaults."""
_FORMATS = {1: FIRST_FORMAT, VERSION: LATEST_FORMAT}
"""By version, the estimator format of a process that names none."""


def _version(record: object) -> int:
    if not isinstance(record, Mapping):
        raise ProcessError("PROCESS_FIELDS", "the specification is not an object")
    found = record.get("version")
    if type(found) is not int or found not in _OPTIONAL:
        raise ProcessError(
            "PROCESS_VALUE", f"the specification is of version {str(found)[:20]}, not 1 to {VERSION}"
        )
    return found


def _description(found: AgreementFields, version: int) -> str:
    text = found.text("description", default="")
    if version > 1:
        check_printable(text, "the description")
    return text


def _abort(value: object) -> AbortRule:
    try:
        return AbortRule(value)  # type: ignore[arg-type]
    except ValueError:
        raise ProcessError(
            "PROCESS_VALUE", f"abort {str(value)[:40]!r} is neither majority nor any"
        ) from None


def _model_access(value: object) -> ModelAccess:
    try:
        return ModelAccess(value)  # type: ignore[arg-type]
    except ValueError:
        raise ProcessError(
            "PROCESS_VALUE", f"model_access {str(value)[:40]!r} is none of {', '.join(ModelAccess)}"
        ) from None


def _estimator_kind(value: object) -> str:
    if value not in KIND_NAMES:
        raise ProcessError(
            "PROCESS_VALUE", f"estimator_kind {str(value)[:40]!r} is none of {', '.join(KIND_NAMES)}"
        )
    return str(value)


def _organisations(names: list[Any]) -> tuple[str, ...]:
    ordered = tuple(sorted(map(parse_organisation, names)))
    for name in ordered:
        if ordered.count(name) > 1:
            raise ProcessError("PROCESS_CONSORTIUM", f"{name} is named twice")
    return ordered


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
