"""What holds in each iteration of a process: its specification and the changes agreed since.

Chaincode, executor and auditor compute it alike from the process record, so that all of them mean the same
nodes, neighbours and image when they say "iteration 7".
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from protocol.agreement.image import ImagePin
from protocol.agreement.parameters import TaskParameters
from protocol.agreement.process import Specification
from protocol.agreement.step import StepKind
from protocol.agreement.topology import Schedule, Topology
from protocol.canonical import Record


class ChangeKind(StrEnum):
    """What can change while a process runs."""

    JOIN = "join"
    LEAVE = "leave"
    TOPOLOGY = "topology"
    IMAGE = "image"


@dataclass(frozen=True, slots=True)
class Change:
    """One change and the iteration from which it holds.

    `subject` is `{"node", "organisation"}` for a join, `{"node"}` for a leave, a topology's record, or
    `{"version", "image_id", "manifest_digest"}` of the image.
    """

    kind: ChangeKind
    iteration: int
    subject: Mapping[str, Any]

    def to_dict(self) -> dict[str, Record]:
        """Return the fields as they stand in the process record."""
        return {"kind": self.kind.value, "iteration": self.iteration, "subject": dict(self.subject)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Change":
        """Read a change from a process record, which only ever holds checked ones."""
        return cls(ChangeKind(record["kind"]), record["iteration"], record["subject"])


@dataclass(frozen=True, slots=True)
class PlannedImage:
    """The image of an iteration, and which bytes it stands for; version 1 of a specification does not say."""

    name: str
    version: str
    pin: ImagePin | None

    @classmethod
    def of(cls, name: str, subject: Mapping[str, Any]) -> "PlannedImage":
        """Read the subject of a change of the image."""
        pin = ImagePin.from_dict(subject) if "image_id" in subject else None
        return cls(name, subject["version"], pin)


class Plan:
    """The course of a process."""

    def __init__(self, specification: Specification, changes: Iterable[Change] = ()) -> None:
        """Take the changes that hold, in the order in which they were agreed."""
        self.specification = specification
        self.nodes: dict[str, str] = dict(specification.nodes)
        self.topology: Schedule = specification.topology
        self._images: list[Change] = []
        # Per node the iterations it takes part in, as [from, until) with None for no end.
        self._spans: dict[str, list[tuple[int, int | None]]] = {node: [(0, None)] for node in self.nodes}
        for change in changes:
            self._apply(change)

    def _apply(self, change: Change) -> None:
        subject = change.subject
        if change.kind is ChangeKind.JOIN:
            self.nodes[subject["node"]] = subject["organisation"]
            self._spans.setdefault(subject["node"], []).append((change.iteration, None))
        elif change.kind is ChangeKind.LEAVE:
            spans = self._spans[subject["node"]]
            kept = [span for span in spans if span[0] < change.iteration]
            start = kept.pop()[0] if kept else change.iteration
            self._spans[subject["node"]] = [*kept, (start, change.iteration)]
        elif change.kind is ChangeKind.TOPOLOGY:
            self.topology = self.topology.changed(change.iteration, Topology.from_dict(subject))
        else:
            self._images.append(change)

    @property
    def iterations(self) -> int:
        """How many iterations there are."""
        return self.specification.iterations

    @property
    def consortium(self) -> tuple[str, ...]:
        """The organisations, those included that joined with a node."""
        return tuple(sorted({*self.specification.organisations, *self.nodes.values()}))

    def is_active(self, node: str, iteration: int) -> bool:
        """Whether a node takes part in an iteration."""
        return any(
            start <= iteration and (end is None or iteration < end)
            for start, end in self._spans.get(node, ())
        )

    def active(self, iteration: int) -> tuple[str, ...]:
        """Return the nodes that take part in an iteration, ascending."""
        return tuple(node for node in sorted(self.nodes) if self.is_active(node, iteration))

    def members(self, iteration: int) -> dict[str, str]:
        """Return every node that takes or took part by an iteration, with its organisation.

        Who left stays a member: its estimators are still held, and quotas that grew with each leave would
        reward those who drive others out.
        """
        known = (node for node in sorted(self.nodes) if self._spans[node][0][0] <= iteration)
        return {node: self.nodes[node] for node in known}

    def parameters(self, node: str, iteration: int) -> TaskParameters:
        """Return what a node's task in an iteration depends on."""
        return self.specification.parameters(node, iteration, self.members(iteration))

    def has_left(self, node: str) -> int | None:
        """Return the iteration from which a node is gone, or None while it stays to the end."""
        return self._spans[node][-1][1]

    def first_empty(self, iteration: int) -> int | None:
        """Return the first iteration from this one on in which no node takes part, None if there is none."""
        ends = [end for spans in self._spans.values() for _, end in spans if end is not None]
        for start in sorted({iteration, *ends}):
            if iteration <= start < self.iterations and not self.active(start):
                return start
        return None

    def next_iteration(self, node: str, done: int) -> int | None:
        """Return the first iteration from `done` on that the node takes part in, None after its last."""
        for start, end in self._spans.get(node, ()):
            candidate = max(start, done)
            if candidate < (self.iterations if end is None else min(end, self.iterations)):
                return candidate
        return None

    def neighbours(self, node: str, iteration: int) -> tuple[str, ...]:
        """Return the active neighbours of a node in an iteration, ascending; a single step has none."""
        step, _ = self.specification.step_at(iteration)
        if step.kind is StepKind.SINGLE:
            return ()
        return self.topology.neighbours(node, iteration, self.active(iteration))

    def image(self, iteration: int) -> PlannedImage:
        """Return the image that runs in an iteration."""
        step, first = self.specification.step_at(iteration)
        planned, since = PlannedImage(step.image_name, step.image_version, step.pin), first
        for change in self._images:
            if since <= change.iteration <= iteration:
                planned, since = PlannedImage.of(step.image_name, change.subject), change.iteration
        return planned
