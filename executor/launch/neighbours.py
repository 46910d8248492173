"""Waiting for the neighbours of a synchronous process, without asking the ledger at every event of everybody.

Events are one peer's word, so they decide nothing: they say when it is worth asking. That is when each
neighbour that was missing has been announced, or when the process itself has changed. Enough peers may be
behind the one that announced it; then they are asked again soon. Whatever is announced or not, they are asked
now and then.
"""

import threading
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager, ExitStack

from executor.ledger.chaincodes.execution import ExecutionRecord
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.follow import Announcement, Source, wait_until
from protocol.task.opening import TaskId
from protocol.task.result import Offer

SHARED = "TaskShared"
SOON = (0.05, 0.1, 0.2, 0.5)
"""Seconds until peers are asked again that have not heard of what was announced; then the last again."""
NOW_AND_THEN = (5.0, 10.0, 20.0)
"""Seconds until they are asked though nothing was announced; then the last again."""


class NeighbourWait:
    """One task's wait until each of its neighbours has shared."""

    def __init__(  # noqa: PLR0917
        self,
        ledger: Ledger,
        task: TaskId,
        tell: Callable[[str], None],
        lent: Callable[[], AbstractContextManager[None]],
        events: Source | None = None,
        expected: Collection[str] = (),
        since: int = 0,
    ) -> None:
        """Take for whom to wait, and who lends the place meanwhile.

        `expected` are neighbours whose shares `events` will have announced by the time they can be read: as
        long as it has not, it is not worth asking. `since` is the block in which the process was last known
        to run.
        """
        self._ledger, self._task, self._tell, self._lent = ledger, task, tell, lent
        self._events, self._expected, self._since = events, frozenset(expected), since
        self._missing: frozenset[str] = frozenset()
        self._announced: set[str] = set()
        self._changed = False
        self._early = self._asked = 0

    def offers(self, seconds: float, stop: threading.Event) -> tuple[Offer, ...]:
        """Return what the neighbours offer once nobody is missing; the place is lent while they are."""
        with ExitStack() as away:

            def check() -> tuple[Offer, ...] | None:
                found = self._ask()
                if isinstance(found, frozenset):
                    if not self._missing:
                        away.enter_context(self._lent())
                    self._say(found)
                    return None
                return found

            return wait_until(
                self._ledger,
                self._task.process,
                check,
                seconds,
                "the neighbours",
                stop=stop,
                wakes=self._wakes,
                again=self._again,
                shared=self._events,
            )

    def _ask(self) -> tuple[Offer, ...] | frozenset[str]:
        """Return what the neighbours offer, or who is missing."""
        first = not self._missing
        if first and not self._changed and (awaited := self._expected - self._announced):
            return awaited
        found = self._ledger.execution.offers(self._task)
        if not found.missing:
            return found.slots
        if not first or self._changed:  # else the ledger has only just taken the task's share
            self._ledger.orchestration.task_context(self._task).check_running()
        return frozenset(found.missing)

    def _say(self, missing: frozenset[str]) -> None:
        if missing != self._missing:
            self._missing = missing
            self._tell(f"waiting for {', '.join(sorted(missing))}")

    def _wakes(self, announcement: Announcement) -> bool:
        """Whether it is worth asking because of what was announced."""
        if announcement.chaincode != ExecutionRecord.chaincode:
            changed = announcement.event.block >= self._since
            self._changed = self._changed or changed
            return changed
        said = announcement.payload
        if announcement.event.name == SHARED and said.get("iteration") == self._task.iteration:
            self._announced.add(str(said.get("node")))
            return self._missing <= self._announced
        return False

    def _again(self) -> float:
        """Return after how many seconds to ask again though nothing is announced."""
        if not self._missing <= self._announced:
            self._asked += 1
            return NOW_AND_THEN[min(self._asked, len(NOW_AND_THEN)) - 1]
        self._early += 1
        return SOON[min(self._early, len(SOON)) - 1]
