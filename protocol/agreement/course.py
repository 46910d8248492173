"""What the changes of a process come to: who takes part when, and which change holds from which iteration on.

A course is all that has to be read to know who takes part in an iteration, however many changes there were.
Of a topology or an image it knows the change's number alone, which is read when its iteration is asked for.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from typing import Any, Self, TypeAlias

from protocol.canonical import Record
from protocol.errors import RecordError
from protocol.fields import Fields
from protocol.identifiers import check_counter, parse_node, parse_organisation
from protocol.values import dataclass

Span: TypeAlias = tuple[int, int | None]
"""Iterations that a node takes part in, as [from, until) with None for no end."""
Schedule: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of an iteration and the number of the change that holds from it on, ascending."""

ALWAYS: tuple[Span, ...] = ((0, None),)


class ChangeKind(StrEnum):
    """What can change while a process runs."""

    JOIN = "join"
    LEAVE = "leave"
    LEAVE_OUT = "leave-out"
    TOPOLOGY = "topology"
    IMAGE = "image"
    COORDINATOR = "coordinator"
    OPEN_STEP = "open-step"


@dataclass(frozen=True, slots=True)
class Change:
    """One change and the iteration from which it holds.

    `subject` is `{"node", "organisation"}` for a join, `{"node", "reason"}` for a leave, `{"organisation",
    "nodes", "whole", "last"}` for who is left out, a topology's record, `{"version", "image_id",
    "manifest_digest"}` of the image, `{"coordinator"}` for who opens steps from now on, or `{"step"}` for
    one that was opened.
    """

    kind: ChangeKind
    iteration: int
    subject: Mapping[str, Any]

    def to_dict(self) -> dict[str, Record]:
        """Return the fields of which an agreement names the digest."""
        return {"kind": self.kind.value, "iteration": self.iteration, "subject": dict(self.subject)}


