"""Reads the fields of a record that another party wrote, each into its value or into a refusal."""

from collections.abc import Iterable, Mapping
from typing import Any

from protocol import canonical
from protocol.digest import Digest
from protocol.errors import AttestreeError, RecordError
from protocol.identifiers import EstimatorId, check_counter, parse_node, parse_organisation, parse_process

MAX_TEXT = 1000


class Fields:
    """The fields of one record of a known kind, which has exactly the names it should have."""

    def __init__(self, record: Any, what: str, names: Iterable[str]) -> None:
        wanted = sorted(names)
        if not isinstance(record, Mapping) or sorted(record) != wanted:
            raise RecordError("RECORD_FIELDS", f"{what} has the fields {', '.join(wanted)}")
        self._record, self._what = record, what

    def digest(self, name: str) -> Digest:
        """Read a SHA-256."""
        return Digest.parse(self._record[name])

    def optional_digest(self, name: str) -> Digest | None:
        """Read a SHA-256, or null where there is nothing to hash."""
        return None if self._record[name] is None else self.digest(name)

    def digests(self, name: str, most: int) -> tuple[Digest, ...]:
        """Read a list of at most so many digests."""
        return tuple(Digest.parse(item) for item in self._list(name, most))

    def count(self, name: str) -> int:
        """Read a whole number of 32 bits."""
        return check_counter(self._record[name], f"{self._what}: {name}")

    def version(self, expected: int = 1) -> None:
        """Return if the record is of the version this code reads."""
        found = self._record["version"]
        if type(found) is not int or found != expected:
            raise RecordError("RECORD_VALUE", f"{self._what} is of version {str(found)[:20]}, not {expected}")

    def process(self, name: str = "process") -> str:
        """Read a process id."""
        return parse_process(self._record[name])

    def node(self, name: str = "node") -> str:
        """Read a node's name."""
        return parse_node(self._record[name])

    def organisation(self, name: str = "organisation") -> str:
        """Read an MSP id."""
        return parse_organisation(self._record[name])

    def text(self, name: str, longest: int = MAX_TEXT) -> str:
        """Read text for people."""
        found = self._record[name]
        if type(found) is not str or len(found) > longest:
            raise RecordError(
                "RECORD_VALUE", f"{self._what}: {name} is not text of at most {longest} characters"
            )
        return found

    def ids(self, name: str, most: int) -> tuple[EstimatorId, ...]:
        """Read a list of at most so many different estimator ids."""
        ids = tuple(EstimatorId.parse(item) for item in self._list(name, most))
        if len(set(ids)) != len(ids):
            raise RecordError("RECORD_VALUE", f"{self._what}: {name} lists an estimator twice")
        return ids

    def records(self, name: str, most: int) -> list[Any]:
        """Return a list of at most so many records, which the caller reads one by one."""
        return self._list(name, most)

    def metrics(self, name: str, most: int) -> dict[str, canonical.Record]:
        """Read figures by name: whole numbers, and fractional ones as their one text."""
        found = self._record[name]
        if not isinstance(found, Mapping) or len(found) > most:
            raise RecordError(
                "RECORD_VALUE", f"{self._what}: {name} is not an object of at most {most} figures"
            )
        for key, value in found.items():
            _check_metric(f"{self._what}: {name}", key, value)
        return dict(found)

    def _list(self, name: str, most: int) -> list[Any]:
        found = self._record[name]
        if type(found) is not list:
            raise RecordError("RECORD_VALUE", f"{self._what}: {name} is not a list")
        if len(found) > most:
            raise RecordError(
                "RECORD_VALUE", f"{self._what}: {name} has {len(found)} entries, more than {most}"
            )
        return found


def _check_metric(what: str, name: str, value: Any) -> None:
    try:
        parse_node(name)
        if type(value) is not int:
            canonical.parse_float(value)
    except AttestreeError as error:
        raise RecordError("RECORD_VALUE", f"{what}: {str(name)[:40]!r}: {error.cause}") from error
    if type(value) is int and abs(value) > canonical.MAX_INTEGER:
        raise RecordError("RECORD_VALUE", f"{what}: {name} is beyond 2**53-1")
