"""The names parties use on the ledger, each with a grammar so strict that no two spellings name one thing.

Names are ASCII: what an auditor reads is what is compared, without homoglyphs, case variants or invisible
characters. No name holds a separator of any encoding of this package ("/" between creator and counter, NUL
in ledger keys).
"""

import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NewType, NoReturn

from protocol.errors import IdentifierError

NodeName = NewType("NodeName", str)
OrganisationId = NewType("OrganisationId", str)
ProcessId = NewType("ProcessId", str)
ImageName = NewType("ImageName", str)
ImageVersion = NewType("ImageVersion", str)

MAX_NAME = 64
MAX_IMAGE_NAME = 128
MAX_COUNTER = 2**32 - 1
COUNTER_DIGITS = 4
_IDS_KEPT = 1 << 14
_NAMES_KEPT = 1 << 12

_WORD = r"[a-z0-9]+(?:[._-][a-z0-9]+)*"
_NAME = re.compile(_WORD)
_IMAGE_NAME = re.compile(rf"{_WORD}(?:/{_WORD})*")
_ORGANISATION = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[.-][A-Za-z0-9]+)*")
_COUNTER = re.compile(r"[0-9]{4}|[1-9][0-9]{4,9}")


def parse_node(text: str) -> NodeName:
    """Read the name of a learning node, such as `node07`."""
    return _node(text) if type(text) is str else _not_text(text, "node name")


def parse_organisation(text: str) -> OrganisationId:
    """Read the MSP id of an organisation, such as `Org1MSP`."""
    return _organisation(text) if type(text) is str else _not_text(text, "organisation")


def parse_process(text: str) -> ProcessId:
    """Read the id of a process, such as `fraud-2026`."""
    return ProcessId(_parse(text, "process id", _NAME, MAX_NAME))


def parse_image_name(text: str) -> ImageName:
    """Read the name of an image without registry host or tag, such as `attestree/learner`."""
    return _image_name(text) if type(text) is str else _not_text(text, "image name")


def parse_image_version(text: str) -> ImageVersion:
    """Read the version of an image, such as `1.2.0`; not `latest`, which is another image tomorrow."""
    return _image_version(text) if type(text) is str else _not_text(text, "image version")


def check_counter(value: int, what: str) -> int:
    """Return the value if it is a whole number of 32 bits, the range of every counter on the ledger."""
    if type(value) is not int or not 0 <= value <= MAX_COUNTER:
        raise IdentifierError(
            "COUNTER_RANGE", f"{what} {str(value)[:40]} is not a whole number from 0 to {MAX_COUNTER}"
        )
    return value


@dataclass(frozen=True, order=True, slots=True)
class EstimatorId:
    """Who created an estimator, and its number among that node's: a tree keeps both wherever it travels."""

    creator: str
    counter: int
    _text: str = field(init=False, repr=False, compare=False)
    """The printed form, made once: an id is read once and written with every record that names it."""

    def __post_init__(self) -> None:
        parse_node(self.creator)
        check_counter(self.counter, "estimator counter")
        object.__setattr__(self, "_text", f"{self.creator}/{self.counter:0{COUNTER_DIGITS}d}")

    @staticmethod
    def parse(text: str) -> "EstimatorId":
        """Read the printed form and refuse any other padding of the same counter."""
        if not isinstance(text, str):
            raise IdentifierError("NAME_TYPE", f"an estimator id is text, not {type(text).__name__}")
        return _estimator_id(text)

    def __str__(self) -> str:
        return self._text


@lru_cache(maxsize=_IDS_KEPT)
def _estimator_id(text: str) -> EstimatorId:
    """Read an id; each comes again with every neighbour that takes it and every ensemble that has it."""
    creator, separator, counter = text.partition("/")
    if not separator:
        raise IdentifierError("NAME_SYNTAX", f"estimator id {text[:80]!r} has no '/'")
    if not _COUNTER.fullmatch(counter):
        raise IdentifierError("COUNTER_SYNTAX", f"{counter[:20]!r} is not a counter as printed")
    return EstimatorId(creator, int(counter))


@lru_cache(maxsize=_NAMES_KEPT)
def _node(text: str) -> NodeName:
    """Read a name; those of a process come again with each of its records, hundreds at a time."""
    return NodeName(_parse(text, "node name", _NAME, MAX_NAME))


@lru_cache(maxsize=_NAMES_KEPT)
def _image_name(text: str) -> ImageName:
    return ImageName(_parse(text, "image name", _IMAGE_NAME, MAX_IMAGE_NAME))


@lru_cache(maxsize=_NAMES_KEPT)
def _image_version(text: str) -> ImageVersion:
    version = _parse(text, "image version", _NAME, MAX_NAME)
    if version == "latest":
        raise IdentifierError("NAME_SYNTAX", "image version 'latest' names no particular image")
    return ImageVersion(version)


@lru_cache(maxsize=_NAMES_KEPT)
def _organisation(text: str) -> OrganisationId:
    return OrganisationId(_parse(text, "organisation", _ORGANISATION, MAX_NAME))


def _parse(text: str, what: str, grammar: re.Pattern[str], longest: int) -> str:
    if type(text) is not str:
        _not_text(text, what)
    if not 1 <= len(text) <= longest:
        raise IdentifierError("NAME_LENGTH", f"{what} has {len(text)} characters, not 1 to {longest}")
    if not grammar.fullmatch(text):
        raise IdentifierError("NAME_SYNTAX", f"{what} {text!r} does not follow the grammar")
    return text


def _not_text(value: object, what: str) -> NoReturn:
    raise IdentifierError("NAME_TYPE", f"{what} is {type(value).__name__}, not text")
