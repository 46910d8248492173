import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.errors import IdentifierError
from protocol.identifiers import EstimatorId
from protocol.ledger import keys

TREE_42 = EstimatorId("node07", 42)
DIGEST = "sha256:" + 64 * "0"
BUILT = [
    (keys.image("attestree/learner", "1.0.0"), "image~attestree/learner~1.0.0"),
    (keys.imagename("attestree/learner"), "imagename~attestree/learner"),
    (keys.rebuild("a/b", "1", "Org1MSP"), "rebuild~a/b~1~Org1MSP"),
    (keys.process("p1"), "process~p1"),
    (keys.brief("running", "p1"), "brief~running~p1"),
    (keys.openprocesses("Org1MSP", 7), "openprocesses~Org1MSP~0000000007"),
    (keys.acceptance("p1", "Org1MSP"), "acceptance~p1~Org1MSP"),
    (keys.asks("p1", "Org1MSP"), "asks~p1~Org1MSP"),
    (keys.ask("p1", "Org1MSP", 3), "ask~p1~Org1MSP~0000000003"),
    (keys.agreement("p1", "Org1MSP", 3, "Org2MSP"), "agreement~p1~Org1MSP~0000000003~Org2MSP"),
    (keys.change("p1", 3), "change~p1~0000000003"),
    (keys.absence("p1", "node07", "Org2MSP"), "absence~p1~node07~Org2MSP"),
    (keys.departure("p1", "Org1MSP", "Org2MSP"), "departure~p1~Org1MSP~Org2MSP"),
    (keys.abort("p1", "Org1MSP"), "abort~p1~Org1MSP"),
    (keys.progress("p1", "node07"), "progress~p1~node07"),
    (keys.task("p1", "node07", 3), "task~p1~node07~0000000003"),
    (keys.estimator("p1", EstimatorId("node07", 42)), "estimator~p1~node07~0000000042"),
    (keys.sharedtree("p1", TREE_42), "sharedtree~p1~node07~0000000042"),
    (keys.slot("p1", "node01", "node02"), "slot~p1~node01~node02"),
    (keys.model("p1", "node07"), "model~p1~node07"),
    (keys.head("p1", "node07"), "head~p1~node07"),
    (keys.share("p1", 3, "node07"), "share~p1~0000000003~node07"),
    (keys.result("p1", 3, "node07"), "result~p1~0000000003~node07"),
    (keys.creation("p1", TREE_42), "creation~p1~node07~0000000042"),
    (keys.offer("p1", TREE_42, "node01", 3), "offer~p1~node07~0000000042~node01~0000000003"),
    (keys.taken("p1", "node07", 3, "node01", 4), "taken~p1~node07~0000000003~node01~0000000004"),
    (keys.twin("p1", DIGEST, "node07", 42), f"twin~p1~{DIGEST}~node07~0000000042"),
    (keys.initial("p1"), "initial~p1"),
    (keys.initialtree("p1", TREE_42), "initialtree~p1~node07~0000000042"),
    (keys.refusal("p1", "node07", 3, 1), "refusal~p1~node07~0000000003~0000000001"),
    (keys.taskkey(DIGEST), f"taskkey~{DIGEST}"),
    (keys.imageuse("a/b", "1", "p1", "node07", 3, 1), "imageuse~a/b~1~p1~node07~0000000003~0000000001"),
    (keys.challenge("p1", "node07", 3, "Org2MSP"), "challenge~p1~node07~0000000003~Org2MSP"),
    (keys.answer("p1", "node07", 3, "Org2MSP", "Org3MSP"), "answer~p1~node07~0000000003~Org2MSP~Org3MSP"),
    (keys.verdict("p1", "node07", 3, "Org2MSP", "Org3MSP"), "verdict~p1~node07~0000000003~Org2MSP~Org3MSP"),
    (keys.openchallenges("p1", "Org1MSP", "Org2MSP"), "openchallenges~p1~Org1MSP~Org2MSP"),
    (keys.access("p1", "node07"), "access~p1~node07"),
    (keys.requests("p1", "Org3MSP"), "requests~p1~Org3MSP"),
    (keys.request("p1", "node07", "Org3MSP", 3), "request~p1~node07~Org3MSP~0000000003"),
    (
        keys.decision("p1", "node07", "Org3MSP", 3, "Org1MSP"),
        "decision~p1~node07~Org3MSP~0000000003~Org1MSP",
    ),
    (keys.tree("p1", TREE_42, "node01"), "tree~p1~node07~0000000042~node01"),
    (keys.member("p1", TREE_42, "node01"), "member~p1~node07~0000000042~node01"),
]


