import struct

import pytest

from protocol.errors import IdentifierError, ShareError, TreeError
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share, ShareLimits
from protocol.trees.tree import Tree, TreeLimits

TREE_LIMITS = TreeLimits(n_features=3)
LIMITS = ShareLimits(max_count=3)
LEAF = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.0])
STUMP = Tree.from_arrays([2, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0.25, 1.0])
SHARE = Share((Estimator(EstimatorId("node07", 42), STUMP), Estimator(EstimatorId("node02", 7), LEAF)))


def entry(creator, counter, tree, length=None):
    size = len(tree) if length is None else length
    return bytes([len(creator)]) + creator + struct.pack("<II", counter, size) + tree


def bundle(*entries, count=None, version=1):
    return struct.pack("<BH", version, len(entries) if count is None else count) + b"".join(entries)


GOOD = bundle(entry(b"node07", 42, STUMP.to_bytes()), entry(b"node02", 7, LEAF.to_bytes()))


def refusal_of(raw, limits=LIMITS, error=ShareError):
    with pytest.raises(error) as refusal:
        Share.from_bytes(raw, limits, TREE_LIMITS)
    return refusal.value.code


def test_the_layout_is_that_of_the_specification():
    assert SHARE.to_bytes() == GOOD
    assert Share.from_bytes(GOOD, LIMITS, TREE_LIMITS) == SHARE
    assert [str(estimator_id) for estimator_id in SHARE.ids] == ["node07/0042", "node02/0007"]


def test_the_order_is_the_ranking_and_part_of_the_digest():
    turned = Share(SHARE.estimators[::-1])
    assert turned.digest != SHARE.digest
    assert Share.from_bytes(turned.to_bytes(), LIMITS, TREE_LIMITS).ids == SHARE.ids[::-1]


def test_d14_an_empty_share_works():
    empty = Share(())
    assert empty.to_bytes() == b"\x01\x00\x00"
    assert Share.from_bytes(empty.to_bytes(), ShareLimits(0), TREE_LIMITS) == empty


def test_equal_trees_under_two_ids_are_both_carried():
    twins = Share((Estimator(EstimatorId("node02", 1), LEAF), Estimator(EstimatorId("node02", 2), LEAF)))
    assert Share.from_bytes(twins.to_bytes(), LIMITS, TREE_LIMITS) == twins


def test_an_id_that_stands_twice_is_refused():
    twice = entry(b"node07", 42, LEAF.to_bytes())
    assert refusal_of(bundle(twice, twice)) == "SHARE_DUPLICATE"
    assert refusal_of(bundle(twice, entry(b"node07", 42, STUMP.to_bytes()))) == "SHARE_DUPLICATE"
    with pytest.raises(ShareError) as refusal:
        Share((SHARE.estimators[0], SHARE.estimators[0]))
    assert refusal.value.code == "SHARE_DUPLICATE"


def test_d21_count_and_size_just_under_and_over_each_limit():
    entries = [entry(b"node07", counter, LEAF.to_bytes()) for counter in range(4)]
    assert len(Share.from_bytes(bundle(*entries[:3]), LIMITS, TREE_LIMITS).ids) == 3
    assert refusal_of(bundle(*entries)) == "SHARE_COUNT"
    assert Share.from_bytes(GOOD, ShareLimits(3, max_bytes=len(GOOD)), TREE_LIMITS) == SHARE
    assert refusal_of(GOOD, ShareLimits(3, max_bytes=len(GOOD) - 1)) == "SHARE_SIZE"


def test_d19_trailing_garbage_and_truncation_are_refused():
    assert refusal_of(GOOD + b"\x00") == "SHARE_LENGTH"
    for length in range(len(GOOD)):
        assert refusal_of(GOOD[:length]) == "SHARE_LENGTH"


def test_count_that_differs_from_the_content_is_refused():
    assert refusal_of(bundle(entry(b"a", 1, LEAF.to_bytes()), count=2)) == "SHARE_LENGTH"
    assert refusal_of(bundle(entry(b"a", 1, LEAF.to_bytes()), count=0)) == "SHARE_LENGTH"


def test_length_that_reaches_beyond_the_bytes_is_refused():
    assert refusal_of(bundle(entry(b"a", 1, LEAF.to_bytes(), length=2**32 - 1))) == "SHARE_LENGTH"


@pytest.mark.parametrize(
    "raw", [b"\x00\x00\x00", b"\x02\x00\x00", b"\x80\x04\x95", b"\x1f\x8b\x08", b"PK\x03\x04"]
)
def test_d19_bytes_of_another_format_are_refused(raw):
    assert refusal_of(raw) == "SHARE_VERSION"


@pytest.mark.parametrize(
    "creator", [b"", b"Node07", b"node 07", b"\xff\xfe", b"a/b", b"a\x00", "nodé".encode()]
)
def test_d15_creator_outside_the_grammar_is_refused(creator):
    raw = bundle(entry(creator, 1, LEAF.to_bytes()))
    assert refusal_of(raw, error=IdentifierError) in {"NAME_SYNTAX", "NAME_LENGTH"}


def test_every_tree_passes_its_own_door():
    assert refusal_of(bundle(entry(b"a", 1, LEAF.to_bytes() + b"\x00")), error=TreeError) == "TREE_LENGTH"
    assert refusal_of(bundle(entry(b"a", 1, b"")), error=TreeError) == "TREE_LENGTH"


def test_d21_a_share_the_format_cannot_count_is_refused():
    many = tuple(Estimator(EstimatorId("node07", counter), LEAF) for counter in range(65_536))
    assert len(Share(many[1:]).ids) == 65_535
    with pytest.raises(ShareError) as refusal:
        Share(many)
    assert refusal.value.code == "SHARE_COUNT"


@pytest.mark.parametrize("raw", [None, "share", bytearray(GOOD)])
def test_what_is_not_bytes_is_refused(raw):
    assert refusal_of(raw) == "SHARE_INPUT"


@pytest.mark.parametrize("estimators", [None, [SHARE.estimators[0]], (LEAF,), ((EstimatorId("a", 1), LEAF),)])
def test_only_a_tuple_of_estimators_is_a_share(estimators):
    with pytest.raises(ShareError) as refusal:
        Share(estimators)
    assert refusal.value.code == "SHARE_INPUT"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ((-1,), "SHARE_COUNT"),
        ((65_536,), "SHARE_COUNT"),
        ((1.0,), "SHARE_COUNT"),
        ((1, 2), "SHARE_SIZE"),
        ((1, None), "SHARE_SIZE"),
    ],
)
def test_impossible_limits_are_refused(arguments, code):
    with pytest.raises(ShareError) as refusal:
        ShareLimits(*arguments)
    assert refusal.value.code == code
