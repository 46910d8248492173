"""What holds in each iteration of a process: its specification and the changes agreed since.

Chaincode, executor and auditor compute it alike, so that all of them mean the same nodes, neighbours and
image when they say "iteration 7".
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from protocol.agreement.course import Change, ChangeKind, Course, Span, holding
from protocol.agreement.image import ImagePin
from protocol.agreement.parameters import TaskParameters
from protocol.agreement.process import Specification
from protocol.agreement.step import Step
from protocol.agreement.step_kind import StepKind
from protocol.agreement.topology import Topology
from protocol.values import dataclass


@dataclass(frozen=True, slots=True)
class PlannedImage:
    """The image of an iteration, and which bytes it stands for; version 1 of a specification does not say."""

    name: str
    version: str
    pin: ImagePin | None
    change: int | None = None
    """The number of the change that brought it."""


def _no_change(number: int) -> Change:
    raise KeyError(number)


class Plan:
    """The course of a process."""

    def __init__(
        self,
        specification: Specification,
        course: Course | None = None,
        change_of: Callable[[int], Change] = _no_change,
    ) -> None:
        """Take the course, and how to find the change with a number."""
        self.specification = specification
        self.course = Course() if course is None else course
        self._change_of = change_of
        self.nodes: dict[str, str] = {**specification.nodes, **self.course.joined}
        self._topologies: dict[int, Topology] = {}

    @classmethod
    def of(cls, specification: Specification, changes: Sequence[Change]) -> "Plan":
        """Make the plan of all changes that hold, in the order in which they came to."""
        course = Course()
        for change in changes:
            course = course.after(change, specification.nodes)
        return cls(specification, course, changes.__getitem__)

    def last_like(self, change: Change) -> int | None:
        """Return the number of the last change that decided on the same as another; None if none did.

        The same is the topology, the image of a step, who coordinates, or whether a node takes part.
        """
        course = self.course
        match change.kind:
            case ChangeKind.TOPOLOGY:
                return max((number for _, number in course.topologies), default=None)
            case ChangeKind.IMAGE:
                step = self._first_of_step(change.iteration)
                same = (number for start, number in course.images if self._first_of_step(start) == step)
                return max(same, default=None)
            case ChangeKind.COORDINATOR:
                return course.replaced
            case ChangeKind.JOIN:
                return course.joins.get(change.subject["node"])
        return None

    def _first_of_step(self, iteration: int) -> int:
        return self.specification.step_at(min(iteration, self.iterations - 1))[1]

    def after(self, change: Change) -> "Plan":
        """Return the plan with one more change."""
        course, number = self.course, self.course.count
        return Plan(
            self.specification,
            course.after(change, self.specification.nodes),
            lambda wanted: change if wanted == number else self._change_of(wanted),
        )

    @property
    def iterations(self) -> int:
        """How many iterations there are."""
        return self.specification.iterations

    @property
    def consortium(self) -> tuple[str, ...]:
        """The organisations, those included that joined with a node, and those that have left."""
        return tuple(sorted({*self.specification.organisations, *self.nodes.values()}))

    def nodes_of(self, organisation: str) -> tuple[str, ...]:
        """Return the nodes of an organisation, ascending."""
        return tuple(sorted(node for node, owner in self.nodes.items() if owner == organisation))

    def present(self, finished: Collection[str] = ()) -> tuple[str, ...]:
        """Return the organisations that have a say, given the nodes that have no work left.

        Who took all of its nodes out, or was left out, has none.
        """
        return tuple(name for name in self.consortium if not self._is_gone(name, finished))

    def _is_gone(self, organisation: str, finished: Collection[str]) -> bool:
        if organisation in self.course.gone:
            return True
        own = self.nodes_of(organisation)
        return bool(own) and all(self.has_left(node) is not None and node in finished for node in own)

    def is_active(self, node: str, iteration: int) -> bool:
        """Whether a node takes part in an iteration."""
        return any(start <= iteration and (end is None or iteration < end) for start, end in self.spans(node))

    def active(self, iteration: int) -> tuple[str, ...]:
        """Return the nodes that take part in an iteration, ascending."""
        changed = self.course.spans
        return tuple(
            node for node in sorted(self.nodes) if node not in changed or self.is_active(node, iteration)
        )

    def spans(self, node: str) -> tuple[Span, ...]:
        """Return when a node takes part; a node that the process does not have never does."""
        return self.course.spans_of(node, node in self.specification.nodes)

    def joined_at(self, node: str) -> int | None:
        """Return the iteration from which a node joined last; None if it has been there from the start."""
        number = self.course.joins.get(node)
        return None if number is None else self._change_of(number).iteration

    def members(self, iteration: int) -> dict[str, str]:
        """Return every node that takes or took part by an iteration, with its organisation.

        Who left stays a member: its estimators are still held, and quotas that grew with each leave would
        reward those who drive others out.
        """
        known = (node for node in sorted(self.nodes) if self.spans(node)[0][0] <= iteration)
        return {node: self.nodes[node] for node in known}

    def parameters(self, node: str, iteration: int) -> TaskParameters:
        """Return what a node's task in an iteration depends on."""
        return self.specification.parameters(node, iteration, self.members(iteration))

    def has_left(self, node: str) -> int | None:
        """Return the iteration from which a node is gone, or None while it stays to the end."""
        return self.spans(node)[-1][1]

    def first_empty(self, iteration: int) -> int | None:
        """Return the first iteration from this one on in which no node takes part, None if there is none."""
        ends = [end for spans in self.course.spans.values() for _, end in spans if end is not None]
        for start in sorted({iteration, *ends}):
            if iteration <= start < self.iterations and not self.active(start):
                return start
        return None

    def left_empty(self, change: Change) -> int | None:
        """Return the first iteration that a change would leave without a node, None if it leaves none.

        Who is left out may have been alone in one for which the others were away: they would wait for it in
        the next for good. The last one stays nobody's to leave, since the process comes to its models there.
        """
        after = self.after(change)
        first = self.iterations - 1 if change.kind is ChangeKind.LEAVE_OUT else change.iteration
        return after.first_empty(first)

    def next_iteration(self, node: str, done: int) -> int | None:
        """Return the first iteration from `done` on that the node takes part in, None after its last."""
        for start, end in self.spans(node):
            candidate = max(start, done)
            if candidate < (self.iterations if end is None else min(end, self.iterations)):
                return candidate
        return None

    @property
    def coordinator(self) -> str | None:
        """The organisation that opens steps now; None where the nodes go on by themselves."""
        return self.course.coordinator or self.specification.coordinator

    def next_step(self) -> tuple[Step, int] | None:
        """Return the step that is to be opened next, with its first iteration; None when all are open."""
        if self.coordinator is None:
            return None
        return next(islice(self.specification.places(), len(self.course.opened), None), None)

    def is_open(self, iteration: int) -> bool:
        """Whether tasks of an iteration may be opened."""
        upcoming = self.next_step()
        return upcoming is None or iteration < upcoming[1]

    def opened_by(self, iteration: int) -> int | None:
        """Return the number of the change that opened an iteration's step; None where nobody had to."""
        firsts = [first for _, first in self.specification.places()]
        place = bisect_right(firsts, iteration) - 1
        return self.course.opened[place] if place < len(self.course.opened) else None

    def topology(self, iteration: int) -> Topology:
        """Return the topology of an iteration."""
        agreed = self.specification.topology
        found = holding(self.course.topologies, iteration)
        # The later iteration holds; of two with the same one, the change does, which was agreed later.
        if found is None or found[0] < agreed.since(iteration):
            return agreed.at(iteration)
        number = found[1]
        if number not in self._topologies:
            self._topologies[number] = Topology.from_dict(dict(self._change_of(number).subject))
        return self._topologies[number]

    def neighbours(self, node: str, iteration: int) -> tuple[str, ...]:
        """Return the active neighbours of a node, ascending; only an iterative step has any."""
        step, _ = self.specification.step_at(iteration)
        if step.kind is not StepKind.ITERATIVE:
            return ()
        return self.topology(iteration).neighbours(node, self.active(iteration))

    def turns(self) -> set[int]:
        """Return the iterations at which somebody's neighbours may be others than in the one before."""
        joined = {
            at for spans in self.course.spans.values() for span in spans for at in span if at is not None
        }
        return joined | self.rewirings() | {first for _, first in self.specification.places()}

    def rewirings(self) -> set[int]:
        """Return the iterations from which another topology holds."""
        return {start for start, _ in (*self.course.topologies, *self.specification.topology.changes)}

    def image(self, iteration: int) -> PlannedImage:
        """Return the image that runs in an iteration; a change of it holds until the end of its step."""
        step, first = self.specification.step_at(iteration)
        found = holding(self.course.images, iteration, first)
        if found is None:
            return PlannedImage(step.image_name, step.image_version, step.pin)
        subject: Mapping[str, Any] = self._change_of(found[1]).subject
        return PlannedImage(step.image_name, subject["version"], ImagePin.from_dict(subject), found[1])
