"""Randomness as a parameter: every draw is derived from what an auditor can read on the ledger."""

from hashlib import sha256

import numpy as np

_DOMAIN = "attestree/seed/v1"


def derive(seed: int, node: str, iteration: int, purpose: str) -> int:
    """Return 256 bits that depend on nothing but the process seed, the node, the iteration and the purpose.

    The parts are joined by NUL, which no name may hold, so no two lists of parts give the same text.
    """
    parts = (_DOMAIN, str(int(seed)), node, str(int(iteration)), purpose)
    if any("\0" in part for part in parts):
        raise ValueError("a seed part holds NUL")
    return int.from_bytes(sha256("\0".join(parts).encode()).digest(), "big")


def generator(seed: int, node: str, iteration: int, purpose: str) -> np.random.Generator:
    """Return a numpy generator for one purpose, independent of every other purpose."""
    return np.random.Generator(np.random.PCG64(derive(seed, node, iteration, purpose)))
