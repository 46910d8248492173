"""The collections of private data, by the organisations whose peers hold them.

The channel defines them with the chaincodes (network/lib/collections.py). Their names are made from the MSP
ids, which may hold characters that a collection's name may not, and may be many.
"""

import hashlib
from collections.abc import Iterable

DIGITS = 32


def own(organisation: str) -> str:
    """The collection of one organisation, to which nothing is written without its endorsement."""
    return _name("own", [organisation])


def _name(kind: str, organisations: Iterable[str]) -> str:
    ordered = ",".join(sorted(organisations))
    return f"{kind}-{hashlib.sha256(ordered.encode()).hexdigest()[:DIGITS]}"
