"""Composite keys: Fabric's way to give keys a type and parts that range queries can use."""

from .errors import MisuseError

NAMESPACE = SEPARATOR = "\x00"
MAX_RUNE = "\U0010ffff"
# Stands for an empty start: composite keys begin with NUL and stay out of ranges of simple keys.
FIRST_SIMPLE_KEY = "\x01"


def composite_key(kind: str, attributes: list[str] | tuple[str, ...]) -> str:
    """Build the key under which Fabric's own shims would store the same type and attributes."""
    if not kind:
        raise MisuseError("a composite key needs a type")
    for part in (kind, *attributes):
        _check_part(part)
    return NAMESPACE + SEPARATOR.join((kind, *attributes)) + SEPARATOR


def split_composite_key(key: str) -> tuple[str, list[str]]:
    """Take a composite key apart into its type and attributes."""
    if len(key) < 3 or not key.startswith(NAMESPACE) or not key.endswith(SEPARATOR):
        raise MisuseError("not a composite key")
    kind, *attributes = key[1:-1].split(SEPARATOR)
    return kind, attributes


def partial_range(kind: str, attributes: list[str] | tuple[str, ...]) -> tuple[str, str]:
    """Give the range that holds every composite key beginning with these parts."""
    start = composite_key(kind, attributes)
    return start, start + MAX_RUNE


def simple_range(start: str, end: str) -> tuple[str, str]:
    """Check a range of simple keys; an empty end is open."""
    for key in (start, end):
        check_utf8(key)
        if key.startswith(NAMESPACE):
            raise MisuseError("a range of simple keys cannot touch composite keys, which begin with NUL")
    return start or FIRST_SIMPLE_KEY, end


def check_key(key: str) -> None:
    """Refuse a key that the peer or the wire cannot carry."""
    if not key:
        raise MisuseError("a key cannot be empty")
    if not key.isascii():
        check_utf8(key)


def check_utf8(text: str) -> None:
    """Refuse lone surrogates, which Python strings allow and protobuf does not."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise MisuseError("a key must be valid UTF-8") from error


def _check_part(part: str) -> None:
    check_utf8(part)
    if SEPARATOR in part or MAX_RUNE in part:
        raise MisuseError("a part of a composite key cannot contain U+0000 or U+10FFFF")
