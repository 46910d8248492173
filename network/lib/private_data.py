"""Print the collections of private data that the chaincodes define, for the organisations of a channel.

Each organisation has one of its own, to which nothing is written without its endorsement. Each majority of
the channel has one for trees, and one more for each number of blocks for which trees may be kept: fewer
organisations could not endorse what they keep from the others. The names are those of
protocol/agreement/collections.py.
"""

import argparse
import hashlib
import json
from itertools import combinations
from typing import Any

DIGITS = 32


def main() -> None:
    """Print the configuration that the peer's lifecycle commands take."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("msps", nargs="+", help="the MSP ids of the channel's organisations")
    parser.add_argument("--blocks", nargs="*", type=int, default=[], help="lives of trees, in blocks")
    options = parser.parse_args()
    made = [own(msp) for msp in options.msps]
    for members in majorities(options.msps):
        made += [trees(members, options.msps, life) for life in (0, *options.blocks)]
    print(json.dumps(made, indent=1))


def majorities(msps: list[str]) -> list[tuple[str, ...]]:
    """Every set of organisations that can endorse without the others."""
    least = len(msps) // 2 + 1
    return [chosen for size in range(least, len(msps) + 1) for chosen in combinations(msps, size)]


def trees(members: tuple[str, ...], msps: list[str], life: int) -> dict[str, Any]:
    """A consortium's trees; endorsers send them to as many members as need not endorse."""
    made = collection("trees", list(members))
    return {
        **made,
        "name": f"{made['name']}-{life}" if life else made["name"],
        "maxPeerCount": len(members) - (len(msps) // 2 + 1),
        "blockToLive": life,
    }


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
