"""One question put to several organisations' peers, until enough of them say the same.

    1. As many peers as have to agree are asked at once, the own organisation's first.
    2. For each that fails, keeps one waiting or answers otherwise than the rest, one more is asked.
    3. Once nobody is left to ask, those that answered are asked again for a while: who lags is no liar.

What an organisation said in an earlier turn of the same question still counts: peers pass through the same
states, one a little after the other. Where the own organisation's peer and enough others contradict each
other, it gets a moment to catch up; then the others count.
"""

import time
from collections.abc import Callable, Collection, Hashable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from typing import Any, Generic, TypeVar

import grpc

from .errors import PeerDetail
from .members import Untrue
from .peer import Link

HEDGE_SECONDS = 2.0
"""How long nobody else is asked while a peer keeps one waiting."""
PAUSES = (0.02, 0.05, 0.1, 0.2, 0.4)
"""How long peers get to catch up with each other when they disagree, turn by turn; then the last again."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Statement(Generic[T_co]):
    """What a peer said: `key` is equal where two say the same, `words` are for people."""

    key: Hashable
    value: T_co
    words: str
    by: Collection[str] = ()
    """The organisations that say it, if others than the peer's own."""
    needed: int = 0
    """How many have to say it, if not as many as the rule wants."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Who is believed: so many organisations together, or one of some alone; and how the own one counts."""

    own: str
    needed: int
    alone: Collection[str] = ()
    own_lag: float = 0.0
    """Seconds for which the own peer's contradiction holds back what enough others say."""
    own_wait: float = 0.0
    """Seconds for which its silence does, once enough others have spoken."""
    patience: float = 0.0
    """Seconds for which peers are asked again."""
    insist: bool = False
    """Whether those that failed are asked again, because answers are final; else those that disagree are."""


@dataclass
class Undecided(Exception):  # noqa: N818 - no failure by itself: who asked says what it means
    """Not enough organisations said the same."""

    said: list[PeerDetail] = field(default_factory=list)
    """The last statement of each organisation that made one."""
    untrue: list[PeerDetail] = field(default_factory=list)
    """What did not stand up, and why."""
    failed: list[tuple[Link, grpc.RpcError]] = field(default_factory=list)
    disagree: bool = False
    """Whether two organisations said different things."""


