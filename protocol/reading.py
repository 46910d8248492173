"""Reading the fields of a specification: each of one type, within its range, or refused by name."""

from collections.abc import Mapping, Set
from typing import Any

from protocol import canonical
from protocol.errors import EncodingError, ProcessError

MAX_TEXT = 1000


def exactly(record: object, where: str, needed: Set[str], optional: Set[str] = frozenset()) -> dict[str, Any]:
    """Return the record if it is an object with these fields and no others."""
    if not isinstance(record, dict):
        raise ProcessError("PROCESS_FIELDS", f"{where} is not an object")
    missing = sorted(needed - record.keys())
    if missing:
        raise ProcessError("PROCESS_FIELDS", f"{where} lacks {', '.join(missing)}")
    unknown = sorted(map(str, record.keys() - needed - optional))
    if unknown:
        raise ProcessError("PROCESS_FIELDS", f"{where} has the unknown field {unknown[0][:40]!r}")
    return record


def whole(record: Mapping[str, Any], name: str, lowest: int, highest: int) -> int:
    """Return a field that is a whole number within its range."""
    value = record[name]
    if type(value) is not int or not lowest <= value <= highest:
        raise ProcessError(
            "PROCESS_VALUE", f"{name} {str(value)[:40]} is not a whole number from {lowest} to {highest}"
        )
    return value


def flag(record: Mapping[str, Any], name: str) -> bool:
    """Return a field that is true or false."""
    value = record[name]
    if type(value) is not bool:
        raise ProcessError("PROCESS_VALUE", f"{name} is neither true nor false")
    return value


def text(record: Mapping[str, Any], name: str) -> str:
    """Return a field that is free text."""
    value = record[name]
    if type(value) is not str or len(value) > MAX_TEXT:
        raise ProcessError("PROCESS_VALUE", f"{name} is not a text of at most {MAX_TEXT} characters")
    canonical_form(value, name)
    return value


def items(record: Mapping[str, Any], name: str, most: int) -> list[Any]:
    """Return a field that is a list of bounded length."""
    value = record[name]
    if type(value) is not list or len(value) > most:
        raise ProcessError("PROCESS_VALUE", f"{name} is not a list of at most {most}")
    return value


def canonical_form(value: Any, name: str, max_bytes: int = canonical.MAX_BYTES) -> bytes:
    """Return the one spelling of a value, or refuse a value that has none."""
    try:
        return canonical.encode(value, max_bytes=max_bytes)
    except EncodingError as error:
        raise ProcessError("PROCESS_VALUE", f"{name}: {error.cause}") from error
