"""Golden files: a single changed byte fails. docs/formats/README.md says why they are never edited."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from protocol import canonical
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.signing import SigningKey, VerifyKey, sign, signed_bytes, verify
from protocol.task.statement import TaskStatement, sign_statement
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share, ShareLimits
from protocol.trees.tree import FORMAT_LIMITS, Tree

GOLDEN = Path(__file__).parents[2] / "golden"


def load(name):
    return json.loads((GOLDEN / name).read_text(encoding="utf-8"))


TREES, SHARES, RECORDS = load("estimator-v1.json"), load("share-v1.json"), load("records-v1.json")
SIGNATURES = load("signatures-v1.json")


def name_of(case):
    return case["name"]


def tree_of(case):
    arrays = dict(case["arrays"])
    for name in ("threshold", "value"):
        arrays[name] = [canonical.parse_float(text) for text in arrays[name]]
    return Tree.from_arrays(**arrays)


def read_by_the_page(raw):
    """Read a tree by docs/formats/estimator-v1.md in the plainest way, with no code of the package."""
    flags, n_nodes = raw[1], int.from_bytes(raw[2:4], "little")
    width = 2 if flags & 1 else 1
    n_internal, position = n_nodes // 2, 4 + width * n_nodes
    features = [int.from_bytes(raw[at : at + width], "little") for at in range(4, position, width)]
    thresholds = iter(struct.unpack_from(f"<{n_internal}d", raw, position))
    position += 8 * n_internal
    if flags & 2:
        values = iter(struct.unpack_from(f"<{n_internal + 1}d", raw, position))
        position += 8 * (n_internal + 1)
    else:
        values = iter([float(raw[position + k // 8] >> k % 8 & 1) for k in range(n_internal + 1)])
        position += (n_internal + 8) // 8
    lefts = iter([flags & 4 and raw[position + k // 8] >> k % 8 & 1 for k in range(n_internal)])
    nodes = iter(features)

    def subtree():
        feature = next(nodes)
        if feature == 256**width - 1:
            return next(values)
        return [feature, next(thresholds), bool(next(lefts)), subtree(), subtree()]

    return subtree()


def nested(arrays, node=0):
    if arrays["left"][node] == -1:
        return float(arrays["value"][node])
    return [
        arrays["feature"][node],
        float(arrays["threshold"][node]),
        arrays["missing_left"][node],
        nested(arrays, arrays["left"][node]),
        nested(arrays, arrays["right"][node]),
    ]


@pytest.mark.parametrize("case", TREES, ids=name_of)
def test_trees_keep_their_bytes(case):
    tree = tree_of(case)
    assert tree.to_bytes().hex() == case["bytes"]
    assert str(tree.digest) == case["digest"]
    assert (tree.n_nodes, tree.depth) == (case["n_nodes"], case["depth"])


@pytest.mark.parametrize("case", TREES, ids=name_of)
def test_bytes_of_trees_keep_their_meaning(case):
    tree = Tree.from_bytes(bytes.fromhex(case["bytes"]), FORMAT_LIMITS)
    assert tree == tree_of(case)
    again = Tree.from_arrays(
        tree.feature, tree.threshold, tree.left, tree.right, tree.value, tree.missing_left
    )
    assert again == tree
    assert np.array_equal(again.right, tree.right)


@pytest.mark.parametrize("case", TREES, ids=name_of)
def test_the_page_alone_is_enough_to_read_a_tree(case):
    assert read_by_the_page(bytes.fromhex(case["bytes"])) == nested(case["arrays"])


@pytest.mark.parametrize("case", SHARES, ids=name_of)
def test_shares_keep_their_bytes(case):
    trees = {tree["name"]: bytes.fromhex(tree["bytes"]) for tree in TREES}
    estimators = tuple(
        Estimator(EstimatorId.parse(entry["id"]), Tree.from_bytes(trees[entry["tree"]], FORMAT_LIMITS))
        for entry in case["estimators"]
    )
    share = Share(estimators)
    assert share.to_bytes().hex() == case["bytes"]
    assert str(share.digest) == case["digest"]
    assert Share.from_bytes(bytes.fromhex(case["bytes"]), ShareLimits(10), FORMAT_LIMITS) == share


@pytest.mark.parametrize("case", RECORDS, ids=name_of)
def test_records_keep_their_bytes(case):
    raw = bytes.fromhex(case["bytes"])
    assert canonical.encode(case["record"]) == raw
    assert canonical.decode(raw) == case["record"]
    assert canonical.digest(case["record"]) == Digest.parse(case["digest"])


@pytest.mark.parametrize(
    "case", SIGNATURES["signatures"], ids=lambda case: f"{case['domain']} {case['message']}"
)
def test_signatures_keep_their_bytes(case):
    key = SigningKey(bytes.fromhex(SIGNATURES["seed"]))
    message = bytes.fromhex(case["message"])
    assert str(key.verify_key) == SIGNATURES["public_key"]
    assert signed_bytes(case["domain"], message).hex() == case["signed"]
    assert sign(key, case["domain"], message).hex() == case["signature"]


def test_the_task_statement_keeps_its_bytes():
    case = SIGNATURES["statement"]
    statement = TaskStatement.from_dict(case["record"])
    assert statement.to_bytes().hex() == case["bytes"]
    assert str(statement.digest) == case["digest"]
    assert sign_statement(SigningKey(bytes.fromhex(SIGNATURES["seed"])), statement).hex() == case["signature"]
    verify(
        VerifyKey.parse(SIGNATURES["public_key"]),
        "attestree/task",
        bytes.fromhex(case["bytes"]),
        bytes.fromhex(case["signature"]),
    )
