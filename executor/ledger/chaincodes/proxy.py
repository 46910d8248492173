"""What the proxies share: typed arguments out, parsed JSON back, pages followed to their end."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from executor.ledger.errors import PhaseError
from executor.ledger.transport import Argument, Receipt, Transport

PAGE = 100
Value = str | int | list[str] | Mapping[str, Any] | object


@dataclass(frozen=True, slots=True)
class Submitted:
    """A transaction that is on the ledger, with the chaincode's answer as it parses."""

    receipt: Receipt
    answer: dict[str, Any]


class Proxy:
    """One chaincode, through any transport."""

    chaincode: ClassVar[str]

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def metadata(self) -> dict[str, Any]:
        """List the contract's functions with their arguments."""
        return self._evaluate("metadata")

    def _evaluate(self, function: str, *values: Value) -> dict[str, Any]:
        raw = self.transport.evaluate(self.chaincode, function, *map(argument, values))
        return self._parsed(function, raw)

    def _submit(
        self, function: str, *values: Value, transient: Mapping[str, bytes] | None = None
    ) -> Submitted:
        receipt = self.transport.submit(self.chaincode, function, *map(argument, values), transient=transient)
        return Submitted(receipt, self._parsed(function, receipt.answer))

    def _pages(self, function: str, *values: Value, items: str = "items") -> Iterator[dict[str, Any]]:
        """Yield the pages of a list; an empty bookmark ends it, not a short page."""
        bookmark = ""
        while True:
            page = self._evaluate(function, *values, PAGE, bookmark)
            if not isinstance(page.get(items), list) or not isinstance(page.get("bookmark"), str):
                raise self._odd(function, "a page has a list and a bookmark")
            yield page
            bookmark = page["bookmark"]
            if not bookmark:
                return

    def _items(self, function: str, *values: Value) -> Iterator[dict[str, Any]]:
        for page in self._pages(function, *values):
            yield from page["items"]

    def _parsed(self, function: str, raw: bytes) -> dict[str, Any]:
        try:
            answer = json.loads(raw)
        except (ValueError, RecursionError) as error:
            raise self._odd(function, str(error)) from error
        if not isinstance(answer, dict):
            raise self._odd(function, "it is no object")
        return answer

    def _odd(self, function: str, why: str) -> PhaseError:
        return PhaseError("LEDGER_ANSWER", f"{self.chaincode} {function} answered in no known form: {why}")


def argument(value: Value) -> Argument:
    """Write an argument as contracts read it: text as it is, lists and objects as JSON, the rest printed."""
    if isinstance(value, list | dict):
        return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    return str(value)
