"""From which iteration on a change of a running process may hold: what a task has begun with stays as it was.

A task commits to its image and its parameters when it is opened, the members among them, and to its
neighbours when it shares. So a new node, which becomes a member for everybody, joins from an iteration on
that has begun nowhere, and nobody takes part before it is a member. Of everything else a node that runs
ahead fixes its own part alone, and keeps nobody from changing theirs:

- A topology may hold from the present iteration on, as long as no task that may have begun gets other
  neighbours.
- A node comes back from the present iteration on, or from its own next one if that is later. In a synchronous
  step its neighbours must not have begun: they would have to wait for it. In an asynchronous one nobody does,
  and who joined ahead of the others waits for them anyway. It comes back to the next iteration at the latest,
  or to the one after that which a neighbour has to do next: nobody begins far ahead by its own word.
- An image may hold from the present iteration on: what is open goes on with the one it began with.
- A node leaves from its next iteration on or later; what it has completed stays.

Opening a step and naming a coordinator change no iteration. What a check looks up is bounded, because every
peer runs it for whoever asks: at most `MAX_LOOKUPS` nodes and edges, or a later iteration has to be named.
"""

from protocol.agreement.course import Change, ChangeKind
from protocol.agreement.plan import Plan
from protocol.agreement.progress import Progress
from protocol.agreement.step_kind import StepKind
from protocol.agreement.topology import MAX_EDGES, Neighbourhoods
from protocol.errors import StateError

MAX_LOOKUPS = 1_000_000


def check_onset(change: Change, progress: Progress) -> None:
    """Refuse a change that would hold in the past, too far ahead, or beyond the last iteration."""
    match change.kind:
        case ChangeKind.IMAGE:
            _check_range(change.iteration, progress.current(), progress)
        case ChangeKind.TOPOLOGY:
            _check_range(change.iteration, progress.current(), progress)
            _check_neighbours(change, progress)
        case ChangeKind.JOIN:
            _check_join(change, progress, change.subject["node"])
        case ChangeKind.LEAVE:
            _check_leave(change.iteration, progress, change.subject["node"])


def _check_leave(iteration: int, progress: Progress, node: str) -> None:
    """Refuse to leave from what is completed on; who is to leave later can leave sooner only at once."""
    plan, upcoming = progress.plan, progress.next_of(node)
    gone = plan.has_left(node)
    if upcoming is None or (gone is not None and iteration >= gone):
        raise StateError("NODE_INACTIVE", f"{node} has done its part of the process, or is gone by then")
    latest = plan.iterations - 1 if gone is None else upcoming
    if not upcoming <= iteration <= latest:
        raise StateError("ITERATION_RANGE", f"{node} can leave from {upcoming} to {latest}, not {iteration}")


def _check_join(change: Change, progress: Progress, node: str) -> None:
    plan, current = progress.plan, progress.current()
    if node not in plan.nodes or current is None:
        _check_range(change.iteration, progress.frontier() + 1, progress)
        return
    earliest = max(current, progress.following(node), plan.spans(node)[0][0])
    _check_range(change.iteration, earliest, progress)
    after = plan.after(change)
    _check_near(change.iteration, max(earliest, current + 1, plan.has_left(node) or 0), progress, after, node)
    for iteration in _turns(after, change.iteration, progress.frontier()):
        if plan.is_active(node, iteration):
            continue
        for other in _waiting(after, node, iteration):
            # One that joined ahead of what it has completed waits there for everybody anyway.
            if progress.following(other) >= iteration:
                raise StateError(
                    "ITERATION_RANGE", f"{other} may have begun iteration {iteration} without {node}"
                )


def _check_near(iteration: int, latest: int, progress: Progress, after: Plan, node: str) -> None:
    """Refuse to come back further ahead than the neighbours are."""
    if iteration > latest:
        following = max(map(progress.following, _waiting(after, node, iteration)), default=0)
        latest = max(latest, following + 1)
    if iteration > latest:
        raise StateError("ITERATION_RANGE", f"{node} can come back from {latest} on at the latest")


def _waiting(plan: Plan, node: str, iteration: int) -> tuple[str, ...]:
    """Return the neighbours that wait for a node's share in an iteration."""
    step, _ = plan.specification.step_at(iteration)
    return plan.neighbours(node, iteration) if step.synchronous else ()


def _check_neighbours(change: Change, progress: Progress) -> None:
    """Refuse a topology by which a task that may have begun gets other neighbours.

    It holds until the next one does, so there are two topologies to compare, and who takes part may change.
    """
    plan, after, first = progress.plan, progress.plan.after(change), change.iteration
    until = min((start for start in plan.rewirings() if start > first), default=plan.iterations)
    before, then = plan.topology(first), after.topology(first)
    if before == then:
        return
    old, new, begun = Neighbourhoods(before), Neighbourhoods(then), progress.begun()
    for iteration in _turns(after, first, min(until - 1, progress.frontier())):
        step, _ = plan.specification.step_at(iteration)
        active = {node: place for place, node in enumerate(plan.active(iteration))}
        for node in active if step.kind is StepKind.ITERATIVE else ():
            if begun.get(node, -1) >= iteration and not old.same(new, node, active):
                raise StateError(
                    "ITERATION_RANGE",
                    f"{node} may have begun iteration {iteration}, and would have other neighbours in it",
                )


def _turns(plan: Plan, first: int, last: int) -> list[int]:
    """Return an iteration and those up to the last at which somebody's neighbours may change.

    Whoever has begun one that lies between two of them has begun the earlier one, so these few are enough.
    """
    found = [at for at in sorted({first, *plan.turns()}) if first <= at <= last]
    # An agreed topology is read from the ledger, with all its edges.
    agreed = sum(first <= start <= last for start, _ in plan.course.topologies)
    if len(found) * len(plan.nodes) + agreed * MAX_EDGES > MAX_LOOKUPS:
        raise StateError(
            "ITERATION_RANGE",
            f"{len(found)} changes between iterations {first} and {last}, which has begun, are too many",
        )
    return found


def _check_range(iteration: int, earliest: int | None, progress: Progress) -> None:
    last = progress.plan.iterations - 1
    if earliest is None or not earliest <= iteration <= last:
        raise StateError(
            "ITERATION_RANGE",
            f"iteration {iteration} is not to come: iterations from {earliest} to {last} are"
            if earliest is not None and earliest <= last
            else f"iteration {iteration} is not to come: the last one, {last}, has begun",
        )
