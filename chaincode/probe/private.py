"""The probe's functions for private data and key-level endorsement."""

import base64
from typing import Any

from chaincode.shim import Context, Contract, RefusalError, all_of, evaluate, peer_of, submit

MAX_VALUE = 1 << 20


class PrivateProbe(Contract):
    """Thin functions over the shim's collections and policies."""

    @submit
    def put_private(self, ctx: Context, collection: str, key: str) -> None:
        """Store the transient field `value` in a collection."""
        value = ctx.transient.get("value")
        if value is None:
            raise RefusalError("NO_TRANSIENT", "send the value as the transient field 'value'")
        ctx.private(collection).put(key, value)

    @submit
    def mark_private(self, ctx: Context, collection: str, key: str, value: bytes) -> None:
        """Store an argument in a collection, which makes it public: for a value that is no secret."""
        ctx.private(collection).put(key, value)

    @evaluate
    def get_private(self, ctx: Context, collection: str, key: str) -> bytes:
        """Return a value of a collection."""
        value = ctx.private(collection).get(key)
        if value is None:
            raise RefusalError("NOT_FOUND", f"no value under {key[:100]!r}")
        return value

    @evaluate
    def get_many_private(self, ctx: Context, collection: str, keys: list[str]) -> dict[str, int]:
        """Read several values of a collection at once; returns how many exist."""
        found = ctx.private(collection).get_many(keys, MAX_VALUE)
        return {"found": sum(value is not None for value in found)}

    @evaluate
    def private_hash(self, ctx: Context, collection: str, key: str) -> str:
        """Return the SHA-256 of a value of a collection, or nothing."""
        return (ctx.private(collection).hash(key) or b"").hex()

    @evaluate
    def range_private(self, ctx: Context, collection: str, start: str, end: str) -> list[dict[str, str]]:
        """List the keys of a range of a collection."""
        return [
            {"key": item.key, "value": base64.b64encode(item.value).decode()}
            for item in ctx.private(collection).range(start, end)
        ]

    @submit
    def delete_private(self, ctx: Context, collection: str, key: str, purge: bool = False) -> None:
        """Remove a key of a collection, and its past with it if asked."""
        opened = ctx.private(collection)
        if purge:
            opened.purge(key)
        else:
            opened.delete(key)

    @submit
    def seal(self, ctx: Context, key: str, value: bytes, organisations: list[str]) -> None:
        """Store a value whose later changes need the endorsement of each of these organisations."""
        ctx.put(key, value)
        ctx.set_endorsement(key, all_of(*map(peer_of, organisations)))

    @evaluate
    def sealed(self, ctx: Context, key: str) -> dict[str, Any]:
        """Tell which organisations must endorse a change of a key."""
        policy = ctx.endorsement(key)
        return {"organisations": [rule.organisation for rule in policy.rules] if policy else None}
