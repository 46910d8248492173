"""One encoder, one decoder and one digest for every record (docs/formats/records-v1.md).

Records are a subset of JSON with exactly one spelling: keys sorted by code point, no white space, UTF-8 in
Unicode form NFC, whole numbers that every language holds exactly. Fractional numbers travel as text,
because two programs may print one float in two ways. `decode` accepts what `encode` writes and nothing
else, so what was signed is what is read.
"""

import json
import math
import re
import unicodedata
from collections.abc import Iterable
from typing import Any, TypeAlias

from protocol.digest import Digest
from protocol.errors import EncodingError

Record: TypeAlias = bool | int | str | list["Record"] | dict[str, "Record"] | None

MAX_INTEGER = 2**53 - 1
MAX_DEPTH = 16
MAX_BYTES = 1 << 20

# Text without an end is one token too, and nothing is tried twice: hostile quotes must not cost a square.
_TOKEN = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_LONGEST_NUMBER = len(str(-MAX_INTEGER))
_LONG_NUMBER = re.compile(rb"[0-9]{%d}" % len(str(MAX_INTEGER)))
_SHORT = 4096
"""Up to how many bytes whole numbers are looked at one by one: longer records may hold many."""
_PRINTABLE = bytes({*range(0x20, 0x7F)} - {*b"\\"})
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_NO_BRACKETS = bytes({*range(256)} - {*b"[]{}"})
# What is too deep is refused before, so nothing that goes in circles comes to it.
_ENCODER = json.JSONEncoder(
    sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False, check_circular=False
)


def encode(record: Record, *, max_bytes: int = MAX_BYTES) -> bytes:
    """Write a record in its one form, or raise if it has none."""
    _check(record, 1)
    raw = _ENCODER.encode(record).encode()
    if len(raw) > max_bytes:
        raise EncodingError("RECORD_SIZE", f"{len(raw)} bytes are more than {max_bytes}")
    return raw


def decode(raw: bytes, *, max_bytes: int = MAX_BYTES) -> Record:
    """Read a record from its one form and refuse every other byte string."""
    if type(raw) is not bytes:
        raise EncodingError("RECORD_TYPE", f"a record is read from bytes, not {type(raw).__name__}")
    if len(raw) > max_bytes:
        raise EncodingError("RECORD_SIZE", f"{len(raw)} bytes are more than {max_bytes}")
    if len(raw) <= _SHORT:
        short = _decode_short(raw)
        if short is not None:
            return short
    outside = b"" if b"\\" in raw else b"".join(raw.split(b'"')[::2])
    if not outside or not _is_shallow(outside):
        _check_nesting(raw)
    try:
        text = raw.decode()
        if outside and text.isascii() and text.isprintable() and not _LONG_NUMBER.search(outside):
            plain: Record = _PLAIN_DECODER.decode(text)
            # A key that stands twice is written once, so such a record is not written as it was read.
            if _ENCODER.encode(plain) == text:
                return plain
        record: Record = _DECODER.decode(text)
    except UnicodeDecodeError as error:
        raise EncodingError("RECORD_TEXT", f"byte {error.start} is not UTF-8") from error
    except json.JSONDecodeError as error:
        raise EncodingError("RECORD_SYNTAX", f"not a record: {error.msg} at character {error.pos}") from error
    if not _is_plain(text):
        _check(record, 1)
    if _ENCODER.encode(record) != text:
        raise EncodingError("RECORD_NOT_CANONICAL", "another spelling of a record than its canonical one")
    return record


def _decode_short(raw: bytes) -> Record:
    """Read a record whose text is plain and whose brackets are few, which most are; None for any other."""
    if raw.translate(None, _PRINTABLE) or raw.count(b"{") + raw.count(b"[") > MAX_DEPTH:
        return None
    text = raw.decode()
    record: Record
    try:
        record, _ = _SHORT_DECODER.raw_decode(text)
    except (json.JSONDecodeError, EncodingError):
        return None  # `decode` says why
    # A key that stands twice is written once, so such a record is not written as it was read.
    return record if _ENCODER.encode(record) == text else None


def digest(record: Record) -> Digest:
    """Return the SHA-256 of the record's one form."""
    return Digest.of(encode(record))


def float_text(number: float) -> str:
    """Write a finite float as the shortest decimal that reads back as the same float; zero has no sign."""
    if type(number) is not float:
        raise EncodingError("RECORD_TYPE", f"{type(number).__name__} is not a float")
    if not math.isfinite(number):
        raise EncodingError("RECORD_FLOAT", f"{number} is not finite")
    return repr(number + 0.0)


