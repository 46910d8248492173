"""The probe: thin functions over each call of the shim, for network checks, tests and benchmarks."""

import base64
import hashlib
from dataclasses import replace
from itertools import islice
from typing import Any

from chaincode.common import LedgerContract, Role
from chaincode.common.contract import guard
from chaincode.probe.private import PrivateProbe
from chaincode.shim import Context, KeyValue, RefusalError, composite_key, evaluate, submit

MAX_KEYS = 100_000
MAX_FILL = 96 * 1024 * 1024
MAX_WRITTEN = 64 * 1024 * 1024
WRITERS = (Role.ADMIN, Role.DATA_SCIENTIST, Role.NODE)


class Probe(PrivateProbe):
    """Stores what it is given and tells what it sees; it protects nothing, so never keep anything in it.

    It is for tests: a network has it only where `network/up.sh --probe` asked for it. Who has no role, or
    only that of an auditor, writes nothing here either.
    """

    name = "probe"
    cooperative = True
    refusals = LedgerContract.refusals
    describe = LedgerContract.describe

    def __init__(self) -> None:
        super().__init__()
        for name, function in self.functions.items():
            if function.kind == "submit":
                self.functions[name] = replace(function, call=guard(function.call, WRITERS))

    @submit
    def put(self, ctx: Context, key: str, value: bytes) -> None:
        """Store a value."""
        ctx.put(key, value)

    @submit
    def put_transient(self, ctx: Context, key: str) -> str:
        """Store the transient field `value`; returns its SHA-256."""
        value = ctx.transient.get("value")
        if value is None:
            raise RefusalError("NO_TRANSIENT", "send the value as the transient field 'value'")
        ctx.put(key, value)
        return hashlib.sha256(value).hexdigest()

    @evaluate
    def get(self, ctx: Context, key: str) -> bytes:
        """Return a stored value."""
        return _found(key, ctx.get(key))

    @submit
    def delete(self, ctx: Context, key: str) -> None:
        """Remove a key."""
        ctx.delete(key)

    @submit
    def put_then_get(self, ctx: Context, key: str, value: bytes) -> dict[str, Any]:
        """Write a key and read it in the same transaction: the answer is the value before."""
        ctx.put(key, value)
        return {"before": _text(ctx.get(key))}

    @submit
    def put_many(self, ctx: Context, prefix: str, count: int, size: int) -> dict[str, int]:
        """Write `count` keys `prefix000000...`, each with a value of `size` bytes, 64 MiB in all at most."""
        _check_count(count)
        if not 1 <= size <= MAX_WRITTEN // count:
            raise RefusalError("BAD_ARGUMENT", f"size must be 1 to {MAX_WRITTEN // count} for {count} keys")
        for key in _keys(prefix, count):
            ctx.put(key, _fill(key, size))
        return {"written": count}

    @evaluate
    def get_many(self, ctx: Context, prefix: str, count: int) -> dict[str, Any]:
        """Read the keys `put_many` wrote; returns how many exist, their bytes, and a digest over all."""
        _check_count(count)
        found = ctx.get_many(_keys(prefix, count), MAX_WRITTEN // count)
        values = [value for value in found if value is not None]
        digest = hashlib.sha256(b"".join(values)).hexdigest()
        return {"found": len(values), "bytes": sum(map(len, values)), "sha256": digest}

    @evaluate
    def get_each(self, ctx: Context, prefix: str, count: int) -> dict[str, Any]:
        """Read the keys `put_many` wrote one by one, to compare with `get_many`."""
        _check_count(count)
        values = [value for key in _keys(prefix, count) if (value := ctx.get(key)) is not None]
        digest = hashlib.sha256(b"".join(values)).hexdigest()
        return {"found": len(values), "bytes": sum(map(len, values)), "sha256": digest}

    @submit
    def put_part(self, ctx: Context, kind: str, parts: list[str], value: bytes) -> None:
        """Store a value under a composite key."""
        ctx.put(composite_key(kind, parts), value)

    @evaluate
    def range(self, ctx: Context, start: str, end: str, limit: int = 1000) -> list[dict[str, str]]:
        """List the first keys of a range; the peer's iterator is closed when the limit is reached."""
        with ctx.range(start, end) as results:
            return [_entry(item) for item in islice(results, limit)]

    @evaluate
    def range_page(self, ctx: Context, start: str, end: str, size: int, bookmark: str = "") -> dict[str, Any]:
        """List one page of a range."""
        page = ctx.range_page(start, end, size, bookmark)
        return {"items": [_entry(item) for item in page.items], "bookmark": page.bookmark}

    @evaluate
    def partial(self, ctx: Context, kind: str, parts: list[str]) -> list[dict[str, str]]:
        """List the composite keys that begin with these parts."""
        return [_entry(item) for item in ctx.partial(kind, parts)]

    @evaluate
    def partial_page(
        self, ctx: Context, kind: str, parts: list[str], size: int, bookmark: str = ""
    ) -> dict[str, Any]:
        """List one page of the composite keys that begin with these parts."""
        page = ctx.partial_page(kind, parts, size, bookmark)
        return {"items": [_entry(item) for item in page.items], "bookmark": page.bookmark}

    @evaluate
    def history(self, ctx: Context, key: str, skip: int = 0, limit: int = 100) -> list[dict[str, Any]]:
        """List a key's changes, newest first, after skipping some."""
        if skip < 0 or limit < 0:
            raise RefusalError("BAD_ARGUMENT", "skip and limit cannot be negative")
        with ctx.history(key) as results:
            results.skip(skip)
            return [
                {"tx": item.tx_id, "time": item.time.isoformat(), "value": _text(item.value)}
                for item in islice(results, limit)
            ]

    @evaluate
    def whoami(self, ctx: Context) -> dict[str, Any]:
        """Tell who called, on which channel, when, with which attributes and which transient fields."""
        creator = ctx.creator
        return {
            "msp": creator.msp_id,
            "name": creator.name,
            "attributes": dict(creator.attributes),
            "fingerprint": creator.fingerprint,
            "channel": ctx.channel,
            "tx": ctx.tx_id,
            "time": ctx.time.isoformat(),
            "transient": {name: len(value) for name, value in ctx.transient.items()},
        }

    @submit
    def announce(self, ctx: Context, name: str, payload: bytes) -> None:
        """Set an event, and store its payload so that the transaction writes something."""
        ctx.put("announced", payload)
        ctx.set_event(name, payload)

    @submit
    def relay(self, ctx: Context, chaincode: str, arguments: list[str], channel: str = "") -> bytes:
        """Call another chaincode and return its answer, or its error."""
        return ctx.invoke(chaincode, arguments, channel)

    @evaluate
    def fill(self, ctx: Context, size: int) -> bytes:  # noqa: ARG002
        """Return so many bytes."""
        if not 0 <= size <= MAX_FILL:
            raise RefusalError("BAD_ARGUMENT", f"size must be 0 to {MAX_FILL}")
        return b"x" * size

    @submit
    def fail(self, ctx: Context, how: str) -> None:
        """Write something and then fail: `refuse` with a code, or by any other word with a bug."""
        ctx.put("failed", b"must never be committed")
        if how == "refuse":
            raise RefusalError("PROBE_REFUSED", "refused as asked")
        raise ZeroDivisionError(how)


def _found(key: str, value: bytes | None) -> bytes:
    if value is None:
        raise RefusalError("NOT_FOUND", f"no value under {key[:100]!r}")
    return value


def _check_count(count: int) -> None:
    if not 1 <= count <= MAX_KEYS:
        raise RefusalError("BAD_ARGUMENT", f"count must be 1 to {MAX_KEYS}")


def _keys(prefix: str, count: int) -> list[str]:
    return [f"{prefix}{number:06d}" for number in range(count)]


def _fill(key: str, size: int) -> bytes:
    """Make a value that differs from key to key, so that a mix-up changes the digest."""
    raw = key.encode()
    return (raw * (size // len(raw) + 1))[:size]


def _entry(item: KeyValue) -> dict[str, str]:
    return {"key": item.key, "value": base64.b64encode(item.value).decode()}


def _text(value: bytes | None) -> str | None:
    return None if value is None else value.decode("utf-8", "replace")
