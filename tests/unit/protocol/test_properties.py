"""Any tree, any mutation: the parsers accept exactly what the writers write."""

import struct
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from support.tree_arrays import arrays

from protocol import canonical
from protocol.errors import DataError, TreeError
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share, ShareLimits
from protocol.trees.tree import FORMAT_LIMITS, Tree, TreeLimits

LIMITS = TreeLimits(n_features=400, max_internal=40, max_depth=40)
SHARE_LIMITS = ShareLimits(max_count=8)


def as_tree(columns):
    return Tree.from_arrays(*columns, limits=LIMITS)


trees = arrays().map(as_tree)


@given(arrays())
def test_arrays_survive_the_round_trip(columns):
    tree = as_tree(columns)
    again = Tree.from_bytes(tree.to_bytes(), LIMITS)
    assert again == tree
    feature, threshold, left, right, value, missing = columns
    node_of = {0: 0}
    for here in range(again.n_nodes):
        there = node_of[here]
        assert again.is_leaf[here] == (left[there] == -1)
        if again.is_leaf[here]:
            assert again.value[here] == value[there]
        else:
            assert again.left[here] == here + 1
            assert (again.feature[here], again.threshold[here]) == (feature[there], threshold[there])
            assert again.missing_left[here] == missing[there]
            node_of[again.left[here]], node_of[again.right[here]] = left[there], right[there]
    assert len(node_of) == len(feature)


@given(arrays(), st.randoms(use_true_random=False))
def test_renumbering_the_nodes_changes_no_byte(columns, random):
    n_nodes = len(columns[0])
    order = list(range(1, n_nodes))
    random.shuffle(order)
    new = dict(zip([0, *range(1, n_nodes)], [0, *order], strict=True)) | {-1: -1}
    shuffled = [[None] * n_nodes for _ in columns]
    for column, target in zip(columns, shuffled, strict=True):
        for node, entry in enumerate(column):
            target[new[node]] = new[entry] if column is columns[2] or column is columns[3] else entry
    assert as_tree(shuffled).to_bytes() == as_tree(columns).to_bytes()


def mutations(raws):
    """One byte replaced, inserted or deleted."""

    @st.composite
    def mutate(draw):
        raw = draw(raws)
        position = draw(st.integers(0, len(raw)))
        byte = bytes([draw(st.integers(0, 255))])
        kind = draw(st.sampled_from(["replace", "insert", "delete"]))
        if kind == "insert":
            return raw, raw[:position] + byte + raw[position:]
        return raw, raw[:position] + (byte if kind == "replace" and position < len(raw) else b"") + raw[
            position + 1 :
        ]

    return mutate()


def canonical_again(tree):
    """Write the tree anew from its arrays, so that equality says something about the bytes that were read."""
    columns = (tree.feature, tree.threshold, tree.left, tree.right, tree.value, tree.missing_left)
    return Tree.from_arrays(*columns, limits=replace(FORMAT_LIMITS, format=tree.format)).to_bytes()


@given(mutations(trees.map(Tree.to_bytes)))
def test_b7_mutated_tree_is_refused_or_is_another_tree(pair):
    original, mutated = pair
    try:
        tree = Tree.from_bytes(mutated, LIMITS)
    except TreeError:
        return
    assert canonical_again(tree) == mutated
    assert (tree == Tree.from_bytes(original, LIMITS)) == (mutated == original)


@given(st.binary(max_size=200))
def test_any_bytes_are_refused_or_are_a_tree(raw):
    for candidate in (raw, b"\x01" + raw, b"\x02" + raw):
        try:
            tree = Tree.from_bytes(candidate, replace(LIMITS, format=2))
        except TreeError:
            continue
        assert canonical_again(tree) == candidate


@given(st.integers(0, 7), st.integers(0, 9), st.binary(max_size=64))
def test_bytes_with_a_plausible_header_are_refused_or_are_a_tree(flags, n_nodes, rest):
    raw = struct.pack("<BBH", 1, flags, n_nodes) + rest
    try:
        tree = Tree.from_bytes(raw, LIMITS)
    except TreeError:
        return
    assert canonical_again(tree) == raw


@given(st.data())
def test_any_arrays_are_refused_or_are_a_tree(data):
    n_nodes = data.draw(st.integers(1, 7))
    column = st.lists(st.integers(-2, n_nodes), min_size=n_nodes, max_size=n_nodes)
    left, right = data.draw(column), data.draw(column)
    zeros = np.zeros(n_nodes)
    try:
        tree = Tree.from_arrays(np.zeros(n_nodes, int), zeros, left, right, zeros, limits=LIMITS)
    except TreeError:
        return
    # What was accepted has one parent for each node but the root.
    assert sorted(child for child in left + right if child != -1) == list(range(1, n_nodes))
    assert tree.n_nodes == n_nodes


ids = st.builds(EstimatorId, st.text("abz09", min_size=1, max_size=4), st.integers(0, 2**32 - 1))
shares = st.lists(st.builds(Estimator, ids, trees), max_size=4, unique_by=lambda estimator: estimator.id).map(
    lambda estimators: Share(tuple(estimators))
)


@given(shares)
def test_shares_survive_the_round_trip(share):
    assert Share.from_bytes(share.to_bytes(), SHARE_LIMITS, LIMITS) == share


@given(mutations(shares.map(Share.to_bytes)))
def test_b7_mutated_share_is_refused_or_is_another_share(pair):
    original, mutated = pair
    try:
        share = Share.from_bytes(mutated, SHARE_LIMITS, LIMITS)
    except DataError:
        return
    assert share.to_bytes() == mutated
    assert (share == Share.from_bytes(original, SHARE_LIMITS, LIMITS)) == (mutated == original)


texts = st.text(st.characters(exclude_categories=["Cs", "Cc", "Cn"]), max_size=8)
records = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)


def encoded(record):
    try:
        return canonical.encode(record)
    except DataError:
        assume(False)  # Text that is not in form NFC.
        raise


@given(records)
def test_records_survive_the_round_trip(record):
    assert canonical.decode(encoded(record)) == record


@given(mutations(records.map(encoded)))
def test_b7_mutated_record_is_refused_or_is_another_record(pair):
    _, mutated = pair
    try:
        record = canonical.decode(mutated)
    except DataError:
        return
    assert canonical.encode(record) == mutated


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_floats_survive_as_text(number):
    text = canonical.float_text(number)
    assert canonical.parse_float(text) == number
    with pytest.raises(DataError):
        canonical.parse_float("+" + text)
