"""A record of the ledger as a value: its class says which fields it has, of which type, and what they mean.

A subclass is a frozen dataclass whose annotations are `Annotated[type, "meaning"]`. From them the record is
read (every field there, of its type, and no other), written, and described in docs/ledger.md, so that the
three cannot part. Types are text, whole numbers, truth values, `Digest`, `EstimatorId`, `VerifyKey`, enums,
other records and whatever else has `from_dict` and `to_dict`; `X | None`, `tuple[X, ...]` and `dict[str, X]`
of them; and `Raw` for an object that somebody else reads.
"""

import types
from collections.abc import Callable, Iterator
from dataclasses import fields
from enum import StrEnum
from typing import (
    Annotated,
    Any,
    ClassVar,
    NamedTuple,
    Self,
    TypeAlias,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.fields import Fields
from protocol.identifiers import EstimatorId
from protocol.signing import VerifyKey

VERSION = 1
"""The version that every stored record carries."""

SMALL = 32 << 10
"""What a record may have whose fields are few and short."""

Raw: TypeAlias = dict[str, Any]
"""An object as it is, for the reader it is meant for."""


class _Absent:
    """Marks a field that is left out of the record where a value would be null."""


ABSENT = _Absent()


class Description(NamedTuple):
    """One field of a record in words."""

    name: str
    type: str
    meaning: str


class _Codec(NamedTuple):
    read: Callable[[Any], Any]
    write: Callable[[Any], Any]
    text: str
    record: "type[LedgerRecord] | None" = None
    plain: type | None = None
    """The type whose values are read and written as they are."""


class _Field(NamedTuple):
    name: str
    codec: _Codec
    meaning: str
    absent: bool


class _Layout(NamedTuple):
    """What is known of a class of records, found out once: a page has thousands of them."""

    fields: tuple[_Field, ...]
    readers: tuple[tuple[str, type | None, _Field], ...]
    """The fields, each with its name and the type whose values are read as they are."""
    needed: frozenset[str]
    optional: frozenset[str]


class LedgerRecord:
    """What a chaincode stores or answers."""

    __slots__ = ()
    versioned: ClassVar[bool] = False
    """Whether the record has the field `version`, as all have that stand under a key."""
    max_bytes: ClassVar[int] = 960 << 10
    """What it may have where it is stored. Peers send many in one message, of a history a hundred."""

    @classmethod
    def from_dict(cls, record: Any) -> Self:
        """Accept an object with exactly the fields of this record, each of its type."""
        layout = _LAYOUTS.get(cls) or _layout(cls)
        if type(record) is not dict or record.keys() != layout.needed:
            Fields(record, cls.__name__, layout.needed, layout.optional)
        if cls.versioned and (type(record["version"]) is not int or record["version"] != VERSION):
            Fields(record, cls.__name__, layout.needed, layout.optional).version(VERSION)
        values = []
        for name, plain, field in layout.readers:
            value = record.get(name)
            # Most fields are text, which costs no call.
            values.append(value if type(value) is plain else _read(cls, field, value))
        return cls(*values)

    def to_dict(self) -> dict[str, Any]:
        """Return the object as it is stored and sent."""
        record: dict[str, Any] = {"version": VERSION} if self.versioned else {}
        for field in _layout(type(self)).fields:
            value = getattr(self, field.name)
            if value is not None or not field.absent:
                record[field.name] = field.codec.write(value)
        return record

    @classmethod
    def describe(cls) -> list[Description]:
        """Return the fields in words, in the order of the class."""
        version = [Description("version", "whole number", f"{VERSION}, the version of this record")]
        return (version if cls.versioned else []) + [
            Description(
                field.name, field.codec.text + (", may be absent" if field.absent else ""), field.meaning
            )
            for field in _layout(cls).fields
        ]

    @classmethod
    def parts(cls) -> "list[type[LedgerRecord]]":
        """Return the records that fields of this one hold, in the order of the class."""
        return [field.codec.record for field in _layout(cls).fields if field.codec.record is not None]


def _read(cls: type, field: _Field, value: Any) -> Any:
    if value is None and field.absent:
        return None
    try:
        return field.codec.read(value)
    except _WrongTypeError:
        raise RecordError("RECORD_VALUE", f"{cls.__name__}: {field.name} is not {field.codec.text}") from None


class _WrongTypeError(Exception):
    """A value is not of the type that its field has."""


_LAYOUTS: dict[type, _Layout] = {}


def _layout(cls: type[LedgerRecord]) -> _Layout:
    if cls not in _LAYOUTS:
        found = tuple(_fields_of(cls))
        optional = frozenset(field.name for field in found if field.absent)
        needed = {field.name for field in found} - optional
        if cls.versioned:
            needed.add("version")
        readers = tuple((field.name, field.codec.plain, field) for field in found)
        _LAYOUTS[cls] = _Layout(found, readers, frozenset(needed), optional)
    return _LAYOUTS[cls]


def _fields_of(cls: type[LedgerRecord]) -> Iterator[_Field]:
    hints = get_type_hints(cls, include_extras=True)
    for field in fields(cls):  # type: ignore[arg-type]
        hint = hints[field.name]
        if get_origin(hint) is not Annotated:
            raise TypeError(f"{cls.__name__}.{field.name} says nothing of its meaning")
        kind, meaning, *marks = get_args(hint)
        yield _Field(field.name, _codec_of(kind), meaning, ABSENT in marks)


def _codec_of(kind: Any) -> _Codec:
    origin, arguments = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return _optional(_codec_of(next(part for part in arguments if part is not types.NoneType)))
    if origin is tuple:
        return _list_of(_codec_of(arguments[0]))
    if origin is dict:
        return _object_of(_codec_of(arguments[1]))
    return _PLAIN.get(kind) or _composed(kind)


def _composed(kind: Any) -> _Codec:
    if issubclass(kind, StrEnum):
        return _enumeration(kind)
    record = kind if issubclass(kind, LedgerRecord) else None
    return _Codec(kind.from_dict, lambda value: value.to_dict(), kind.__name__, record)


def _exactly(kind: type) -> Callable[[Any], Any]:
    def read(value: Any) -> Any:
        if type(value) is not kind:
            raise _WrongTypeError
        return value

    return read


def _same(value: Any) -> Any:
    return value


def _optional(inner: _Codec) -> _Codec:
    return _Codec(
        lambda value: None if value is None else inner.read(value),
        lambda value: None if value is None else inner.write(value),
        f"{inner.text} or null",
        inner.record,
    )


def _list_of(inner: _Codec) -> _Codec:
    check = _exactly(list)
    return _Codec(
        lambda value: tuple(map(inner.read, check(value))),
        lambda value: list(map(inner.write, value)),
        f"list of {inner.text}",
        inner.record,
    )


def _object_of(inner: _Codec) -> _Codec:
    check = _exactly(dict)
    return _Codec(
        lambda value: {name: inner.read(item) for name, item in check(value).items()},
        lambda value: {name: inner.write(item) for name, item in value.items()},
        f"object of {inner.text} by name",
        inner.record,
    )


def _enumeration(kind: type[StrEnum]) -> _Codec:
    members = {member.value: member for member in kind}

    def read(value: Any) -> StrEnum:
        try:
            return members[value]
        except (KeyError, TypeError):
            raise _WrongTypeError from None

    return _Codec(read, lambda value: value.value, ", ".join(f"`{member.value}`" for member in kind))


_PLAIN: dict[Any, _Codec] = {
    str: _Codec(_exactly(str), _same, "text", plain=str),
    int: _Codec(_exactly(int), _same, "whole number", plain=int),
    bool: _Codec(_exactly(bool), _same, "true or false", plain=bool),
    Digest: _Codec(Digest.parse, str, "digest"),
    EstimatorId: _Codec(EstimatorId.parse, str, "estimator id"),
    VerifyKey: _Codec(VerifyKey.parse, str, "public key"),
    Any: _Codec(_same, _same, "value"),
}
