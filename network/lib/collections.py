"""Print the collections of private data that the chaincodes define, for the organisations of a channel.

Each organisation has one of its own, to which nothing is written without its endorsement. The names are those
of protocol/ledger/collections.py.
"""

import argparse
import hashlib
import json
from typing import Any

DIGITS = 32


def main() -> None:
    """Print the configuration that the peer's lifecycle commands take."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("msps", nargs="+", help="the MSP ids of the channel's organisations")
    options = parser.parse_args()
    print(json.dumps([own(msp) for msp in options.msps], indent=1))


def own(msp: str) -> dict[str, Any]:
    """An organisation's own: its members alone, never sent about, by its endorsement alone."""
    return {
        **collection("own", [msp]),
        "maxPeerCount": 0,
        "endorsementPolicy": {"signaturePolicy": f"OR('{msp}.peer')"},
    }


def collection(kind: str, msps: list[str]) -> dict[str, Any]:
    """A collection of these organisations, for good."""
    members = ", ".join(f"'{msp}.member'" for msp in sorted(msps))
    return {
        "name": f"{kind}-{hashlib.sha256(','.join(sorted(msps)).encode()).hexdigest()[:DIGITS]}",
        "policy": f"OR({members})",
        "requiredPeerCount": 0,
        "blockToLive": 0,
        "memberOnlyRead": False,
        "memberOnlyWrite": False,
    }


if __name__ == "__main__":
    main()
