import json
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.digest import Digest
from protocol.errors import DataError, IdentifierError, NodeStateError, ShareError, TreeError
from protocol.identifiers import EstimatorId
from protocol.task.opening import TaskId
from protocol.task.result import ensemble_digest
from protocol.task.state import MAX_BYTES, StateRecord
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share
from protocol.trees.tree import FORMAT_LIMITS, Tree, TreeLimits

HERE = Path(__file__).parents[2] / "golden"
GOLDEN = json.loads((HERE / "state-v1.json").read_text(encoding="utf-8"))
TREES = {case["name"]: case for case in json.loads((HERE / "estimator-v1.json").read_text(encoding="utf-8"))}
LIMITS = TreeLimits(n_features=3)
LEAF = Tree.from_arrays([-1], [0.0], [-1], [-1], [0.0])
STUMP = Tree.from_arrays([2, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0.25, 1.0])


def estimator(creator, counter, tree=STUMP):
    return Estimator(EstimatorId(creator, counter), tree)


def state(**changes):
    fields = {
        "process": "fraud",
        "node": "node07",
        "iteration": 3,
        "seed": 42,
        "first": 0,
        "created": (LEAF.digest, STUMP.digest),
        "ensemble": (estimator("node02", 9), estimator("node07", 1)),
    }
    return StateRecord(**(fields | changes))


def raw_state(created, ensemble, *, process=b"fraud", node=b"node07", version=1, count=None):
    """Write a state by docs/formats/state-v1.md."""
    names = bytes([version, len(process)]) + process + bytes([len(node)]) + node
    count = len(created) if count is None else count
    numbers = struct.pack("<IQII", 3, 42, 0, count)
    return names + numbers + b"".join(digest.raw for digest in created) + Share(tuple(ensemble)).to_bytes()


GOOD = raw_state([LEAF.digest, STUMP.digest], [estimator("node02", 9), estimator("node07", 1)])


def refusal_of(raw, error=NodeStateError):
    with pytest.raises(error) as refusal:
        StateRecord.from_bytes(raw, LIMITS)
    return refusal.value.code


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: case["name"])
def test_states_keep_their_bytes(case):
    ensemble = tuple(
        Estimator(
            EstimatorId.parse(entry["id"]),
            Tree.from_bytes(bytes.fromhex(TREES[entry["tree"]]["bytes"]), FORMAT_LIMITS),
        )
        for entry in case["ensemble"]
    )
    numbers = (case["iteration"], case["seed"], case["first"])
    created = tuple(map(Digest.parse, case["created"]))
    record = StateRecord(case["process"], case["node"], *numbers, created, ensemble)
    assert record.to_bytes().hex() == case["bytes"]
    assert str(record.digest) == case["digest"]
    assert StateRecord.from_bytes(bytes.fromhex(case["bytes"]), FORMAT_LIMITS) == record


def test_the_layout_is_that_of_the_specification():
    assert state().to_bytes() == GOOD
    assert StateRecord.from_bytes(GOOD, LIMITS) == state()
    assert state().next_counter == 2


def test_the_ensemble_digest_is_that_of_results_and_models():
    members = [(member.id, member.tree.digest) for member in state().ensemble]
    assert state().ensemble_digest == ensemble_digest(members)


def test_a_model_to_start_from_numbers_new_trees_after_its_own():
    model = [estimator("node07", 41), estimator("node02", 3), estimator("node07", 7)]
    record = StateRecord.initial(TaskId("fraud", "node07", 2), 42, model)
    assert (record.iteration, record.first, record.next_counter, record.created) == (2, 42, 42, ())
    assert [str(member.id) for member in record.ensemble] == ["node02/0003", "node07/0007", "node07/0041"]
    assert StateRecord.from_bytes(record.to_bytes(), LIMITS) == record
    assert StateRecord.initial(TaskId("fraud", "node01", 0), 42, model).first == 0


def test_a_tree_under_the_own_name_that_was_never_created_is_refused():
    assert refusal_of(raw_state([LEAF.digest], [estimator("node07", 1)])) == "NODE_STATE_CREATED"


def test_a_tree_under_the_own_name_with_other_bytes_is_refused():
    swapped = raw_state([LEAF.digest, STUMP.digest], [estimator("node07", 0, STUMP)])
    assert refusal_of(swapped) == "NODE_STATE_CREATED"


def test_an_ensemble_in_another_order_or_with_an_id_twice_is_refused():
    turned = raw_state([LEAF.digest, STUMP.digest], [estimator("node07", 1), estimator("node02", 9)])
    assert refusal_of(turned) == "NODE_STATE_ORDER"
    twice = GOOD.replace(b"\x06node02\x09", b"\x06node07\x01")
    assert refusal_of(twice, ShareError) == "SHARE_DUPLICATE"


def test_truncation_and_trailing_bytes_are_refused():
    assert refusal_of(GOOD + b"\0", ShareError) == "SHARE_LENGTH"
    for length in range(len(GOOD)):
        assert refusal_of(GOOD[:length], DataError) in {
            "NODE_STATE_LENGTH", "SHARE_LENGTH", "NAME_LENGTH", "NAME_SYNTAX"
        }  # fmt: skip


def test_a_count_that_reaches_beyond_the_bytes_is_refused():
    assert refusal_of(raw_state([LEAF.digest], [], count=2**32 - 1)) == "NODE_STATE_LENGTH"


def test_every_tree_passes_the_door_of_the_process():
    with pytest.raises(TreeError):
        StateRecord.from_bytes(GOOD, TreeLimits(n_features=2))


@pytest.mark.parametrize("name", [b"", b"Fraud", b"\xff", b"a/b", b"a\0", b"a" * 65])
def test_names_outside_the_grammar_are_refused(name):
    assert refusal_of(raw_state([], [], process=name), IdentifierError).startswith("NAME_")
    assert refusal_of(raw_state([], [], node=name), IdentifierError).startswith("NAME_")


@pytest.mark.parametrize("version", [0, 2, 0x80])
def test_bytes_of_another_format_are_refused(version):
    assert refusal_of(raw_state([], [], version=version)) == "NODE_STATE_VERSION"


@pytest.mark.parametrize("raw", [None, "state", bytearray(GOOD)])
def test_what_is_not_bytes_is_refused(raw):
    assert refusal_of(raw) == "NODE_STATE_INPUT"


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": -1},
        {"seed": 2**53},
        {"seed": 1.0},
        {"created": [LEAF.digest]},
        {"created": ("sha256",)},
        {"first": 2**32 - 1, "ensemble": ()},
    ],
)
def test_impossible_values_are_refused(changes):
    with pytest.raises(NodeStateError) as refusal:
        state(**changes)
    assert refusal.value.code == "NODE_STATE_VALUE"


def test_d21_more_bytes_than_a_message_can_carry_are_refused():
    assert refusal_of(b"\1" * (MAX_BYTES + 1)) == "NODE_STATE_SIZE"
    with pytest.raises(NodeStateError) as refusal:
        state(created=(LEAF.digest, STUMP.digest) * (MAX_BYTES // 64)).to_bytes()
    assert refusal.value.code == "NODE_STATE_SIZE"


@given(st.integers(0, len(GOOD) - 1), st.integers(0, 255))
def test_b7_mutated_state_is_refused_or_is_another_state(position, byte):
    mutated = GOOD[:position] + bytes([byte]) + GOOD[position + 1 :]
    try:
        record = StateRecord.from_bytes(mutated, LIMITS)
    except DataError:
        return
    assert record.to_bytes() == mutated
    assert (record == state()) == (mutated == GOOD)
