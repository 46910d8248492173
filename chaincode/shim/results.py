"""Results of range and history queries, fetched from the peer part by part as they are read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Generic, TypeVar

from . import wire
from .errors import MisuseError
from .transaction import Transaction

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeyValue:
    """One result of a range query."""

    key: str
    value: bytes


class Results(Generic[T]):
    """An iterator over a query's results that can be left early.

    Leaving a `with` block or calling `close` frees the peer's iterator at once; otherwise the peer frees it
    when the transaction ends.
    """

    def __init__(self, transaction: Transaction, answer: bytes, decode: Callable[[bytes], T]) -> None:
        self._transaction = transaction
        self._decode = decode
        self._closed = False
        self._load(answer)

    def __iter__(self) -> Iterator[T]:
        return self

    def __next__(self) -> T:
        if not self._at_hand():
            raise StopIteration
        result = self._part.results[self._position]
        self._position += 1
        return self._decode(result.resultBytes)

    def skip(self, count: int) -> None:
        """Leave out so many results, or all there are: the peer has to send them, but nobody reads them."""
        while count > 0 and (found := self._at_hand()):
            step = min(count, found)
            self._position += step
            count -= step

    @property
    def has_more(self) -> bool:
        """Whether there are results left, as far as the peer has said: nothing is asked for."""
        return self._position < len(self._part.results) or self._part.has_more

    def close(self) -> None:
        """Tell the peer that no more is wanted; it needs no telling after the last part."""
        if self._closed:
            return
        self._closed = True
        if self._part.has_more:
            request = wire.shim.QueryStateClose(id=self._part.id)
            self._transaction.call(wire.Message.QUERY_STATE_CLOSE, request.SerializeToString())

    def __enter__(self) -> "Results[T]":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None:
            self.close()

    @property
    def bookmark(self) -> str:
        """Where the next page begins; empty after the last page and for queries without pages."""
        return str(wire.parse(wire.shim.QueryResponseMetadata, self._part.metadata).bookmark)

    def _at_hand(self) -> int:
        """Return how many results of a part are left, of the next part if none are; 0 at the end."""
        if self._closed:
            raise MisuseError("the results are closed")
        while self._position == len(self._part.results) and self._part.has_more:
            request = wire.shim.QueryStateNext(id=self._part.id)
            self._load(self._transaction.call(wire.Message.QUERY_STATE_NEXT, request.SerializeToString()))
        return len(self._part.results) - self._position

    def _load(self, answer: bytes) -> None:
        self._part: Any = wire.parse(wire.shim.QueryResponse, answer)
        self._position = 0


def key_value(raw: bytes) -> KeyValue:
    """Read one result of a range."""
    found = wire.parse(wire.queryresult.KV, raw)
    return KeyValue(found.key, found.value)
