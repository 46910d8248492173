"""From which iteration on a change of a running process may hold: what a task has begun with stays as it was.

A task commits to its image and its parameters when it is opened, the members among them, and to its
neighbours when it shares. So a new node, which becomes a member for everybody, joins from an iteration on
that has begun nowhere. Of everything else a node that runs ahead fixes its own part alone, and keeps nobody
from changing theirs:

- A topology may hold from the present iteration on, as long as no task that may have begun gets other
  neighbours.
- A node comes back from the present iteration on, or from its own next one if that is later. In a synchronous
  step its neighbours must not have begun: they would have to wait for it. In an asynchronous one nobody does.
- An image may hold from the present iteration on: what is open goes on with the one it began with.

Leaving is at once, opening a step and naming a coordinator change no iteration.
"""

from collections.abc import Iterator

from protocol.agreement.course import Change, ChangeKind
from protocol.agreement.plan import Plan
from protocol.agreement.progress import Progress
from protocol.errors import StateError


def check_onset(change: Change, progress: Progress) -> None:
    """Refuse a change that would hold in the past, or beyond the last iteration."""
    if change.kind is ChangeKind.IMAGE:
        _check_range(change.iteration, progress.current(), progress)
    elif change.kind is ChangeKind.TOPOLOGY:
        _check_range(change.iteration, progress.current(), progress)
        _check_links(change, progress)
    elif change.kind is ChangeKind.JOIN:
        _check_join(change, progress, change.subject["node"])


def _check_join(change: Change, progress: Progress, node: str) -> None:
    current = progress.current()
    if node not in progress.plan.nodes or current is None:
        _check_range(change.iteration, progress.frontier() + 1, progress)
        return
    _check_range(change.iteration, max(current, progress.following(node)), progress)
    after = progress.plan.after(change)
    for iteration in _turns(after, change.iteration, progress.frontier()):
        step, _ = after.specification.step_at(iteration)
        for other in after.neighbours(node, iteration) if step.synchronous else ():
            if progress.has_begun(other, iteration):
                raise StateError(
                    "ITERATION_RANGE", f"{other} may have begun iteration {iteration} without {node}"
                )


def _check_links(change: Change, progress: Progress) -> None:
    """Refuse a topology by which a task that may have begun gets other neighbours."""
    plan, after = progress.plan, progress.plan.after(change)
    for iteration in _turns(after, change.iteration, progress.frontier()):
        links = plan.links(iteration) ^ after.links(iteration)
        begun = {node for link in links for node in link if progress.has_begun(node, iteration)}
        if begun:
            raise StateError(
                "ITERATION_RANGE",
                f"{min(begun)} may have begun iteration {iteration}, and would have other neighbours in it",
            )


def _turns(plan: Plan, first: int, last: int) -> Iterator[int]:
    """Iterate over an iteration and those up to the last at which somebody's neighbours may change.

    Whoever has begun one that lies between two of them has begun the earlier one, so these few are enough.
    """
    for iteration in sorted({first, *plan.turns()}):
        if first <= iteration <= last:
            yield iteration


def _check_range(iteration: int, earliest: int | None, progress: Progress) -> None:
    last = progress.plan.iterations - 1
    if earliest is None or not earliest <= iteration <= last:
        raise StateError(
            "ITERATION_RANGE",
            f"iteration {iteration} is not to come: iterations from {earliest} to {last} are"
            if earliest is not None and earliest <= last
            else f"iteration {iteration} is not to come: the last one, {last}, has begun",
        )
