"""Reading a YAML or JSON file into plain values that remember their lines.

YAML says the same thing in many ways, some of them traps: `no` is false, `1.10` is 1.1, `12:30` is 750, a
second key silently replaces the first, and nine short lines of anchors unfold to gigabytes. Here a file holds
text, numbers, true, false, null, lists and objects, each spelled as in JSON or as bare text, and every key
once; anchors, aliases, tags and merge keys are refused.
"""

import re
from dataclasses import field
from pathlib import Path
from typing import Any, TypeAlias

import yaml

from executor.process.errors import Fault, FederationError
from executor.user_files import UserFileError, read_file
from protocol.values import dataclass

MAX_BYTES = 4 << 20
MAX_DEPTH = 16

Path_: TypeAlias = tuple[str | int, ...]
"""Where a value stands: keys and positions from the top, such as ("steps", 0, "image")."""

_WHOLE = re.compile(r"[+-]?(0|[1-9][0-9]*)")
_FRACTION = re.compile(r"[+-]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][+-]?[0-9]+)?")
_LONGEST_NUMBER = 40
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


@dataclass(frozen=True)
class Document:
    """The content of a file and the line of each of its values."""

    file: str
    content: Any
    lines: dict[Path_, int] = field(default_factory=dict)

    def line(self, path: Path_) -> int:
        """Return the line of a value, or of the nearest thing around it that the file has."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def read(path: Path) -> Document:
    """Read a file, or refuse it."""
    try:
        raw = read_file(path, MAX_BYTES)
    except UserFileError as error:
        raise FederationError(
            "FEDERATION_FILE",
            f"{path}: {error.cause}",
            case="size" if error.too_large else "kind" if error.not_a_file else "",
        ) from error
    return parse(raw, str(path))


def parse(raw: bytes, file: str) -> Document:
    """Read the bytes of a file, or refuse them."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise _refused(file, line, f"byte {error.start} is not UTF-8", "Save the file as UTF-8") from error
    try:
        loader = yaml.SafeLoader(text)
        return _Reader(file, loader).document()
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise _refused(
            file, line, "a control character", "Remove it; YAML has only printable ones"
        ) from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = 1 if mark is None else mark.line + 1
        said = " ".join(part for part in (error.context, error.problem) if part)
        raise _refused(
            file, line, f"not YAML: {said}", "Check indentation, quotes and brackets there"
        ) from error


class _Reader:
    """Builds values from the parser's events, so that nothing is resolved that is not written here."""

    def __init__(self, file: str, loader: Any) -> None:
        self.file = file
        self.loader = loader
        self.lines: dict[Path_, int] = {}

    def document(self) -> Document:
        self._expect(yaml.StreamStartEvent)
        if self.loader.check_event(yaml.StreamEndEvent):
            raise _refused(self.file, 1, "the file is empty", "Describe a process in it")
        self._expect(yaml.DocumentStartEvent)
        content = self._value(())
        self._expect(yaml.DocumentEndEvent)
        if not self.loader.check_event(yaml.StreamEndEvent):
            line = self._line(self.loader.peek_event())
            raise _refused(self.file, line, "a second document begins", "Keep one process per file")
        return Document(self.file, content, self.lines)

    def _value(self, path: Path_) -> Any:
        event = self.loader.get_event()
        self.lines.setdefault(path, self._line(event))
        self._check_plain(event)
        if len(path) > MAX_DEPTH:
            raise _refused(self.file, self._line(event), f"nested more than {MAX_DEPTH} deep", "Flatten it")
        if isinstance(event, yaml.ScalarEvent):
            return event.value if event.style else self._bare(event)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._list(path)
        return self._object(path)

    def _check_plain(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise _refused(
                self.file,
                self._line(event),
                f"'{event.anchor}' is an anchor or alias, and those can unfold without end",
                "Write the value out where it is needed",
            )
        if getattr(event, "tag", None) is not None:
            raise _refused(
                self.file,
                self._line(event),
                f"the tag {event.tag} asks for a type that a federation file does not have",
                "Remove the tag",
            )

    def _list(self, path: Path_) -> list[Any]:
        values: list[Any] = []
        while not self.loader.check_event(yaml.SequenceEndEvent):
            values.append(self._value((*path, len(values))))
        self.loader.get_event()
        return values

    def _object(self, path: Path_) -> dict[str, Any]:
        found: dict[str, Any] = {}
        while not self.loader.check_event(yaml.MappingEndEvent):
            event = self.loader.get_event()
            line = self._line(event)
            self._check_plain(event)
            if not isinstance(event, yaml.ScalarEvent):
                raise _refused(self.file, line, "a key is a list or an object", "Use text as key")
            key = event.value
            if key == "<<" and not event.style:
                raise _refused(self.file, line, "'<<' merges objects", "Write the fields out")
            if key in found:
                first = self.lines[(*path, key)]
                raise _refused(
                    self.file, line, f"'{key[:60]}' stands in line {first} already", "Keep one of the two"
                )
            self.lines[(*path, key)] = line
            found[key] = self._value((*path, key))
        self.loader.get_event()
        return found

    def _bare(self, event: yaml.ScalarEvent) -> Any:
        text: str = event.value
        if text in _WORDS:
            return _WORDS[text]
        if _FRACTION.fullmatch(text) and len(text) > _LONGEST_NUMBER:
            raise _refused(
                self.file, self._line(event), f"a number of {len(text)} digits", "Put it in quotes, or round"
            )
        if _WHOLE.fullmatch(text):
            return int(text)
        # A number with zeros in front, 007 for example, is nobody's number: it stays text.
        if _FRACTION.fullmatch(text) and not text.lstrip("+-").isdigit():
            return float(text)
        return text

    def _expect(self, kind: type) -> None:
        event = self.loader.get_event()
        assert isinstance(event, kind), event  # noqa: S101 - the parser's own grammar

    @staticmethod
    def _line(event: Any) -> int:
        return int(event.start_mark.line) + 1


def _refused(file: str, line: int, cause: str, remedy: str) -> FederationError:
    return FederationError.of("FEDERATION_SYNTAX", file, [Fault(line, cause, remedy)])
