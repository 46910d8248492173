"""How far each node of a process is, and who therefore has a say; chaincode and auditor compute it alike."""

from collections.abc import Mapping

from protocol.agreement.plan import Plan


class Progress:
    """A process's plan, and the last iteration that each node has completed."""

    def __init__(self, plan: Plan, done: Mapping[str, int]) -> None:
        """Take the plan and, by node, the last completed iteration; a node without one has done nothing."""
        self.plan = plan
        self._done = done

    def next_of(self, node: str) -> int | None:
        """Return the iteration a node has to do next, None when it has done all of its own."""
        return self.plan.next_iteration(node, self.following(node))

    def unfinished(self) -> dict[str, int]:
        """Return the nodes that have work left, with their next iteration."""
        found = {node: self.next_of(node) for node in sorted(self.plan.nodes)}
        return {node: iteration for node, iteration in found.items() if iteration is not None}

    def finished(self) -> tuple[str, ...]:
        """Return the nodes that have done the last iteration of the process, ascending: each has a model."""
        last = self.plan.iterations - 1
        return tuple(node for node in sorted(self.plan.nodes) if self._done.get(node) == last)

    def present(self) -> tuple[str, ...]:
        """Return the organisations that have a say."""
        unfinished = self.unfinished()
        return self.plan.present([node for node in self.plan.nodes if node not in unfinished])

    def entitled(self) -> tuple[str, ...]:
        """Return the organisations that decide who reads the models.

        Those that have a say at the end, and whoever was left out without having owed its part: with a node
        that did the last iteration, or without any node. Else a majority could leave out who would refuse.
        """
        own = {self.plan.nodes[node] for node in self.finished()}
        own |= {name for name in self.plan.consortium if not self.plan.nodes_of(name)}
        return tuple(sorted({*self.present(), *own}))

    def may_return(self, node: str) -> bool:
        """Whether a node that left may come back by its own organisation's word.

        Each return and each leave is read by everybody's tasks, so that one organisation could hold up all
        others by doing them in turn: after its first return a node has to complete something in between.
        """
        if node in self.plan.course.left_out:
            return False
        spans = self.plan.spans(node)
        return len(spans) == 1 or (node in self._done and self._done[node] >= spans[-1][0])

    def following(self, node: str) -> int:
        """Return the iteration after the last that a node has completed."""
        return self._done[node] + 1 if node in self._done else 0

    def has_begun(self, node: str, iteration: int) -> bool:
        """Whether a node may have begun an iteration: it has completed it, or that is next or past."""
        upcoming = self.next_of(node)
        return iteration < self.following(node) or (upcoming is not None and iteration <= upcoming)

    def frontier(self) -> int:
        """Return the latest iteration that may have begun on some node; the past is up to there."""
        return max([*self.unfinished().values(), *self._done.values()], default=0)

    def current(self) -> int | None:
        """Return the earliest iteration that some node still has to do, None when all are done."""
        return min(self.unfinished().values(), default=None)
