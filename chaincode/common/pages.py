"""Lists and histories page by page, with bookmarks that people can read and clients cannot abuse.

A peer sends what it is asked for in one message, and a message that is too large ends its stream with every
transaction under way. So records are fetched in parts that fit even if each is as large as its kind may be.
"""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TypeVar

from chaincode.common.records import parse, time_text
from chaincode.shim import Context, RefusalError, at_most, composite_key
from protocol.errors import AttestreeError, StateError
from protocol.ledger import keys
from protocol.ledger.common import MAX_PAGE, History, HistoryEntry, Page
from protocol.ledger.record import LedgerRecord

R = TypeVar("R", bound=LedgerRecord)
S = TypeVar("S", bound=LedgerRecord)

DEFAULT_PAGE = 50
SCAN_PAGE = 200
MAX_SCAN = 1000
"""How many records one call looks at for those that match; the bookmark leads on from there."""
MAX_SCAN_BYTES = 4 << 20
"""How large these are together, also if none of them matches."""
MAX_HISTORY = 1_000
"""How many changes of a history can be skipped."""
SKIPPED_FOR_ONE = 10
"""How many changes a page of a history may skip for each that it may list."""
MAX_BYTES = 1 << 19
"""What the records of a page have together at most, unless it is one alone."""


def page(  # noqa: PLR0917
    ctx: Context,
    prefix: tuple[str, ...],
    size: int,
    bookmark: str,
    kind: type[R],
    show: Callable[[R], S | None],
) -> Page[S]:
    """List records whose key begins with a kind and some parts, as `show` shows them; it may leave some out.

    A page can have fewer items than asked for and still a bookmark; only an empty bookmark ends the list.
    """
    first, *parts = prefix
    position = from_bookmark(first, parts, bookmark)
    _check_size(size)
    items: list[S] = []
    seen, wanted, weight = 0, size, 0
    while True:
        found = ctx.partial_page(first, parts, min(wanted, at_most(kind.max_bytes)), position)
        for item in found.items:
            if _is_full(len(items), size, seen, weight + len(item.value)):
                return Page(tuple(items), _to_bookmark(item.key))
            weight += len(item.value)
            seen += 1
            shown = show(parse(item.value, kind))
            if shown is not None:
                items.append(shown)
        wanted, position = SCAN_PAGE, found.bookmark
        if not position or len(items) == size or seen >= MAX_SCAN:
            return Page(tuple(items), _to_bookmark(position))


def stored_page(ctx: Context, prefix: tuple[str, ...], size: int, bookmark: str, kind: type[R]) -> Page[R]:
    """List records as they are stored."""
    return page(ctx, prefix, size, bookmark, kind, lambda record: record)


def all_stored(ctx: Context, prefix: tuple[str, ...], kind: type[R]) -> Iterator[R]:
    """Iterate over a list whose length is bounded otherwise, by who may write it."""
    bookmark = ""
    while True:
        found = stored_page(ctx, prefix, MAX_PAGE, bookmark, kind)
        yield from found.items
        bookmark = found.bookmark
        if not bookmark:
            return


def keyed_page(
    ctx: Context,
    wanted: Iterable[str],
    size: int,
    kind: type[R],
    counts: Callable[[str, R], bool] = lambda *_: True,
) -> Page[R]:
    """List those of the records under these keys that count; the bookmark is the key to go on from."""
    _check_size(size)
    upcoming = iter(wanted)
    items: list[R] = []
    seen = weight = 0
    while asked := list(islice(upcoming, min(size + 1, at_most(kind.max_bytes)))):
        for key, raw in zip(asked, ctx.get_many(asked, kind.max_bytes), strict=True):
            if raw is None:
                continue
            weight += len(raw)
            if len(items) == size or (items and weight > MAX_BYTES):
                return Page(tuple(items), _to_bookmark(key))
            record = parse(raw, kind)
            if counts(key, record):
                items.append(record)
        seen += len(asked)
        if seen >= MAX_SCAN:
            return Page(tuple(items), _to_bookmark(next(upcoming, "")))
    return Page(tuple(items), "")


def history_page(ctx: Context, key: str, size: int, bookmark: str, kind: type[R]) -> History[R]:
    """List the changes of a record, newest first; the bookmark is how many were listed before.

    A peer begins at the newest change and nowhere else, and reads a transaction for each. So a page reads
    what it lists and what it skips, and may skip only so many times what it may list: the further back
    somebody goes, the larger the pages, and what any of them costs stays in proportion to its size.
    """
    _check_size(size)
    skip = _skipped(bookmark, size)
    items: list[HistoryEntry[R]] = []
    weight = 0
    with ctx.history(key) as changes:
        changes.skip(skip)
        for change in islice(changes, size):
            weight += len(change.value or b"")
            if items and weight > MAX_BYTES:
                return History(tuple(items), str(skip + len(items)))
            value = None if change.value is None else parse(change.value, kind)
            items.append(HistoryEntry(change.tx_id, time_text(change.time), value))
        return History(tuple(items), str(skip + len(items)) if changes.has_more else "")


def _skipped(bookmark: str, size: int) -> int:
    """Return how many changes come before a page, or refuse one too far back for its size."""
    if bookmark and not (bookmark.isascii() and bookmark.isdecimal() and len(bookmark) < 10):
        raise RefusalError("BAD_ARGUMENT", "the bookmark is not one that this function returned")
    skip = int(bookmark or 0)
    if skip >= MAX_HISTORY:
        raise StateError("HISTORY_DEPTH", f"a history can be read from the newest {MAX_HISTORY} changes on")
    if skip > SKIPPED_FOR_ONE * size:
        least = -(-skip // SKIPPED_FOR_ONE)
        raise StateError("HISTORY_DEPTH", f"{skip} changes back, a page is of {least} or more, not {size}")
    return skip


def _is_full(items: int, size: int, seen: int, with_next: int) -> bool:
    """Whether a page ends before the next record; one that lists nothing yet has looked at one at least."""
    return items == size or (items > 0 and with_next > MAX_BYTES) or (seen > 0 and with_next > MAX_SCAN_BYTES)


def _check_size(size: int) -> None:
    if not 1 <= size <= MAX_PAGE:
        raise RefusalError("BAD_ARGUMENT", f"size must be 1 to {MAX_PAGE}")


def _to_bookmark(key: str) -> str:
    return str(keys.parse(key)) if key else ""


def from_bookmark(kind: str, parts: list[str], bookmark: str) -> str:
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
