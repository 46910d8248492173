"""Lists and histories page by page, with bookmarks that people can read and clients cannot abuse."""

from collections.abc import Callable
from itertools import islice
from typing import Any

from chaincode.common.records import parse, time_text
from chaincode.shim import Context, RefusalError, composite_key
from protocol.errors import AttestreeError
from protocol.ledger import keys

DEFAULT_PAGE = 50
MAX_PAGE = 1000
SCAN_PAGE = 200
MAX_SCAN = 5000
"""How many records one call looks at for those that match; the bookmark leads on from there."""


def page(
    ctx: Context,
    prefix: tuple[str, ...],
    size: int,
    bookmark: str,
    show: Callable[[dict[str, Any]], dict[str, Any] | None],
) -> dict[str, Any]:
    """List records whose key begins with a kind and some parts, as `show` shows them; it may leave some out.

    A page can have fewer items than asked for and still a bookmark; only an empty bookmark ends the list.
    """
    kind, *parts = prefix
    position = _from_bookmark(kind, parts, bookmark)
    _check_size(size)
    items: list[dict[str, Any]] = []
    seen, wanted = 0, size
    while True:
        found = ctx.partial_page(kind, parts, wanted, position)
        for item in found.items:
            if len(items) == size:
                return {"items": items, "bookmark": _to_bookmark(item.key)}
            shown = show(parse(item.value))
            if shown is not None:
                items.append(shown)
        seen, wanted, position = seen + len(found.items), SCAN_PAGE, found.bookmark
        if not position or len(items) == size or seen >= MAX_SCAN:
            return {"items": items, "bookmark": _to_bookmark(position)}


def history_page(ctx: Context, key: str, size: int, bookmark: str) -> dict[str, Any]:
    """List the changes of a record, newest first; the bookmark is how many were listed before."""
    _check_size(size)
    if bookmark and not (bookmark.isascii() and bookmark.isdecimal() and len(bookmark) < 10):
        raise RefusalError("BAD_ARGUMENT", "the bookmark is not one that this function returned")
    skip = int(bookmark or 0)
    with ctx.history(key) as results:
        changes = list(islice(results, skip, skip + size + 1))
    items = [
        {
            "tx": change.tx_id,
            "time": time_text(change.time),
            "value": None if change.value is None else parse(change.value),
        }
        for change in changes[:size]
    ]
    return {"items": items, "bookmark": str(skip + size) if len(changes) > size else ""}


def _check_size(size: int) -> None:
    if not 1 <= size <= MAX_PAGE:
        raise RefusalError("BAD_ARGUMENT", f"size must be 1 to {MAX_PAGE}")


def _to_bookmark(key: str) -> str:
    return str(keys.parse(key)) if key else ""


def _from_bookmark(kind: str, parts: list[str], bookmark: str) -> str:
    """Turn the printed key back into a key, and refuse one outside the list."""
    if not bookmark:
        return ""
    key = keys.SEPARATOR + keys.SEPARATOR.join(bookmark.split("~")) + keys.SEPARATOR
    try:
        keys.parse(key)
    except AttestreeError:
        raise RefusalError("BAD_ARGUMENT", "the bookmark is not one that this function returned") from None
    if not key.startswith(composite_key(kind, parts)):
        raise RefusalError("BAD_ARGUMENT", "the bookmark belongs to another list")
    return key
