"""What may be in a share: trees (D), creators and counters, sizes; and any bytes whatever get a code."""

import gzip
import io
import json
import pickle
import struct
import zipfile
import zlib
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.memory.federation import (
    EXECUTION,
    LIMITS,
    N_NEW,
    TWO_ROUNDS,
    Federation,
    changed,
    estimators,
    prepared,
)
from support.memory.ledger import VALID as COMMITTED

from protocol.errors import TABLE
from protocol.identifiers import EstimatorId
from protocol.task.payload import MAX_PAYLOAD
from protocol.task.result import TaskResult, ensemble_digest
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share, ShareLimits
from protocol.trees.tree import Tree

LEAF = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.0])
STUMP = Tree.from_arrays([0, -1, -1], [0.5, 0.0, 0.0], [1, -1, -1], [2, -1, -1], [0.0, 0.0, 1.0])


@pytest.fixture
def federation():
    return prepared()()


@pytest.fixture
def node(federation):
    player = federation.players["node01"]
    player.open(0)
    return player


@pytest.fixture(scope="module")
def standing():
    """One federation for tests that only try: nothing of what they send may be accepted."""
    player = Federation().players["node01"]
    player.open(0)
    return player


def named(tree, creator="node01", counter=0):
    return Estimator(EstimatorId(creator, counter), tree)


def share_of(*trees):
    """The bytes of a share whose trees are any bytes, as a hostile learner would write them."""
    parts = [struct.pack("<BH", 1, len(trees))]
    for counter, raw in enumerate(trees):
        parts += (bytes([6]), b"node01", struct.pack("<II", counter, len(raw)), raw)
    return b"".join(parts)


def code_of(player, raw):
    arguments, options = player.signed("Share", raw)
    return player.member.code(*arguments, **options)


def tree_bytes(features, thresholds=(), values=b"\0", flags=0, count=None):
    """A tree's bytes, field by field, right or wrong."""
    header = struct.pack("<BBH", 1, flags, len(features) if count is None else count)
    return header + bytes(features) + struct.pack(f"<{len(thresholds)}d", *thresholds) + values


HOSTILE_TREES = {
    "d1_d2_preorder_cannot_close_in_a_cycle": (tree_bytes([0, 0, 0], [0.5, 0.5, 0.5]), "TREE_LENGTH"),
    "d4_unreachable_node": (tree_bytes([255, 255, 0], [0.5], b"\0"), "TREE_SHAPE"),
    "d5_child_out_of_range": (tree_bytes([0, 0, 255], [0.5], b"\0"), "TREE_SHAPE"),
    "d6_one_child": (tree_bytes([0, 255], [0.5]), "TREE_SHAPE"),
    "d7_feature_beyond_the_schema": (tree_bytes([30, 255, 255], [0.5], b"\2"), "TREE_FEATURE_RANGE"),
    "d9_nan_threshold": (tree_bytes([0, 255, 255], [float("nan")], b"\2"), "TREE_THRESHOLD"),
    "d9_infinite_threshold": (tree_bytes([0, 255, 255], [float("-inf")], b"\2"), "TREE_THRESHOLD"),
    "d10_leaf_above_one": (
        tree_bytes([0, 255, 255], [0.5], struct.pack("<2d", 0.5, 1.5), flags=2),
        "TREE_LEAF_VALUE",
    ),
    "d10_leaf_nan": (
        tree_bytes([0, 255, 255], [0.5], struct.pack("<2d", 0.5, float("nan")), flags=2),
        "TREE_LEAF_VALUE",
    ),
    "d11_too_deep": (
        tree_bytes([0] * 65 + [255] * 66, [0.5] * 65, bytes(9)),
        "TREE_TOO_DEEP",
    ),
    "d12_more_nodes_than_allowed": (tree_bytes([], count=513), "TREE_TOO_MANY_NODES"),
    "d12_a_header_that_promises_65535_nodes": (tree_bytes([], count=65535), "TREE_TOO_MANY_NODES"),
    "d19_pickle": (pickle.dumps({"tree": [1, 2]}), "TREE_VERSION"),
    "d19_gzip_bomb": (gzip.compress(bytes(1 << 20)), "TREE_VERSION"),
    "d19_zlib": (zlib.compress(bytes(1 << 20)), "TREE_VERSION"),
    "d19_npy": (b"\x93NUMPY\x01\x00", "TREE_VERSION"),
    "d19_trailing_garbage": (STUMP.to_bytes() + b"\0", "TREE_LENGTH"),
    "d19_cut_short": (STUMP.to_bytes()[:-1], "TREE_LENGTH"),
    "minus_zero_threshold": (tree_bytes([0, 255, 255], [-0.0], b"\2"), "TREE_NOT_CANONICAL"),
    "no_bytes": (b"", "TREE_LENGTH"),
}


