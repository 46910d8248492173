"""Coverage-guided fuzzing of the parsers, with tests on PYTHONPATH as scripts/fuzz has it.

    python tests/fuzz/parsers.py TARGET [libFuzzer arguments]

Whatever the bytes, a parser refuses them with a code of ours, or accepts them and gives the same bytes back.
"""

import copy
import importlib
import io
import json
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import atheris
import numpy as np

with atheris.instrument_imports(include=["protocol", "executor.audit"]):
    from executor.audit.chain import SENTENCES, Anchor, Chain
    from executor.audit.fabric.messages import MalformedError
    from executor.audit.fabric.validation import Validator
    from executor.audit.findings import Findings
    from executor.audit.verify import verify_bundle
    from protocol import canonical
    from protocol.agreement.process import Specification
    from protocol.broker.messages import Request
    from protocol.errors import AttestreeError
    from protocol.task.result import TaskResult
    from protocol.task.state import StateRecord
    from protocol.task.table import Table
    from protocol.trees.boosted import Boosted
    from protocol.trees.kinds import read
    from protocol.trees.share import Share, ShareLimits
    from protocol.trees.tree import Tree, TreeLimits

ROOT = Path(__file__).resolve().parents[2]
TREES = TreeLimits(n_features=300, max_internal=255)
TREES_V2 = replace(TREES, format=2)
BOOSTED = replace(TREES, kind="boosted")
SHARES = ShareLimits(max_count=16, max_bytes=1 << 16)


def tree(raw: bytes) -> None:
    assert Tree.from_bytes(raw, TREES).to_bytes() == raw


def tree_v2(raw: bytes) -> None:
    accepted = Tree.from_bytes(raw, TREES_V2)
    columns = {name: getattr(accepted, name) for name in COLUMNS}
    # Written anew from what was understood, so that no second spelling of a tree is let through.
    assert Tree.from_arrays(**columns, limits=replace(TREES_V2, format=raw[0])).to_bytes() == raw


def boosted(raw: bytes) -> None:
    accepted = read(raw, BOOSTED)
    assert isinstance(accepted, Boosted)
    ends = [*accepted.roots[1:].tolist(), accepted.n_nodes]
    trees = []
    for first, end in zip(accepted.roots.tolist(), ends, strict=True):
        tree = {name: getattr(accepted, name)[first:end] for name in COLUMNS}
        for side in ("left", "right"):
            tree[side] = np.where(tree[side] >= 0, tree[side] - first, -1)
        trees.append(tree)
    assert Boosted.from_arrays(accepted.base, trees, BOOSTED).to_bytes() == raw


def share(raw: bytes) -> None:
    assert Share.from_bytes(raw, SHARES, TREES).to_bytes() == raw


def record(raw: bytes) -> None:
    assert canonical.encode(canonical.decode(raw)) == raw


def task_result(raw: bytes) -> None:
    assert TaskResult.from_bytes(raw).to_bytes() == raw


def specification(raw: bytes) -> None:
    accepted = Specification.from_bytes(raw)
    # What a user leaves out is filled in, so the bytes may grow once, and never again.
    assert Specification.from_bytes(accepted.to_bytes()) == accepted


def table(raw: bytes) -> None:
    accepted = Table.from_bytes(raw)
    assert Table(accepted.X, accepted.y).to_bytes() == raw


def state(raw: bytes) -> None:
    assert StateRecord.from_bytes(raw, TREES).to_bytes() == raw


def request(raw: bytes) -> None:
    assert Request.from_bytes(raw).to_bytes() == raw


def export(raw: bytes) -> None:
    """Whatever a file holds, an audit refuses it by a code, or says what of it does not hold."""
    assert not verify_bundle(io.BytesIO(raw), Anchor(bytes(32))).verified


def block(raw: bytes) -> None:
    """Whatever comes after the first block of a channel, it is judged, or it is no block."""
    chain = copy.copy(begun())
    chain.findings, chain.validator = Findings(SENTENCES), Validator()
    with suppress(MalformedError):
        for taken in chain.take_ahead([raw]):
            list(taken)


@cache
def begun() -> Chain:
    """The first block of a channel, which is read once: it takes longer than all the rest."""
    chain = Chain(Anchor(bytes(32)), Findings(SENTENCES))
    list(chain.take(recorded().blocks[0]))
    return chain


@cache
def recorded() -> Any:
    """A channel of a few blocks, as the ledger in memory records it."""
    blocks, scenario = (importlib.import_module(f"support.memory.{name}") for name in ("blocks", "scenario"))
    found = blocks.record(scenario.Channel)()
    found.register(version="1.0.1")
    return found.recorder


TARGETS: dict[str, Callable[[bytes], None]] = {
    "tree": tree,
    "tree-v2": tree_v2,
    "boosted": boosted,
    "share": share,
    "record": record,
    "result": task_result,
    "specification": specification,
    "table": table,
    "state": state,
    "request": request,
    "export": export,
    "block": block,
}
GOLDEN = {
    "tree": "estimator-v1",
    "tree-v2": "estimator-v2",
    "boosted": "boosted-v1",
    "share": "share-v1",
    "table": "table-v1",
    "state": "state-v1",
    "request": "broker-v1",
}
COLUMNS = ("feature", "threshold", "left", "right", "value", "missing_left")


def main() -> None:
    target = TARGETS[sys.argv[1]]

    def once(raw: bytes) -> None:
        try:
            target(raw)
        except AttestreeError as refused:
            if not (refused.code and refused.cause and refused.remedy):
                raise AssertionError("a refusal without code, cause or remedy") from refused

    with tempfile.TemporaryDirectory() as corpus:
        for number, seed in enumerate(seeds(sys.argv[1])):
            (Path(corpus) / f"{number:03d}").write_bytes(seed)
        atheris.Setup([sys.argv[0], *sys.argv[2:], corpus], once)
        atheris.Fuzz()


def seeds(name: str) -> list[bytes]:
    """Byte strings that are accepted: the golden files', those kept beside this file, and a channel's."""
    if name == "export":
        return [recorded().bundle()]
    if name == "block":
        return list(recorded().blocks[1:])
    golden = json.loads((ROOT / f"tests/golden/{GOLDEN.get(name, 'records-v1')}.json").read_bytes())
    found = [bytes.fromhex(item["bytes"]) for item in golden if "bytes" in item]
    return found + [path.read_bytes() for path in sorted((ROOT / "tests/fuzz/seeds" / name).glob("*"))]


if __name__ == "__main__":
    main()
