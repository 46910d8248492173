"""What learner and broker say to each other, in the frames of `broker.frames` (docs/formats/broker-v1.md).

    task      ->  process, node, iteration, neighbours, parameters, opening
    share     signature; the share  ->
    slots     ->  slots; the estimators they name
    complete  signature; the result, the state it leaves  ->

The learner asks, the broker answers, one at a time: with `ok` and the fields of the verb, or with `error`.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import field
from enum import StrEnum
from typing import Any, NamedTuple, Self

from protocol.broker import frames
from protocol.errors import AttestreeError, FrameError
from protocol.signing import SIGNATURE_SIZE
from protocol.task.payload import MAX_PAYLOAD
from protocol.task.result import MAX_RESULT_BYTES
from protocol.task.state import MAX_BYTES as MAX_STATE
from protocol.values import dataclass

MAX_TEXT = 1000

_SIGNATURE = re.compile(rf"[0-9a-f]{{{2 * SIGNATURE_SIZE}}}")


class Verb(StrEnum):
    """The four questions that a learner can ask."""

    TASK = "task"
    SHARE = "share"
    SLOTS = "slots"
    COMPLETE = "complete"


class Shape(NamedTuple):
    """Which fields a message has, and how large each of its blobs may be."""

    fields: tuple[str, ...] = ()
    blobs: tuple[int, ...] = ()


REQUESTS = {
    Verb.TASK: Shape(),
    Verb.SHARE: Shape(("signature",), (MAX_PAYLOAD,)),
    Verb.SLOTS: Shape(),
    Verb.COMPLETE: Shape(("signature",), (MAX_RESULT_BYTES, MAX_STATE)),
}
ANSWERS = {
    Verb.TASK: Shape(("process", "node", "iteration", "neighbours", "parameters", "opening")),
    Verb.SHARE: Shape(),
    Verb.SLOTS: Shape(("slots",), (frames.MAX_BLOB,)),
    Verb.COMPLETE: Shape(),
}


@dataclass(frozen=True, slots=True)
class Request:
    """What the learner asks; `signature` is that of its share or result, else empty."""

    verb: Verb
    signature: bytes = b""
    blobs: tuple[bytes, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the message."""
        fields: frames.Header = {"signature": self.signature.hex()} if self.signature else {}
        header: frames.Header = {"verb": self.verb.value, "fields": fields}
        _check_request(header, [len(blob) for blob in self.blobs])
        return frames.encode(header, self.blobs)

    @classmethod
    def read(cls, source: frames.Read) -> Self:
        """Read a request; verb, fields and sizes are checked before any blob is read."""
        return cls._of(*frames.read(source, _check_request))

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Accept the bytes of exactly one request."""
        return cls._of(*frames.decode(raw, _check_request))

    @classmethod
    def _of(cls, header: Any, blobs: tuple[bytes, ...]) -> Self:
        return cls(Verb(header["verb"]), bytes.fromhex(header["fields"].get("signature", "")), blobs)


@dataclass(frozen=True, slots=True)
class Answer:
    """What the broker answers to a verb."""

    verb: Verb
    fields: frames.Header = field(default_factory=dict)
    blobs: tuple[bytes, ...] = ()

    def to_bytes(self) -> bytes:
        """Return the message."""
        _check_shape(self.fields, [len(blob) for blob in self.blobs], ANSWERS[self.verb])
        return frames.encode({"ok": self.fields}, self.blobs)


@dataclass(frozen=True, slots=True)
class BrokerRefusal:
    """Why the broker, or the ledger behind it, did not do what was asked."""

    code: str
    cause: str
    remedy: str

    @classmethod
    def of(cls, error: AttestreeError) -> Self:
        """Take an error's words, cut and cleaned so that they fit a record."""
        return cls(_printable(error.code), _printable(error.cause), _printable(error.remedy))

    def to_bytes(self) -> bytes:
        """Return the message."""
        return frames.encode({"error": {"code": self.code, "cause": self.cause, "remedy": self.remedy}})


def read_answer(source: frames.Read, verb: Verb) -> Answer | BrokerRefusal:
    """Read the answer to a verb; fields and sizes are checked before any blob is read."""

    def check(header: frames.Header, lengths: list[int]) -> None:
        if set(header) == {"error"}:
            _check_shape(header["error"], lengths, Shape(("code", "cause", "remedy")))
        elif set(header) == {"ok"}:
            _check_shape(header["ok"], lengths, ANSWERS[verb])
        else:
            raise FrameError("FRAME_HEADER", "an answer has ok or error and nothing else")

    header, blobs = frames.read(source, check)
    found: Any = header.get("error")
    if found is not None:
        return BrokerRefusal(*(_text(found, name) for name in ("code", "cause", "remedy")))
    fields: Any = header["ok"]
    return Answer(verb, fields, blobs)


def _check_request(header: frames.Header, lengths: list[int]) -> None:
    if set(header) != {"verb", "fields"}:
        raise FrameError("FRAME_HEADER", "a request has verb and fields and nothing else")
    verb = header["verb"]
    if verb not in list(Verb):
        raise FrameError("FRAME_VERB", f"{str(verb)[:40]!r} is not a verb")
    fields: Any = header["fields"]
    _check_shape(fields, lengths, REQUESTS[Verb(verb)])
    signature = fields.get("signature", "0" * 2 * SIGNATURE_SIZE)
    if type(signature) is not str or not _SIGNATURE.fullmatch(signature):
        raise FrameError("FRAME_FIELDS", f"the signature is not {2 * SIGNATURE_SIZE} lower-case hex digits")


def _check_shape(fields: Any, lengths: Sequence[int], shape: Shape) -> None:
    if not isinstance(fields, dict) or sorted(fields) != sorted(shape.fields):
        raise FrameError("FRAME_FIELDS", f"the fields are {', '.join(shape.fields) or 'none'}")
    if len(lengths) != len(shape.blobs):
        raise FrameError("FRAME_BLOBS", f"{len(lengths)} blobs came instead of {len(shape.blobs)}")
    for length, most in zip(lengths, shape.blobs, strict=True):
        if length > most:
            raise FrameError("FRAME_SIZE", f"a blob of {length} bytes is more than {most}")


def _text(record: Any, name: str) -> str:
    found: Any = record[name]
    if type(found) is not str or len(found) > MAX_TEXT:
        raise FrameError("FRAME_FIELDS", f"{name} is not text of at most {MAX_TEXT} characters")
    return found


def _printable(text: str) -> str:
    kept = "".join(char if char.isprintable() else " " for char in text)
    return unicodedata.normalize("NFC", kept)[:MAX_TEXT]
