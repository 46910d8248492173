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

from .context import Context, Modification, Page
from .contract import Contract, evaluate, submit
from .endorsement import Endorsement, all_of, n_of, peer_of
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
from .private import Collection
from .results import KeyValue
from .server import ChaincodeServer, Tls
from .transaction import at_most

__all__ = [
    "CallError",
    "ChaincodeServer",
    "Collection",
    "Context",
    "Contract",
    "Creator",
    "Endorsement",
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
    "all_of",
    "at_most",
    "composite_key",
    "evaluate",
    "n_of",
    "peer_of",
    "split_composite_key",
    "submit",
]
