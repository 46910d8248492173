"""Fabric chaincode in Python: plain synchronous contracts, served to peers over one gRPC stream each.

The package knows nothing of any application. A contract is a class:

    class Notes(Contract):
        name = "notes"

        @submit
        def write(self, ctx: Context, key: str, text: str) -> None:
            ctx.put(key, text.encode())

        @evaluate
        def read(self, ctx: Context, key: str) -> bytes | None:
            return ctx.get(key)

    ChaincodeServer(Notes(), chaincode_id="notes:1f2e...", listen="0.0.0.0:9999", tls=tls).start()
"""

from .context import Context, KeyValue, Modification, Page
from .contract import Contract, evaluate, submit
from .errors import (
    CallError,
    MisuseError,
    PeerError,
    RefusalError,
    ShimError,
    SizeError,
    StreamError,
)
from .identity import Creator
from .keys import composite_key, split_composite_key
from .server import ChaincodeServer, Tls

__all__ = [
    "CallError",
    "ChaincodeServer",
    "Context",
    "Contract",
    "Creator",
    "KeyValue",
    "MisuseError",
    "Modification",
    "Page",
    "PeerError",
    "RefusalError",
    "ShimError",
    "SizeError",
    "StreamError",
    "Tls",
    "composite_key",
    "evaluate",
    "split_composite_key",
    "submit",
]
