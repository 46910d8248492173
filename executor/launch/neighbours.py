"""Waiting for the neighbours of a synchronous process, without asking the ledger at every event of everybody.

Events are one peer's word, so they decide nothing: they say when it is worth asking. That is when each
neighbour that was missing has been announced, or when the process itself has changed. Enough peers may be
behind the one that announced it; then they are asked again soon. Whatever is announced or not, they are asked
now and then.
"""

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

from executor.ledger.chaincodes.execution import ExecutionRecord
from executor.ledger.chaincodes.proxies import Ledger
from executor.ledger.follow import Announcement, wait_until
from protocol.task.opening import TaskId
from protocol.task.result import Offer

SHARED = "TaskShared"
SOON = (0.05, 0.1, 0.2, 0.5)
"""Seconds until peers are asked again that have not heard of what was announced; then the last again."""
NOW_AND_THEN = 5.0


class NeighbourWait:
    """One task's wait until each of its neighbours has shared."""

    def __init__(
        self,
        ledger: Ledger,
        task: TaskId,
        tell: Callable[[str], None],
        lent: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._ledger, self._task, self._tell, self._lent = ledger, task, tell, lent
        self._missing: frozenset[str] = frozenset()
        self._announced: set[str] = set()
        self._early = 0

    def offers(self, seconds: float, stop: threading.Event) -> tuple[Offer, ...]:
        """Return what the neighbours offer once nobody is missing; the place is lent while they are."""
        with ExitStack() as away:

            def check() -> tuple[Offer, ...] | None:
                found = self._ledger.execution.offers(self._task)
                if not found.missing:
                    return found.slots
                if not self._missing:
                    away.enter_context(self._lent())
                self._say(frozenset(found.missing))
                self._ledger.orchestration.task_context(self._task).check_running()
                return None

            return wait_until(
                self._ledger,
                self._task.process,
                check,
                seconds,
                "the neighbours",
                stop=stop,
                wakes=self._wakes,
                again=self._again,
            )

    def _say(self, missing: frozenset[str]) -> None:
        if missing != self._missing:
            self._missing = missing
            self._tell(f"waiting for {', '.join(sorted(missing))}")

    def _wakes(self, announcement: Announcement) -> bool:
        """Whether it is worth asking because of what was announced."""
        if announcement.chaincode != ExecutionRecord.chaincode:
            return True
        said = announcement.payload
        if announcement.event.name == SHARED and said.get("iteration") == self._task.iteration:
            self._announced.add(str(said.get("node")))
            return self._missing <= self._announced
        return False

    def _again(self) -> float:
        """Return after how many seconds to ask again though nothing is announced."""
        if not self._missing <= self._announced:
            return NOW_AND_THEN
        self._early += 1
        return SOON[min(self._early, len(SOON)) - 1]
