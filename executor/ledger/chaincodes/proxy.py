"""What the proxies share: typed arguments out, records of the ledger back, pages followed to their end.

What decides which code runs, on which terms, or what is believed afterwards is read with `_agreed` and
`_agreed_items`: enough organisations have to answer alike. `_evaluate`, `_items` and `_history` are for
information, on the word of the caller's own peer.
"""

import json
from collections.abc import Callable, Container, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from executor.ledger.errors import PhaseError
from executor.ledger.transport import Argument, Receipt, Transport
from protocol.errors import DataError
from protocol.ledger.common import MAX_PAGE, History, HistoryEntry, Page
from protocol.ledger.record import LedgerRecord
from protocol.values import dataclass

PAGE = 100
MOST_PAGES = 10_000
"""More than any list has; a peer that always has another page is not followed for ever."""
Evaluate = Callable[..., bytes]
Value = str | int | list[str] | Mapping[str, Any] | object

T = TypeVar("T")
R = TypeVar("R", bound=LedgerRecord)
A_co = TypeVar("A_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Submitted(Generic[A_co]):
    """A transaction that is on the ledger, with the chaincode's answer."""

    receipt: Receipt
    answer: A_co


class Proxy:
    """One chaincode, through any transport."""

    chaincode: ClassVar[str]

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def metadata(self) -> dict[str, Any]:
        """List the contract's functions with their arguments."""
        return self._ask(self.transport.evaluate, "metadata", (), _object)

    def _evaluate(self, kind: type[R], function: str, *values: Value) -> R:
        """Read for information."""
        return self._ask(self.transport.evaluate, function, values, kind.from_dict)

    def _agreed(self, kind: type[R], function: str, *values: Value) -> R:
        """Read what decides something."""
        return self._ask(self.transport.evaluate_agreed, function, values, kind.from_dict)

    def _submit(
        self,
        kind: type[R],
        function: str,
        *values: Value,
        transient: Mapping[str, bytes] | None = None,
        audience: Container[str] | None = None,
    ) -> Submitted[R]:
        receipt = self.transport.submit(
            self.chaincode, function, *map(argument, values), transient=transient, audience=audience
        )
        return Submitted(receipt, self._read(function, receipt.answer, kind.from_dict, receipt.tx_id))

    def _items(self, kind: type[R], function: str, *values: Value) -> Iterator[R]:
        """Iterate over a list, for information."""
        return self._listed(self.transport.evaluate, kind, function, values)

    def _agreed_items(self, kind: type[R], function: str, *values: Value) -> Iterator[R]:
        """Iterate over a list that decides something."""
        return self._listed(self.transport.evaluate_agreed, kind, function, values)

    def _history(self, kind: type[R], function: str, *values: Value) -> Iterator[HistoryEntry[R]]:
        """Iterate over the changes of a record, newest first."""

        def ask(bookmark: str) -> History[R]:
            # The ledger reads what a page skips, too: a whole history costs least in the largest pages.
            arguments = (*values, MAX_PAGE, bookmark)
            return self._ask(
                self.transport.evaluate,
                function,
                arguments,
                lambda found: History.from_dict(found, kind.from_dict),
            )

        for page in self._pages(function, ask, lambda page: page.bookmark):
            yield from page.items

    def _listed(
        self, evaluate: Evaluate, kind: type[R], function: str, values: tuple[Value, ...]
    ) -> Iterator[R]:
        def ask(bookmark: str) -> Page[R]:
            arguments = (*values, PAGE, bookmark)
            return self._ask(
                evaluate, function, arguments, lambda found: Page.from_dict(found, kind.from_dict)
            )

        for page in self._pages(function, ask, lambda page: page.bookmark):
            yield from page.items

    def _pages(self, function: str, ask: Callable[[str], T], bookmark_of: Callable[[T], str]) -> Iterator[T]:
        """Follow bookmarks: an empty one ends a list, not a short page; one that repeats is refused."""
        seen: set[str] = set()
        bookmark = ""
        while len(seen) < MOST_PAGES:
            page = ask(bookmark)
            yield page
            bookmark = bookmark_of(page)
            if not bookmark:
                return
            if bookmark in seen:
                raise self._odd(function, "a bookmark leads back to a page that was read before")
            seen.add(bookmark)
        raise self._odd(function, f"it has more than {MOST_PAGES} pages")

    def _ask(
        self, evaluate: Evaluate, function: str, values: tuple[Value, ...], read: Callable[[Any], T]
    ) -> T:
        return self._read(function, evaluate(self.chaincode, function, *map(argument, values)), read)

    def _read(self, function: str, raw: bytes, read: Callable[[Any], T], tx_id: str = "") -> T:
        try:
            return read(json.loads(raw))
        except (ValueError, TypeError, RecursionError) as error:
            raise self._odd(function, str(error), tx_id) from error
        except DataError as error:
            raise self._odd(function, error.cause, tx_id) from error

    def _odd(self, function: str, why: str, tx_id: str = "") -> PhaseError:
        """Make the error of an answer of no known form; after a submission it has the transaction's id."""
        cause = f"{self.chaincode} {function} answered in no known form: {why}"
        return PhaseError("LEDGER_ANSWER", cause, "commit" if tx_id else "evaluate", tx_id)


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    return found


def argument(value: Value) -> Argument:
    """Write an argument as contracts read it: text as it is, lists, objects and flags as JSON."""
    if isinstance(value, list | dict | bool):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    return str(value)