class Inquiry(Generic[T]):
    """One question: `start` puts it to a peer, `read` makes a statement of the answer or of the error.

    `read` returns None for an error that is no answer, and raises Untrue for an answer that cannot be true.
    """

    def __init__(
        self,
        links: Sequence[Link],
        rule: Rule,
        start: Callable[[Link], Any],
        read: Callable[[Link, Any, grpc.RpcError | None], Statement[T] | None],
    ) -> None:
        self._links = links
        self._rule = rule
        self._start = start
        self._read = read
        self._unasked = list(links)
        self._waiting: dict[Link, Any] = {}
        self._overdue: set[Link] = set()
        self._replies: SimpleQueue[tuple[Link, Any]] = SimpleQueue()
        self._votes: dict[Hashable, dict[str, Statement[T]]] = {}
        self._last: dict[Link, Statement[T]] = {}
        self._failed: dict[Link, grpc.RpcError] = {}
        self._untrue: dict[Link, str] = {}
        self._began = time.monotonic()
        self._enough_since: float | None = None
        self._turn = 0

    def decide(self) -> dict[str, Statement[T]]:
        """Return what enough organisations say alike, by organisation; Undecided if they do not in time."""
        try:
            while True:
                self._top_up()
                if self._overdue.issuperset(self._waiting) and not self._begin_again() and not self._waiting:
                    raise self._undecided()
                self._hear()
                key = self._chosen()
                if key is not None:
                    self._blame_others(key)
                    return self._votes[key]
        finally:
            for future in self._waiting.values():
                future.cancel()

    def _ask(self, link: Link) -> None:
        future = self._start(link)
        self._waiting[link] = future
        future.add_done_callback(lambda done: self._replies.put((link, done)))

    def _top_up(self) -> None:
        """Ask so many peers that those who say the same and those still expected to answer are enough."""
        while self._unasked and not self._promising():
            self._ask(self._unasked.pop(0))

    def _promising(self) -> bool:
        fresh = {link.peer.msp for link in self._waiting if link not in self._overdue}
        if any(msp in self._rule.alone for msp in fresh):
            return True
        best = max(self._votes.values(), key=len, default={})
        return len(best.keys() | fresh) >= self._rule.needed

    def _hear(self) -> None:
        """Take one reply; where there is none for a while, those that are waited for are overdue."""
        try:
            # A peer that never answers ends with its own deadline.
            link, done = self._replies.get(timeout=self._hedge())
        except Empty:
            self._overdue.update(self._waiting)
            return
        self._waiting.pop(link, None)
        self._overdue.discard(link)
        error = None if done.code() is grpc.StatusCode.OK else done
        try:
            found = self._read(link, None if error else done.result(), error)
        except Untrue as lie:
            self._untrue[link] = str(lie)
            return
        if found is None:
            self._failed[link] = done
            return
        link.answered()
        self._failed.pop(link, None)
        self._last[link] = found
        votes = self._votes.setdefault(found.key, {})
        votes.update(dict.fromkeys(found.by or (link.peer.msp,), found))

    def _hedge(self) -> float | None:
        if not self._overdue.issuperset(self._waiting):
            return HEDGE_SECONDS
        return None if self._enough_since is None else max(self._held_back, 0)

    @property
    def _held_back(self) -> float:
        """How much longer the own peer's silence holds back what enough others say."""
        since = time.monotonic() if self._enough_since is None else self._enough_since
        return since + self._rule.own_wait - time.monotonic()

    @property
    def _elapsed(self) -> float:
        return time.monotonic() - self._began

    def _chosen(self) -> Hashable | None:
        """Choose what enough organisations say, the own among them if it can be had."""
        rule = self._rule
        enough = [
            key
            for key, votes in self._votes.items()
            if len(votes) >= min(statement.needed or rule.needed for statement in votes.values())
            or any(msp in rule.alone for msp in votes)
        ]
        with_own = [key for key in enough if rule.own in self._votes[key]]
        if with_own or not enough:
            return with_own[-1] if with_own else None
        if self._enough_since is None:
            self._enough_since = time.monotonic()
        if any(link.peer.msp == rule.own for link in self._last) and self._elapsed < rule.own_lag:
            return None
        waits = any(link.peer.msp == rule.own for link in self._waiting)
        if waits and self._held_back > 0:
            return None
        return enough[-1]

    def _begin_again(self) -> bool:
        """Ask once more, unless the time for that is over or it would change nothing."""
        disagreeing = list(self._last) if self._contradictory() else []
        links = list(self._failed) if self._rule.insist else disagreeing
        if not links or self._elapsed > self._rule.patience:
            return False
        time.sleep(PAUSES[min(self._turn, len(PAUSES) - 1)])
        self._turn += 1
        for link in links:
            self._failed.pop(link, None)
            self._ask(link)
        return True

    def _contradictory(self) -> bool:
        return len({statement.key for statement in self._last.values()}) > 1

    def _blame_others(self, chosen: Hashable) -> None:
        """Say of whom the answer is not, though they were asked."""
        for link in self._overdue:
            # Who insists waits for what has to happen first, which may take its time.
            if not self._rule.insist or self._held_back <= 0:
                link.blame(f"no answer within {HEDGE_SECONDS:g} s")
        for link, why in self._untrue.items():
            link.blame(why)
        for link, error in self._failed.items():
            link.blame(link.said(error)[0].message[:200])
        voters = self._votes[chosen]
        for link, statement in self._last.items():
            # Until then it may only be a block behind.
            if link.peer.msp not in voters and self._elapsed >= self._rule.own_lag:
                link.blame(f"it contradicts {', '.join(voters)}: {statement.words}")

    def _undecided(self) -> Undecided:
        said = [
            PeerDetail(link.peer.address, link.peer.msp, self._last[link].words)
            for link in self._links
            if link in self._last
        ]
        untrue = [
            PeerDetail(link.peer.address, link.peer.msp, f"untrue: {self._untrue[link]}")
            for link in self._links
            if link in self._untrue
        ]
        failed = [(link, self._failed[link]) for link in self._links if link in self._failed]
        return Undecided(said, untrue, failed, self._contradictory())