@pytest.mark.parametrize(("key", "printed"), BUILT)
def test_each_key_parses_back_to_what_built_it(key, printed):
    parsed = keys.parse(key)
    assert str(parsed) == printed
    build = getattr(keys, parsed.kind)
    if keys.KINDS[parsed.kind][1:3] == ("creator", "counter"):
        process, creator, counter, *rest = parsed.parts
        assert build(process, EstimatorId(creator, counter), *rest) == key
    else:
        assert build(*parsed.parts) == key


def test_every_kind_is_built_above():
    assert [keys.parse(key).kind for key, _ in BUILT] == list(keys.KINDS)


def test_keys_are_composite_keys_of_fabric():
    assert keys.slot("p1", "node01", "node02") == "\0slot\0p1\0node01\0node02\0"


def test_a_slot_of_one_sender_is_not_that_of_another():
    assert keys.slot("p1", "node01", "node02") != keys.slot("p1", "node02", "node01")
    assert keys.slot("p1", "node01", "node02") != keys.slot("p1", "node0", "1node02")


@given(st.lists(st.integers(0, 2**32 - 1), min_size=2, max_size=6, unique=True))
def test_range_queries_return_counters_in_order(counters):
    built = sorted(keys.task("p1", "node07", counter) for counter in counters)
    assert [keys.parse(key).parts[-1] for key in built] == sorted(counters)


def test_a_prefix_finds_its_own_keys_only():
    start, end = keys.range_of(keys.prefix("slot", "p1", "node01"))
    assert start <= keys.slot("p1", "node01", "node02") < end
    for other in (
        keys.slot("p1", "node012", "node02"),
        keys.slot("p2", "node01", "node02"),
        keys.model("p1", "node01"),
    ):
        assert not start <= other < end


@pytest.mark.parametrize(
    "parts", [("slot", "p1", "Node01"), ("slot", "p1", "a", "b", "c"), ("nothing",), ("task", "p1", "a", -1)]
)
def test_a_prefix_of_no_key_is_refused(parts):
    with pytest.raises(IdentifierError):
        keys.prefix(*parts)


@pytest.mark.parametrize("name", ["", "a\0b", "a~b", "\U0010ffff", "A", "../x", None, 7])
def test_a_part_outside_its_grammar_builds_no_key(name):
    for build in (
        keys.process,
        lambda part: keys.slot("p1", "node01", part),
        lambda part: keys.task("p1", part, 1),
    ):
        with pytest.raises(IdentifierError):
            build(name)


@pytest.mark.parametrize("iteration", [-1, 2**32, "1", True, 1.0])
def test_c6_iteration_outside_its_range_builds_no_key(iteration):
    with pytest.raises(IdentifierError) as refusal:
        keys.task("p1", "node07", iteration)
    assert refusal.value.code == "COUNTER_RANGE"


@pytest.mark.parametrize(
    "key",
    [
        "",
        "\0",
        "\0\0",
        "slot",
        "\0slot\0p1\0node01\0",
        "\0slot\0p1\0node01\0node02",
        "slot\0p1\0node01\0node02\0",
        "\0slot\0p1\0node01\0node02\0\0",
        "\0slot\0p1\0Node01\0node02\0",
        "\0task\0p1\0node07\x003\0",
        "\0task\0p1\0node07\x009999999999\0",
        "\0task\0p1\0node07\x00000000000٣\0",
        "\0other\0p1\0",
        "\0process\0\0",
        None,
        7,
    ],
)
def test_a_key_this_module_would_not_build_is_refused(key):
    with pytest.raises(IdentifierError) as refusal:
        keys.parse(key)
    assert refusal.value.code == "KEY_SYNTAX"


def test_the_documentation_has_the_same_kinds():
    page = (Path(__file__).parents[3] / "docs" / "formats" / "keys-v1.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `(\w+)` \| ([\w, ]+) \|", page, re.MULTILINE)
    assert {kind: tuple(parts.split(", ")) for kind, parts in documented} == keys.KINDS