@dataclass(frozen=True, slots=True)
class Course:
    """The changes that hold, in the order in which they came to."""

    count: int = 0
    """How many there are, which is the number of the next."""
    joined: Mapping[str, str] = field(default_factory=dict)
    """The organisation of each node that the specification does not name."""
    spans: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    """When each node takes part that does not do so from beginning to end."""
    topologies: Schedule = ()
    images: Schedule = ()
    left_out: tuple[str, ...] = ()
    """The nodes that the others left out, until they join again."""
    gone: tuple[str, ...] = ()
    """The organisations that the others left out, until a node of theirs joins."""
    joins: Mapping[str, int] = field(default_factory=dict)
    """The number of the change by which each node joined last."""
    opened: tuple[int, ...] = ()
    """By step, in their order, the number of the change that opened it, where a coordinator does."""
    coordinator: str | None = None
    """The organisation that opens steps in place of the one that the specification names."""
    replaced: int | None = None
    """The number of the change by which it came to."""

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Accept the course of a process record, or raise."""
        names = ("count", "joined", "spans", "topologies", "images", "left_out", "gone", "joins")
        found = Fields(record, "the course", names, ("opened", "coordinator", "replaced"))
        return cls(
            found.count("count"),
            {parse_node(node): parse_organisation(owner) for node, owner in _object(found["joined"])},
            {parse_node(node): tuple(map(_span, _list(spans))) for node, spans in _object(found["spans"])},
            tuple(map(_pair, _list(found["topologies"]))),
            tuple(map(_pair, _list(found["images"]))),
            tuple(map(parse_node, _list(found["left_out"]))),
            tuple(map(parse_organisation, _list(found["gone"]))),
            {parse_node(node): check_counter(at, "a number") for node, at in _object(found["joins"])},
            tuple(check_counter(at, "a number") for at in _list(found.get("opened", []))),
            found.organisation("coordinator") if "coordinator" in found else None,
            found.count("replaced") if "replaced" in found else None,
        )

    def to_dict(self) -> dict[str, Record]:
        """Return the record; what only a process with a coordinator has is left out of others'."""
        record: dict[str, Record] = {
            "count": self.count,
            "joined": dict(self.joined),
            "spans": {node: [[start, end] for start, end in spans] for node, spans in self.spans.items()},
            "topologies": [[start, number] for start, number in self.topologies],
            "images": [[start, number] for start, number in self.images],
            "left_out": list(self.left_out),
            "gone": list(self.gone),
            "joins": dict(self.joins),
        }
        if self.opened:
            record["opened"] = list(self.opened)
        if self.coordinator is not None:
            record["coordinator"] = self.coordinator
        if self.replaced is not None:
            record["replaced"] = self.replaced
        return record

    def spans_of(self, node: str, known: bool = True) -> tuple[Span, ...]:
        """Return when a node takes part; one the specification does not know did not before it joined."""
        return self.spans.get(node, ALWAYS if known else ())

    def after(self, change: Change, nodes: Mapping[str, str]) -> "Course":
        """Return the course with one more change, for a process of these nodes in its specification."""
        made = replace(self, count=self.count + 1)
        subject, start = change.subject, change.iteration
        match change.kind:
            case ChangeKind.JOIN:
                made = made._after_join(subject["node"], subject["organisation"], start, nodes)
            case ChangeKind.LEAVE:
                made = made._without(subject["node"], start, nodes)
            case ChangeKind.LEAVE_OUT:
                made = made._after_leaving_out(subject, nodes)
            case ChangeKind.TOPOLOGY:
                made = replace(made, topologies=_scheduled(self.topologies, start, self.count))
            case ChangeKind.IMAGE:
                made = replace(made, images=_scheduled(self.images, start, self.count))
            case ChangeKind.COORDINATOR:
                made = replace(made, coordinator=subject["coordinator"], replaced=self.count)
            case ChangeKind.OPEN_STEP:
                made = replace(made, opened=(*self.opened, self.count))
        return made

    def _after_join(self, node: str, organisation: str, start: int, nodes: Mapping[str, str]) -> "Course":
        spans = (*self.spans_of(node, node in nodes), (start, None))
        return replace(
            self,
            joined=self.joined if node in nodes else {**self.joined, node: organisation},
            spans={**self.spans, node: spans},
            left_out=tuple(name for name in self.left_out if name != node),
            gone=tuple(name for name in self.gone if name != organisation),
            joins={**self.joins, node: self.count - 1},
        )

    def _without(self, node: str, start: int, nodes: Mapping[str, str]) -> "Course":
        known = self.spans_of(node, node in nodes)
        kept = [(first, start if end is None else min(end, start)) for first, end in known if first < start]
        # A part that ends where it begins still says from when on the node is gone.
        ended = kept if kept and kept[-1][1] == start else [*kept, (start, start)]
        return replace(self, spans={**self.spans, node: tuple(ended)})

    def _after_leaving_out(self, subject: Mapping[str, Any], nodes: Mapping[str, str]) -> "Course":
        made = self
        for node, start in sorted(subject["nodes"].items()):
            made = made._without(node, start, nodes)
        gone = {*self.gone, subject["organisation"]} if subject["whole"] else {*self.gone}
        left_out = {*self.left_out, *subject["nodes"]}
        return replace(made, left_out=tuple(sorted(left_out)), gone=tuple(sorted(gone)))


def _object(value: Any) -> Iterable[tuple[str, Any]]:
    if not isinstance(value, dict):
        raise RecordError("RECORD_VALUE", "a part of the course is not an object")
    return value.items()


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise RecordError("RECORD_VALUE", "a part of the course is not a list")
    return value


def _pair(value: Any) -> tuple[int, int]:
    if not isinstance(value, list) or len(value) != 2:
        raise RecordError("RECORD_VALUE", "an entry of the course is not a pair")
    return check_counter(value[0], "an iteration"), check_counter(value[1], "a number")


def _span(value: Any) -> Span:
    if isinstance(value, list) and len(value) == 2 and value[1] is None:
        return check_counter(value[0], "an iteration"), None
    return _pair(value)


def holding(schedule: Schedule, iteration: int, since: int = 0) -> tuple[int, int] | None:
    """Return the entry that holds in an iteration, among those that begin at `since` or later."""
    place = bisect_right(schedule, iteration, key=lambda entry: entry[0])
    found = schedule[place - 1] if place else None
    return found if found is not None and found[0] >= since else None


def _scheduled(schedule: Schedule, start: int, number: int) -> Schedule:
    """Return the schedule with one more change; one at the same iteration is replaced."""
    others = [entry for entry in schedule if entry[0] != start]
    return tuple(sorted([*others, (start, number)]))
