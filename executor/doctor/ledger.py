"""Checks of the channel: heights, chaincode definitions, approvals, and the image behind each chaincode."""

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, TypeVar

from executor.doctor.finding import Finding
from executor.doctor.services import containers
from executor.network import CHANNEL, Network

T = TypeVar("T")
UP = "run network/up.sh: it brings every organisation to the same definition"
CATCH_UP_SECONDS = 15.0
"""For a peer that is behind: blocks may come in while one peer after the other is asked."""


def check_heights(network: Network) -> Iterator[Finding]:
    """Check that every peer has the same chain, or comes to have what the others had."""
    end = time.monotonic() + CATCH_UP_SECONDS
    heights = _heights(network)
    wanted = max(heights.values()) - 1
    while not (even := min(heights.values()) >= wanted) and time.monotonic() < end:
        heights = _heights(network)
    detail = ", ".join(f"{name} {height}" for name, height in heights.items())
    yield Finding(
        "channel height",
        even,
        detail,
        "" if even else "wait for the lower peer, or restart it: network/up.sh",
    )


def _heights(network: Network) -> dict[str, int]:
    infos = _by_organisation(network, lambda name: network.peer(name, "channel", "getinfo", "-c", CHANNEL))
    return {name: int(_json_part(info)["height"]) for name, info in infos.items()}


def check_chaincodes(network: Network) -> Iterator[Finding]:
    """Check for each chaincode that all organisations approved one definition and run the image it names."""
    committed = _by_organisation(network, lambda name: _committed(network, name))
    first = committed[network.organisations[0]]
    same = all(definitions == first for definitions in committed.values())
    names = ", ".join(f"{name} {sequence}" for name, (sequence, _) in first.items()) or "none"
    ok = same and bool(first)
    yield Finding(
        "chaincode definitions",
        ok,
        f"{names} (sequence), the same for all" if ok else names,
        "" if ok else UP,
    )
    for chaincode, (sequence, version) in first.items():
        approved = _by_organisation(network, partial(_approved, network, chaincode))
        yield _approvals(chaincode, approved, sequence)
        yield _images(network, chaincode, approved, version)


def _committed(network: Network, organisation: str) -> dict[str, tuple[int, str]]:
    answer = network.peer(
        organisation, "lifecycle", "chaincode", "querycommitted", "-C", CHANNEL, "-O", "json"
    )
    definitions = json.loads(answer).get("chaincode_definitions", [])
    return {found["name"]: (int(found["sequence"]), found["version"]) for found in definitions}


def _approved(network: Network, chaincode: str, organisation: str) -> tuple[int, str]:
    """The sequence and the package that an organisation approved last."""
    arguments = ("lifecycle", "chaincode", "queryapproved", "-C", CHANNEL, "-n", chaincode, "-O", "json")
    found: dict[str, Any] = json.loads(network.peer(organisation, *arguments))
    return int(found["sequence"]), str(found["source"]["Type"]["LocalPackage"]["package_id"])


def _approvals(chaincode: str, approved: Mapping[str, tuple[int, str]], sequence: int) -> Finding:
    behind = [name for name, (found, _) in approved.items() if found != sequence]
    detail = (
        f"not approved by {', '.join(behind)}"
        if behind
        else f"{len(approved)} of {len(approved)} organisations"
    )
    return Finding(f"{chaincode}: approvals", not behind, detail, UP if behind else "")


def _images(
    network: Network, chaincode: str, approved: Mapping[str, tuple[int, str]], version: str
) -> Finding:
    """Compare what runs, what the organisation's package names, and what all of them approved."""
    expected = version.rpartition("-")[2]
    running = containers(network)
    odd = []
    for name, (_, package) in approved.items():
        label = package.partition(":")[0]
        container = running.get(f"chaincode.{name}", {})
        runs = str(container.get("Image", "")).removeprefix("sha256:")
        if not label.endswith(f"_{expected}"):
            odd.append(f"{name} approved another image ({label[-12:]})")
        elif runs != expected:
            odd.append(f"{name} runs {runs[:12] or 'nothing'}")
    detail = (
        f"expected {expected[:12]}: {'; '.join(odd)}" if odd else f"{expected[:12]} in every organisation"
    )
    return Finding(f"{chaincode}: image", not odd, detail, UP if odd else "")


def _by_organisation(network: Network, ask: Callable[[str], T]) -> dict[str, T]:
    names = network.organisations
    with ThreadPoolExecutor(len(names)) as pool:
        return dict(zip(names, pool.map(ask, names), strict=True))


def _json_part(text: str) -> Any:
    """The peer CLI puts words before the JSON of some answers."""
    found = re.search(r"\{.*\}", text, re.DOTALL)
    return json.loads(found.group(0)) if found else {"height": 0}
