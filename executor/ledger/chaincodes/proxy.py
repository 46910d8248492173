"""What the proxies share: typed arguments out, records of the ledger back, pages followed to their end."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, TypeVar

from executor.ledger.errors import PhaseError
from executor.ledger.transport import Argument, Receipt, Transport
from protocol.errors import DataError
from protocol.ledger.common import History, HistoryEntry, Page
from protocol.ledger.record import LedgerRecord

PAGE = 100
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
        return self._ask("metadata", (), _object)

    def _evaluate(self, kind: type[R], function: str, *values: Value) -> R:
        return self._ask(function, values, kind.from_dict)

    def _submit(
        self, kind: type[R], function: str, *values: Value, transient: Mapping[str, bytes] | None = None
    ) -> Submitted[R]:
        receipt = self.transport.submit(self.chaincode, function, *map(argument, values), transient=transient)
        return Submitted(receipt, self._read(function, receipt.answer, kind.from_dict))

    def _items(self, kind: type[R], function: str, *values: Value) -> Iterator[R]:
        """Iterate over a list; an empty bookmark ends it, not a short page."""
        bookmark = None
        while bookmark != "":
            page: Page[R] = self._ask(
                function, (*values, PAGE, bookmark or ""), lambda found: Page.from_dict(found, kind.from_dict)
            )
            yield from page.items
            bookmark = page.bookmark

    def _history(self, kind: type[R], function: str, *values: Value) -> Iterator[HistoryEntry[R]]:
        """Iterate over the changes of a record, newest first."""
        bookmark = None
        while bookmark != "":
            page: History[R] = self._ask(
                function,
                (*values, PAGE, bookmark or ""),
                lambda found: History.from_dict(found, kind.from_dict),
            )
            yield from page.items
            bookmark = page.bookmark

    def _ask(self, function: str, values: tuple[Value, ...], read: Callable[[Any], T]) -> T:
        raw = self.transport.evaluate(self.chaincode, function, *map(argument, values))
        return self._read(function, raw, read)

    def _read(self, function: str, raw: bytes, read: Callable[[Any], T]) -> T:
        try:
            return read(json.loads(raw))
        except (ValueError, TypeError, RecursionError) as error:
            raise self._odd(function, str(error)) from error
        except DataError as error:
            raise self._odd(function, error.cause) from error

    def _odd(self, function: str, why: str) -> PhaseError:
        return PhaseError("LEDGER_ANSWER", f"{self.chaincode} {function} answered in no known form: {why}")


def _object(found: Any) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise ValueError("it is not an object")
    return found


def argument(value: Value) -> Argument:
    """Write an argument as contracts read it: text as it is, lists and objects as JSON, the rest printed."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    return str(value)
