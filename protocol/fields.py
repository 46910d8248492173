"""Reading the fields of a record: each of one type, within its range, or refused by name."""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from protocol import canonical
from protocol.canonical import MAX_BYTES
from protocol.digest import Digest
from protocol.errors import AttestreeError, DataError, EncodingError, ProcessError, RecordError
from protocol.identifiers import EstimatorId, check_counter, parse_node, parse_organisation, parse_process

MAX_TEXT = 1000


class Fields:
    """The fields of one record of a known kind: all that it needs, and no others."""

    error: ClassVar[type[DataError]] = RecordError
    family: ClassVar[str] = "RECORD"

    def __init__(self, record: Any, what: str, needed: Iterable[str], optional: Iterable[str] = ()) -> None:
        self._what = what
        if type(record) is not dict and not isinstance(record, Mapping):
            raise self._refusal("FIELDS", f"{what} is not an object")
        self._record: Mapping[str, Any] = record
        wanted = needed if isinstance(needed, frozenset) else frozenset(needed)
        if record.keys() == wanted:
            return
        missing = sorted(wanted - record.keys())
        if missing:
            raise self._refusal("FIELDS", f"{what} lacks {', '.join(missing)}")
        unknown = sorted(map(str, record.keys() - wanted - {*optional}))
        if unknown:
            raise self._refusal("FIELDS", f"{what} has the unknown field {unknown[0][:40]!r}")

    def __getitem__(self, name: str) -> Any:
        """Return a field as it is, for a reader of its own kind."""
        return self._record[name]

    def __contains__(self, name: str) -> bool:
        """Whether an optional field is there."""
        return name in self._record

    def get(self, name: str, default: Any) -> Any:
        """Return an optional field as it is, or what holds without it."""
        return self._record.get(name, default)

    def version(self, expected: int = 1) -> None:
        """Return if the record is of the version this code reads."""
        found = self._record["version"]
        if type(found) is not int or found != expected:
            raise self._refusal("VALUE", f"{self._what} is of version {str(found)[:20]}, not {expected}")

    def whole(self, name: str, lowest: int, highest: int, default: int | None = None) -> int:
        """Read a whole number within its range."""
        value = self._record.get(name, default)
        if type(value) is not int or not lowest <= value <= highest:
            raise self._value(name, f"{str(value)[:40]} is not a whole number from {lowest} to {highest}")
        return value

    def count(self, name: str) -> int:
        """Read a whole number of 32 bits."""
        return check_counter(self._record[name], f"{self._what}: {name}")

    def optional_count(self, name: str) -> int | None:
        """Read a whole number of 32 bits, or null."""
        return None if self._record[name] is None else self.count(name)

    def flag(self, name: str, default: bool | None = None) -> bool:
        """Read true or false."""
        value = self._record.get(name, default)
        if type(value) is not bool:
            raise self._value(name, "is neither true nor false")
        return value

    def text(self, name: str, longest: int = MAX_TEXT, default: str | None = None) -> str:
        """Read text for people."""
        found = self._record.get(name, default)
        if type(found) is not str or len(found) > longest:
            raise self._value(name, f"is not text of at most {longest} characters")
        return found

    def texts(self, names: Iterable[str]) -> list[str]:
        """Read several texts for people."""
        found = [self._record[name] for name in names]
        for name, text in zip(names, found, strict=True):
            if type(text) is not str or len(text) > MAX_TEXT:
                self.text(name)
        return found

    def digest(self, name: str) -> Digest:
        """Read a SHA-256."""
        return Digest.parse(self._record[name])

    def optional_digest(self, name: str) -> Digest | None:
        """Read a SHA-256, or null where there is nothing to hash."""
        return None if self._record[name] is None else self.digest(name)

    def digests(self, name: str, most: int) -> tuple[Digest, ...]:
        """Read a list of at most so many digests."""
        return tuple(Digest.parse(item) for item in self.items(name, most))

    def process(self, name: str = "process") -> str:
        """Read a process id."""
        return parse_process(self._record[name])

    def node(self, name: str = "node") -> str:
        """Read a node's name."""
        return parse_node(self._record[name])

    def organisation(self, name: str = "organisation") -> str:
        """Read an MSP id."""
        return parse_organisation(self._record[name])

    def ids(self, name: str, most: int) -> tuple[EstimatorId, ...]:
        """Read a list of at most so many different estimator ids."""
        texts = self.items(name, most)
        ids = tuple(map(EstimatorId.parse, texts))
        # An id has one spelling, and texts are compared faster than ids.
        if len(set(texts)) != len(texts):
            raise self._value(name, "lists an estimator twice")
        return ids

    def items(self, name: str, most: int, default: list[Any] | None = None) -> list[Any]:
        """Return a list of at most so many items, which the caller reads one by one."""
        found = self._record.get(name, default)
        if type(found) is not list:
            raise self._value(name, "is not a list")
        if len(found) > most:
            raise self._value(name, f"has {len(found)} entries, more than {most}")
        return found

    def metrics(self, name: str, most: int) -> dict[str, canonical.Record]:
        """Read figures by name: whole numbers, and fractional ones as their one text."""
        found = self._record[name]
        if not isinstance(found, Mapping) or len(found) > most:
            raise self._value(name, f"is not an object of at most {most} figures")
        for key, value in found.items():
            self._check_metric(name, key, value)
        return dict(found)

    def canonical(self, value: Any, name: str, max_bytes: int = MAX_BYTES) -> bytes:
        """Return the one spelling of a value, or refuse a value that has none."""
        try:
            return canonical.encode(value, max_bytes=max_bytes)
        except EncodingError as error:
            raise self._value(name, error.cause) from error

    def _check_metric(self, name: str, key: Any, value: Any) -> None:
        try:
            parse_node(key)
            if type(value) is not int:
                canonical.parse_float(value)
        except AttestreeError as error:
            raise self._value(name, f"{str(key)[:40]!r}: {error.cause}") from error
        if type(value) is int and abs(value) > canonical.MAX_INTEGER:
            raise self._value(name, f"{key} is beyond 2**53-1")

    def _value(self, name: str, problem: str) -> DataError:
        return self._refusal("VALUE", f"{self._what}: {name} {problem}")

    def _refusal(self, kind: str, cause: str) -> DataError:
        return self.error(f"{self.family}_{kind}", cause)


class AgreementFields(Fields):
    """The fields of a record that a consortium agrees on: what is wrong with it is wrong with the process."""

    error = ProcessError
    family = "PROCESS"

    def text(self, name: str, longest: int = MAX_TEXT, default: str | None = None) -> str:
        """Read text for people, which has a canonical form: it is hashed with the rest."""
        found = super().text(name, longest, default)
        self.canonical(found, name)
        return found
