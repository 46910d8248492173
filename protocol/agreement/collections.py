"""The collections of private data, by the organisations whose peers hold them.

The channel defines them with the chaincodes (network/lib/private_data.py). Their names are made from the MSP
ids, which may hold characters that a collection's name may not, and may be many.
"""

import hashlib
from collections.abc import Iterable

DIGITS = 32


def own(organisation: str) -> str:
    """The collection of one organisation, to which nothing is written without its endorsement."""
    return _name("own", [organisation])


def trees(organisations: Iterable[str], blocks: int = 0) -> str:
    """The collection of a consortium's trees, which it keeps for so many blocks, or for good."""
    name = _name("trees", organisations)
    return f"{name}-{blocks}" if blocks else name


def _name(kind: str, organisations: Iterable[str]) -> str:
    ordered = ",".join(sorted(organisations))
    return f"{kind}-{hashlib.sha256(ordered.encode()).hexdigest()[:DIGITS]}"