@pytest.mark.parametrize("name", HOSTILE_TREES)
def test_a_share_with_a_hostile_tree_is_refused_as_a_whole(standing, name):
    raw, code = HOSTILE_TREES[name]
    assert code_of(standing, share_of(LEAF.to_bytes(), raw)) == code


def test_d19_a_zip_is_no_share(standing):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("tree", STUMP.to_bytes())
    assert code_of(standing, packed.getvalue()) == "SHARE_VERSION"
    assert code_of(standing, pickle.dumps([STUMP.to_bytes()])) == "SHARE_VERSION"


def complete_all(federation):
    """Bring the first iteration of all nodes to its end; node01 has opened it."""
    federation.players["node01"].share()
    for name in ("node02", "node03", "node04"):
        federation.players[name].open(0)
        federation.players[name].share()
    for player in federation.players.values():
        player.complete()


def test_d15_a_forged_creator_is_refused(federation, node):
    forged = named(STUMP, "node02", 0)
    assert node.share_code((forged,)) == "ESTIMATOR_NOT_HELD"
    assert node.share_code((named(STUMP, "node99", 0),)) == "ESTIMATOR_NOT_HELD"
    complete_all(federation)
    node.open(1)
    assert node.share_code((forged,)) == "ESTIMATOR_CONFLICT"


def test_c3_h15_a_tree_that_was_never_offered_to_the_node_is_not_passed_on(federation, node):
    """It stands on the ledger for all to read; node01 was no recipient of node03."""
    complete_all(federation)
    node.open(1)
    assert node.share_code(estimators("node03", 0)[:1]) == "ESTIMATOR_NOT_HELD"
    assert node.share(estimators("node02", 0)[:2])["created"] == []


def test_c3_h15_a_tree_that_the_node_has_cropped_is_not_passed_on():
    federation = Federation(changed("steps", 0, "parameters", "n_max", 15, base=TWO_ROUNDS))
    for player in federation.players.values():
        player.open(0)
        player.share()
    node = federation.players["node01"]
    result = node.result()
    kept = dict(sorted(node.after.items())[:15])
    node.after = kept
    node.complete(replace(result, ensemble=tuple(kept), ensemble_digest=ensemble_digest(list(kept.items()))))
    node.open(1)
    assert node.share_code(estimators("node04", 0)[:1]) == "ESTIMATOR_NOT_HELD"
    assert node.share(estimators("node02", 0)[:1])["replayed"] is False


def large(number=0):
    """A tree that two nodes do not grow by chance."""
    return bushy(40, 0.25 + number / 8)


def test_h14_a_tree_taken_from_another_is_not_accepted_as_an_own_creation(federation, node):
    other = federation.players["node02"]
    other.open(0)
    taken, small = named(large(), "node02", 0), named(STUMP, "node02", 1)
    other.share((taken, small))
    node.share()
    for name in ("node03", "node04"):
        federation.players[name].open(0)
        federation.players[name].share()
    second, fourth = node.slots()
    members = {item.id: item.tree.digest for item in (*node.fitted(), taken, small)}
    node.complete(result_of(node, (second, replace(fourth, taken=())), members))
    node.open(1)
    assert node.share_code((named(large(), counter=N_NEW),)) == "ESTIMATOR_COPIED"
    assert node.share((named(STUMP, counter=N_NEW), named(large(1), counter=N_NEW + 1)))["created"]


def result_of(node, slots, members):
    """The result of a node that comes to an ensemble of these estimators."""
    node.after = dict(sorted(members.items()))
    digest = ensemble_digest(list(members.items()))
    return TaskResult(
        first=0,
        created=tuple(item.tree.digest for item in node.fitted()),
        slots=slots,
        ensemble=tuple(sorted(members)),
        ensemble_digest=digest,
        state=digest,
        metrics={},
    )