def parse_float(text: str) -> float:
    """Read a float from its one text and refuse every other spelling of it."""
    if type(text) is not str:
        raise EncodingError("RECORD_TYPE", f"a float is written as text, not {type(text).__name__}")
    try:
        number = float(text)
        canonical = float_text(number)
    except (ValueError, EncodingError) as error:
        raise EncodingError("RECORD_FLOAT", f"{text[:40]!r} is not a finite number") from error
    if canonical != text:
        raise EncodingError("RECORD_FLOAT", f"{text[:40]!r} is written {canonical!r}")
    return number


def _check(record: Any, depth: int) -> None:
    kind = type(record)
    if kind is str:
        _check_text(record)
    elif kind is int:
        if not -MAX_INTEGER <= record <= MAX_INTEGER:
            raise EncodingError("RECORD_INTEGER", "a whole number is beyond 2**53-1")
    elif kind is dict or kind is list:
        # Recursion is safe here: the depth limit is far below the interpreter's.
        if depth > MAX_DEPTH:
            raise EncodingError("RECORD_DEPTH", f"nested more than {MAX_DEPTH} deep")
        _check_all(record, depth + 1)
        if kind is dict:
            for key in record:
                if type(key) is not str:
                    raise EncodingError("RECORD_TYPE", f"a key is {type(key).__name__}, not text")
            _check_all(record.values(), depth + 1)
    elif kind is float:
        raise EncodingError("RECORD_FLOAT", "a float is not written as a number")
    elif record is not None and kind is not bool:
        raise EncodingError("RECORD_TYPE", f"a record cannot hold {kind.__name__}")


def _check_all(items: Iterable[Any], depth: int) -> None:
    """Check what an object or a list holds; most of it is plain text, which costs no call."""
    for item in items:
        if not (type(item) is str and item.isascii() and item.isprintable()):
            _check(item, depth)


def _is_plain(text: str) -> bool:
    """Whether no text in the text of a record can hold anything that `_check_text` refuses."""
    return text.isascii() and text.isprintable() and "\\" not in text


def _check_text(text: str) -> None:
    if text.isascii() and text.isprintable():
        return
    if _CONTROL.search(text):
        raise EncodingError("RECORD_TEXT", "text holds a control character or half a character")
    if not unicodedata.is_normalized("NFC", text):
        raise EncodingError("RECORD_TEXT", "text is not in Unicode form NFC")


def _check_nesting(raw: bytes) -> None:
    """Refuse deep nesting before a parser sees it, whatever stack that parser has."""
    depth = 0
    for match in _TOKEN.finditer(raw):
        first = raw[match.start()]
        if first in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise EncodingError("RECORD_DEPTH", f"nested more than {MAX_DEPTH} deep")
        elif first in b"]}":
            depth -= 1


def _is_shallow(raw: bytes) -> bool:
    """Whether brackets outside of all texts pair off, from the innermost outwards, in `MAX_DEPTH` steps."""
    brackets = raw.translate(_BRACKETS, _NO_BRACKETS)
    for _ in range(MAX_DEPTH):
        if not brackets:
            return True
        brackets = brackets.replace(b"[]", b"")
    return not brackets


def _object(pairs: list[tuple[str, Record]]) -> dict[str, Record]:
    record = dict(pairs)
    if len(record) != len(pairs):
        raise EncodingError("RECORD_DUPLICATE_KEY", "an object has one key twice")
    return record


def _integer(text: str) -> int:
    # Length first: reading a number of a million digits takes time that grows with its square.
    if len(text) <= _LONGEST_NUMBER:
        number = int(text)
        if -MAX_INTEGER <= number <= MAX_INTEGER:
            return number
    raise EncodingError("RECORD_INTEGER", "a whole number is beyond 2**53-1")


def _no_float(text: str) -> None:
    raise EncodingError("RECORD_FLOAT", f"{text[:40]} is not written as a number")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_no_float, parse_constant=_no_float
)
_PLAIN_DECODER = json.JSONDecoder(parse_float=_no_float, parse_constant=_no_float)
"""For records whose numbers are all short, and whose keys are counted otherwise."""
_SHORT_DECODER = json.JSONDecoder(parse_int=_integer, parse_float=_no_float, parse_constant=_no_float)
"""For short records, whose keys are counted otherwise."""
