"""Draw a sequence diagram as SVG from a text with one line for each thing that happens.

    actor NAME  Title | second line     a column, from left to right
    == Words                            a heading across the picture
    FROM -> TO  Words                   a message
    FROM --> TO  Words                  an answer, drawn with a dashed line
    NAME: Words                         what somebody does alone
    # Words                             a remark that is not drawn

The same text always gives the same bytes, so a test can compare a picture with its text.
"""

import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from html import escape

COLUMN, MARGIN = 230, 20
TEXT, LINE = 13, 17
LETTER = 6.6
"""How wide a letter is on average, in the fonts that stand for sans-serif; a little more than most."""
ARROW = 9

INK, PALE, RULE, BOX = "#1a1a1a", "#9aa4b2", "#eef1f6", "#fff8e1"


@dataclass(frozen=True)
class Actor:
    """A column of the picture."""

    name: str
    titles: tuple[str, ...]


@dataclass(frozen=True)
class Event:
    """A heading (no names), something done alone (one name) or a message (two)."""

    words: str
    source: str = ""
    target: str = ""
    is_answer: bool = False


class SequenceError(ValueError):
    """The text cannot be drawn."""


def draw(text: str, digest: str) -> str:
    """Return the picture of a text; the digest of the text is noted in it."""
    actors, events = parse(text)
    places = {actor.name: MARGIN + COLUMN // 2 + COLUMN * i for i, actor in enumerate(actors)}
    width = 2 * MARGIN + COLUMN * len(actors)
    top = MARGIN + 3 * LINE + 10
    drawn, bottom = _events(events, places, width, top + 14)
    height = bottom + MARGIN
    lines = [
        f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom}" stroke="{PALE}" stroke-dasharray="3 4"/>'
        for x in places.values()
    ]
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}"'
        f' viewBox="0 0 {width} {height}" font-family="DejaVu Sans, Verdana, sans-serif" font-size="{TEXT}">',
        f"<!-- made by scripts/docs from a text with {digest} -->",
        f'<rect width="{width}" height="{height}" fill="white"/>',
        *lines,
        *(part for actor in actors for part in _head(actor, places[actor.name], top)),
        *drawn,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def parse(text: str) -> tuple[list[Actor], list[Event]]:
    """Read actors and events; a line that is neither is refused, as is a name that no actor has."""
    actors: list[Actor] = []
    events: list[Event] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        if found := re.fullmatch(r"actor (\w+)\s+(.+)", line):
            actors.append(Actor(found[1], tuple(part.strip() for part in found[2].split("|"))))
        elif found := re.fullmatch(r"== (.+)", line):
            events.append(Event(found[1]))
        elif found := re.fullmatch(r"(\w+) (-->|->) (\w+)\s+(.+)", line):
            events.append(Event(found[4], found[1], found[3], found[2] == "-->"))
        elif found := re.fullmatch(r"(\w+): (.+)", line):
            events.append(Event(found[2], found[1]))
        else:
            raise SequenceError(f"line {number} is neither an actor nor an event: {line}")
    known = {actor.name for actor in actors}
    for event in events:
        for name in (event.source, event.target):
            if name and name not in known:
                raise SequenceError(f"{name} is not an actor of the picture")
        if event.source and event.source == event.target:
            raise SequenceError(f"{event.source} sends to itself: write '{event.source}: {event.words}'")
    return actors, events


def _events(events: list[Event], places: dict[str, int], width: int, y: int) -> tuple[list[str], int]:
    """Draw the events one below the other; returns them with the height that they end at."""
    drawn: list[str] = []
    for event in events:
        if not event.source:
            across = width - 2 * MARGIN
            drawn += [
                f'<rect x="{MARGIN}" y="{y}" width="{across}" height="{LINE + 8}" fill="{RULE}"/>',
                _text(event.words, width / 2, y + LINE, bold=True),
            ]
            y += LINE + 24
        elif not event.target:
            lines = _wrapped(event.words, COLUMN - 24)
            x = places[event.source]
            drawn += _box(lines, x, y)
            y += LINE * len(lines) + 24
        else:
            start, end = places[event.source], places[event.target]
            lines = _wrapped(event.words, abs(end - start) - 28)
            drawn += _message(event, lines, start, end, y)
            y += LINE * len(lines) + 22
    return drawn, y


def _message(event: Event, lines: list[str], start: int, end: int, y: int) -> Iterator[str]:
    middle = (start + end) // 2
    # White behind the words, because a column's line may pass there.
    wide = round(max(map(len, lines)) * LETTER) + 8
    yield f'<rect x="{middle - wide // 2}" y="{y}" width="{wide}" height="{LINE * len(lines)}" fill="white"/>'
    for i, line in enumerate(lines):
        yield _text(line, middle, y + LINE * i + TEXT)
    at = y + LINE * len(lines) + 6
    dashes = ' stroke-dasharray="6 4"' if event.is_answer else ""
    yield f'<line x1="{start}" y1="{at}" x2="{end}" y2="{at}" stroke="{INK}"{dashes}/>'
    back = end - ARROW if end > start else end + ARROW
    yield f'<path d="M{end} {at} L{back} {at - 4} L{back} {at + 4} Z" fill="{INK}"/>'


def _box(lines: list[str], x: int, y: int) -> Iterator[str]:
    width = round(max(map(len, lines)) * LETTER) + 20
    yield (
        f'<rect x="{x - width // 2}" y="{y}" width="{width}" height="{LINE * len(lines) + 10}" rx="4"'
        f' fill="{BOX}" stroke="{PALE}"/>'
    )
    for i, line in enumerate(lines):
        yield _text(line, x, y + LINE * (i + 1))


def _head(actor: Actor, x: int, top: int) -> Iterator[str]:
    yield (
        f'<rect x="{x - COLUMN // 2 + 8}" y="{MARGIN}" width="{COLUMN - 16}" height="{top - MARGIN}" rx="6"'
        f' fill="{RULE}" stroke="{PALE}"/>'
    )
    first = MARGIN + (top - MARGIN - LINE * len(actor.titles)) // 2 + TEXT
    for i, title in enumerate(actor.titles):
        yield _text(title, x, first + LINE * i, bold=i == 0)


def _text(words: str, x: float, y: float, *, bold: bool = False) -> str:
    weight = ' font-weight="bold"' if bold else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="middle" fill="{INK}"{weight}>{escape(words)}</text>'


def _wrapped(words: str, width: float) -> list[str]:
    return textwrap.wrap(words, max(8, int(width / LETTER)), break_long_words=False)