def test_h14_a_tree_brought_to_the_ledger_before_its_creator_stops_nobody_and_is_marked(federation, node):
    """An endorser sees a share before it is ordered, and may have its own node offer the same trees first."""
    thief = federation.players["node02"]
    thief.open(0)
    thief.share((named(large(), "node02", 0),))
    node.share((named(large(), "node01", 0), named(LEAF, "node01", 1)))
    found = federation.auditor2.evaluate(EXECUTION, "Twins", federation.process, str(large().digest))["items"]
    assert [(twin["id"], twin["n_internal"]) for twin in found] == [("node01/0000", 40), ("node02/0000", 40)]
    lineage = federation.auditor2.evaluate(EXECUTION, "Lineage", federation.process, "node01/0000")
    assert [twin["id"] for twin in lineage["twins"]] == ["node02/0000"]
    assert not federation.auditor2.evaluate(EXECUTION, "Lineage", federation.process, "node01/0001")["twins"]


def test_h14_two_nodes_that_share_one_tree_in_one_block_do_not_conflict(federation, node):
    thief = federation.players["node02"]
    thief.open(0)
    block = []
    for player, name in ((node, "node01"), (thief, "node02")):
        arguments, options = player.call_share((named(large(), name, 0),))
        block.append(player.member.endorse(*arguments, **options))
    assert federation.commit(block) == [COMMITTED, COMMITTED]


def test_d17_a_counter_beyond_this_fit_is_refused(node):
    assert node.share_code((named(STUMP, counter=N_NEW),)) == "ESTIMATOR_COUNTER"
    assert node.share_code((named(STUMP, counter=2**32 - 1),)) == "ESTIMATOR_COUNTER"
    assert node.share((named(STUMP, counter=N_NEW - 1),))["created"] == ["node01/0009"]


def test_d17_a_counter_reused_for_another_tree_is_refused(federation, node):
    node.share()
    for name in ("node02", "node03", "node04"):
        federation.players[name].open(0)
        federation.players[name].share()
    for player in federation.players.values():
        player.complete()
    node.open(1)
    assert node.share_code((named(STUMP, counter=0),)) == "ESTIMATOR_CONFLICT"
    assert node.share_code((named(STUMP, counter=2 * N_NEW),)) == "ESTIMATOR_COUNTER"


def test_d17_a_counter_going_back_to_another_tree_than_announced_is_refused(federation, node):
    node.share(estimators("node01", 0)[:1])
    for name in ("node02", "node03", "node04"):
        federation.players[name].open(0)
        federation.players[name].share()
    for player in federation.players.values():
        player.complete()
    node.open(1)
    assert node.share_code((named(STUMP, counter=5),)) == "ESTIMATOR_CONFLICT"
    assert node.share((estimators("node01", 0)[5],))["created"] == ["node01/0005"]


def test_d17_a_counter_no_round_announced_is_refused():
    """A node that joins a process with an initial model numbers after it; here the gap is made by hand."""
    federation = Federation()
    federation.play(0)
    node = federation.players["node01"]
    place = next(key for key in federation.state if key[1].startswith("\0creation\0fraud-2026\0node01"))
    estimator_key = place[0], place[1].replace("creation", "estimator")
    for key in (place, estimator_key):
        federation.state.pop(key)
        federation.versions.pop(key)
    node.open(1)
    assert node.share_code((estimators("node01", 0)[0],)) == "ESTIMATOR_COUNTER"


def test_d21_just_under_and_just_over_the_number_of_estimators(node):
    many = [named(LEAF, counter=counter) for counter in range(N_NEW + 1)]
    assert node.share_code(many) == "SHARE_COUNT"
    assert len(node.share(many[:N_NEW])["created"]) == N_NEW


def bushy(internal, leaf):
    """A tree with so many splits that is as shallow as can be."""
    nodes, splits = 2 * internal + 1, np.arange(internal)
    left, right = np.full(nodes, -1), np.full(nodes, -1)
    left[:internal], right[:internal] = 2 * splits + 1, 2 * splits + 2
    is_split = np.arange(nodes) < internal
    feature, threshold = np.where(is_split, 0, -1), np.where(is_split, 0.5, 0.0)
    return Tree.from_arrays(feature, threshold, left, right, np.where(is_split, 0.0, leaf))


def test_d21_a_share_of_as_many_bytes_as_may_be_and_one_more():
    trees = [bushy(255, 0.25)] * 227 + [bushy(2, 0.25), bushy(20, 1.0)]
    largest = Share(tuple(named(tree, counter=counter) for counter, tree in enumerate(trees)))
    assert len(largest.to_bytes()) == MAX_PAYLOAD == 1 << 20
    counts = {"n_new": len(trees), "n_max": len(trees), "n_share": len(trees)}
    parameters = TWO_ROUNDS["steps"][0]["parameters"] | counts
    node = Federation(changed("steps", 0, "parameters", parameters, base=TWO_ROUNDS)).players["node01"]
    node.open(0)
    assert code_of(node, largest.to_bytes() + b"\0") == "PAYLOAD_SIZE"
    assert len(node.share(largest.estimators)["created"]) == len(trees)


