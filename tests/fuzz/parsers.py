"""Coverage-guided fuzzing of the parsers: python tests/fuzz/parsers.py TARGET [libFuzzer arguments].

Whatever the bytes, a parser refuses them with a code of ours, or accepts them and gives the same bytes back.
"""

import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["protocol"]):
    from protocol import canonical
    from protocol.agreement.process import Specification
    from protocol.broker.messages import Request
    from protocol.errors import AttestreeError
    from protocol.task.result import TaskResult
    from protocol.task.state import StateRecord
    from protocol.task.table import Table
    from protocol.trees.share import Share, ShareLimits
    from protocol.trees.tree import Tree, TreeLimits

ROOT = Path(__file__).resolve().parents[2]
TREES = TreeLimits(n_features=300, max_internal=255)
SHARES = ShareLimits(max_count=16, max_bytes=1 << 16)


def tree(raw: bytes) -> None:
    assert Tree.from_bytes(raw, TREES).to_bytes() == raw


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


TARGETS: dict[str, Callable[[bytes], None]] = {
    "tree": tree,
    "share": share,
    "record": record,
    "result": task_result,
    "specification": specification,
    "table": table,
    "state": state,
    "request": request,
}
GOLDEN = {"tree": "estimator", "share": "share", "table": "table", "state": "state", "request": "broker"}


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
    """Byte strings that are accepted: the golden files', and those kept beside this file."""
    golden = json.loads((ROOT / f"tests/golden/{GOLDEN.get(name, 'records')}-v1.json").read_bytes())
    found = [bytes.fromhex(item["bytes"]) for item in golden if "bytes" in item]
    return found + [path.read_bytes() for path in sorted((ROOT / "tests/fuzz/seeds" / name).glob("*"))]


if __name__ == "__main__":
    main()