def test_d21_just_under_and_just_over_the_limits_of_trees():
    federation = Federation(
        changed(
            "steps",
            0,
            "parameters",
            "limits",
            {"n_features": 1, "max_internal": 2, "max_depth": 1},
            base=TWO_ROUNDS,
        )
    )
    node = federation.players["node01"]
    node.open(0)
    two_deep = Tree.from_arrays(
        [0, 0, -1, -1, -1], [0.5, 0.1, 0, 0, 0], [1, 2, -1, -1, -1], [4, 3, -1, -1, -1], [0, 0, 0, 1.0, 0]
    )
    assert node.share_code((named(two_deep),)) == "TREE_TOO_DEEP"
    wide = Tree.from_arrays([1, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1.0])
    assert node.share_code((named(wide),)) == "TREE_FEATURE_RANGE"
    assert node.share((named(STUMP),))["created"] == ["node01/0000"]


def test_an_estimator_stands_once_in_a_share(standing):
    entry = bytes([6]) + b"node01" + struct.pack("<II", 0, 6) + LEAF.to_bytes()
    assert code_of(standing, struct.pack("<BH", 1, 2) + entry + entry) == "SHARE_DUPLICATE"


def test_recipients_are_the_neighbours_and_nobody_else(federation, node):
    node.share()
    slots = [key for _, key in federation.state if key.startswith("\0slot\0")]
    assert sorted(slots) == ["\0slot\0fraud-2026\0node02\0node01\0", "\0slot\0fraud-2026\0node04\0node01\0"]


KNOWN = set(TABLE) | {"BAD_ARGUMENT", "BAD_ARGUMENT_COUNT"}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=300) | st.binary(max_size=100).map(lambda tail: Share(()).to_bytes() + tail))
def test_any_bytes_as_a_share_are_refused_with_a_code(standing, raw):
    if raw != Share(()).to_bytes():
        assert code_of(standing, raw) in KNOWN


VALID = Share(estimators("node01", 0)).to_bytes()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(position=st.integers(0, len(VALID) - 1), value=st.integers(0, 255))
def test_a_share_with_one_byte_changed_is_another_share_or_refused_with_a_code(standing, position, value):
    raw = VALID[:position] + bytes([value]) + VALID[position + 1 :]
    arguments, options = standing.signed("Share", raw)
    endorsed = standing.member.endorse(*arguments, **options)
    if endorsed.status >= 400:
        assert not endorsed.writes
        assert code_in(endorsed.message) in KNOWN
    else:
        accepted = Share.from_bytes(raw, ShareLimits(N_NEW), LIMITS)
        assert accepted.to_bytes() == raw


def code_in(message):
    return json.loads(message)["code"]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    field=st.sampled_from(["version", "public_key", "image_id", "state", "data", "extra"]), value=json_values
)
def test_any_value_in_an_opening_is_refused_with_a_code(standing, field, value):
    other = standing.federation.players["node02"]
    if (field, value) not in (("version", 1), ("state", None)):
        assert other.member.code(*other.call_open(0, **{field: value})) in KNOWN


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    field=st.sampled_from(["first", "created", "slots", "ensemble", "state", "metrics"]), value=json_values
)
def test_any_value_in_a_result_is_refused_with_a_code(shared_once, field, value):
    record = shared_once.good.to_dict()
    if record[field] == value or (field == "metrics" and value == {}):
        return
    raw = json.dumps({**record, field: value}, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    arguments, options = shared_once.signed("Complete", raw.encode("utf-8", "surrogatepass"))
    endorsed = shared_once.member.endorse(*arguments, **options)
    if endorsed.status >= 400:
        assert code_in(endorsed.message) in KNOWN
    else:
        assert field == "metrics"


@pytest.fixture(scope="module")
def shared_once():
    federation = Federation()
    for player in federation.players.values():
        player.open(0)
        player.share()
    player = federation.players["node01"]
    player.good = player.result()
    arguments, options = player.call_complete(player.good)
    assert player.member.endorse(*arguments, **options).status == 200
    return player
