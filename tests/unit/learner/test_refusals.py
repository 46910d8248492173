"""Each check of the learner, by the attack it stops; each exit code of docs/formats/broker-v1.md."""

import io
import re
import struct
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.memory.broker_double import HangUpError
from support.memory.learners import LIMITS, table_of
from support.memory.scene import NEIGHBOUR, SEED, Scene, fitted, offered, refusing, some, state_record

from learner.key import read_key
from learner.outcome import Exit, StopError
from learner.run import run_task
from learning.ensemble import Ensemble
from protocol import canonical
from protocol.broker.answers import Offer
from protocol.broker.messages import Verb
from protocol.digest import Digest
from protocol.identifiers import EstimatorId
from protocol.signing import SigningKey
from protocol.task.opening import TaskId, statement
from protocol.task.result import TaskResult, ensemble_digest
from protocol.task.state import StateRecord
from protocol.task.statement import Action, verify_statement
from protocol.task.table import Table
from protocol.trees.estimator import Estimator
from protocol.trees.share import Share
from protocol.trees.tree import Tree

STUMP = Tree.from_arrays([0, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1.0])
VERBS = [Verb.TASK, Verb.SHARE, Verb.SLOTS, Verb.COMPLETE]


def refused(scene, folder, exit_code, words, after=()):
    """The round ends with this code and words that match, after these verbs were answered."""
    found, said, asked = scene.run(folder)
    assert (found, [request.verb for request in asked]) == (exit_code, list(after)), said
    assert re.search(words, said)


def test_the_scene_is_a_round_that_succeeds(tmp_path):
    exit_code, said, asked = Scene().run(tmp_path)
    assert (exit_code, said) == (Exit.DONE, "complete")
    assert [request.verb for request in asked] == VERBS


def test_both_signatures_are_those_of_the_task_and_of_no_other(tmp_path):
    scene = Scene()
    _, _, asked = scene.run(tmp_path)
    key = SigningKey(SEED).verify_key
    for request, action in ((asked[1], Action.SHARE), (asked[3], Action.COMPLETE)):
        payload = Digest.of(request.blobs[0])
        said = statement(scene.task, scene.commitment(), action, payload)
        verify_statement(key, said, request.signature)


# --- key -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [b"", SEED[:-1], SEED + b"\0", SEED * 2])
def test_b12_a_short_or_long_key_is_refused_before_anything_is_asked(tmp_path, key):
    refused(Scene(key=key), tmp_path, Exit.KEY, "not the 32 bytes of a key")


def test_b3_a_key_that_the_task_is_not_opened_with_is_refused(tmp_path):
    refused(Scene(key=bytes(32)), tmp_path, Exit.KEY, "not the one", [Verb.TASK])


def test_b8_the_key_is_wiped_once_it_is_made_and_shows_itself_nowhere():
    kept = []

    class Source(io.BytesIO):
        def readinto(self, buffer):
            kept.append(buffer)
            return super().readinto(buffer)

    key = read_key(Source(SEED))
    assert key.verify_key == SigningKey(SEED).verify_key
    assert all(bytes(view) == bytes(len(view)) for view in kept)
    assert SEED.hex() not in repr(key)


def test_a_key_that_comes_in_pieces_is_read_whole():
    class Slow(io.BytesIO):
        def readinto(self, buffer):
            return super().readinto(buffer[:5])

    assert read_key(Slow(SEED)).verify_key == SigningKey(SEED).verify_key


def test_a_key_whose_stream_breaks_is_refused():
    class Broken(io.BytesIO):
        def readinto(self, buffer):
            raise OSError(5, "Input/output error")

    with pytest.raises(StopError) as stop:
        read_key(Broken())
    assert stop.value.exit_code is Exit.KEY


# --- task ------------------------------------------------------------------------------------------------


def with_parameters(**changes):
    scene = Scene()
    scene.parameters |= changes
    return scene


def test_parameters_other_than_those_committed_to_are_refused(tmp_path):
    scene = Scene(opening={"parameter_hash": str(canonical.digest(Scene().parameters))})
    scene.parameters["n_new"] = 5
    refused(scene, tmp_path, Exit.TASK, "parameters have digest", [Verb.TASK])


def test_a_feature_schema_other_than_the_one_committed_to_is_refused(tmp_path):
    scene = Scene(opening={"schema_digest": str(some(9))})
    refused(scene, tmp_path, Exit.TASK, "feature schema", [Verb.TASK])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"surplus": 1}, "RECORD_FIELDS"),
        ({"n_new": -1}, "PROCESS_VALUE"),
        ({"n_share": 99}, "PROCESS_VALUE"),
        ({"limits": {"n_features": 0}}, "PROCESS_VALUE"),
        ({"options": {"rankign": "kernel"}}, "PARAMETER_RANGE"),
        ({"options": {"fit": "unknown"}}, "PARAMETER_RANGE"),
        ({"options": {"mu": ["0.0"], "sigma": ["1.0"]}}, "mu and sigma are given for 1 of 4"),
        ({"initial_model": {}}, "PROCESS_FIELDS"),
        ({"kind": "single"}, "only an iterative step has neighbours"),
    ],
)
def test_parameters_that_no_round_can_follow_are_refused(tmp_path, changes, words):
    refused(with_parameters(**changes), tmp_path, Exit.TASK, words, [Verb.TASK])


def test_a_node_that_is_its_own_neighbour_is_refused(tmp_path):
    scene = Scene(neighbours=("node01", NEIGHBOUR))
    refused(scene, tmp_path, Exit.TASK, "own neighbour", [Verb.TASK])


def test_limits_that_make_trees_nobody_can_rank_are_refused(tmp_path):
    deep = {"sigma": ["1e-300"] * 4, "mu": ["0.0"] * 4}
    scene = with_parameters(options=deep)
    refused(scene, tmp_path, Exit.TASK, "KERNEL_OVERFLOW", [Verb.TASK])


# --- rows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (None, "FileNotFoundError"),
        (b"", "TABLE_LENGTH"),
        (b"\x80\x04" + bytes(20), "TABLE_VERSION"),
        (table_of(1).to_bytes()[:-1], "TABLE_LENGTH"),
        (Table(np.zeros((5, 3), np.float32), np.zeros(5, int)).to_bytes(), "3 features, the process has 4"),
    ],
)
def test_d24_g8_rows_that_are_not_those_of_the_process_are_refused(tmp_path, rows, words):
    refused(Scene(rows=rows), tmp_path, Exit.ROWS, words, [Verb.TASK])


@pytest.mark.parametrize(
    "table",
    [
        Table(table_of(1).X, np.zeros(120, int)),
        Table(table_of(1).X, np.ones(120, int)),
        Table(table_of(1).X[:1], np.ones(1, int)),
        Table(np.full((50, 4), np.nan, np.float32), np.arange(50) % 2),
        Table(np.zeros((50, 4), np.float32), np.arange(50) % 2),
        Table(np.full((50, 4), 3.4e38, np.float32), np.arange(50) % 2),
    ],
    ids=["g1-no-positives", "no-negatives", "g2-one-row", "g3-all-missing", "g6-all-equal", "largest-values"],
)
def test_odd_rows_make_a_round_like_any_other(tmp_path, table):
    exit_code, said, asked = Scene(rows=table.to_bytes()).run(tmp_path)
    assert exit_code == Exit.DONE, said
    assert len(TaskResult.from_bytes(asked[3].blobs[0]).created) == 4


# --- state -----------------------------------------------------------------------------------------------


def state_is_refused(folder, record, words, **changes):
    raw = record if isinstance(record, bytes) else record.to_bytes()
    refused(Scene(state=raw, **changes), folder, Exit.STATE, words, [Verb.TASK])


def test_a_swapped_state_is_refused(tmp_path):
    committed = Digest.of(state_record().to_bytes())
    other = state_record(created=(*state_record().created, some(7)))
    state_is_refused(tmp_path, other, "state has digest", opening={"state": str(committed)})


def test_the_state_of_another_node_or_process_is_refused(tmp_path):
    state_is_refused(tmp_path, state_record(NEIGHBOUR), f"that of {NEIGHBOUR} in fraud")
    state_is_refused(tmp_path, state_record(process="other"), "that of node01 in other")


def test_a_state_of_a_later_iteration_is_refused(tmp_path):
    state_is_refused(tmp_path, state_record(iteration=2), "for iteration 2, the task is iteration 1")


def test_a_state_of_an_earlier_iteration_that_the_ledger_names_is_taken(tmp_path):
    scene = Scene(task=TaskId("fraud", "node01", 4))
    scene.offers = (replace(scene.offers[0], iteration=4),)
    assert scene.run(tmp_path)[0] == Exit.DONE


def test_a_state_that_the_task_does_not_commit_to_is_refused(tmp_path):
    state_is_refused(tmp_path, state_record(), "commits to none", opening={"state": None})


def test_a_missing_state_is_refused(tmp_path):
    scene = Scene(state=None, opening={"state": str(some(1))})
    refused(scene, tmp_path, Exit.STATE, "commits to a state", [Verb.TASK])


@pytest.mark.parametrize(
    "raw", [b"", b"\x02", state_record().to_bytes()[:-1], state_record().to_bytes() + b"\0"]
)
def test_bytes_that_are_no_state_are_refused(tmp_path, raw):
    state_is_refused(tmp_path, raw, "_LENGTH|_VERSION")


def test_a_state_with_trees_beyond_the_limits_is_refused(tmp_path):
    wide = Tree.from_arrays([9, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1.0])
    record = state_record(ensemble=(Estimator(EstimatorId("node09", 0), wide),))
    state_is_refused(tmp_path, record, "TREE_FEATURE_RANGE")


# --- initial model ---------------------------------------------------------------------------------------

MODEL = Ensemble.of([*fitted("node01", 1).ensemble, *offered().estimators])


def model_digest(estimators):
    return ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in estimators])


def from_model(record, digest=None):
    digest = str(digest or model_digest(MODEL))
    scene = Scene(task=TaskId("fraud", "node01", 0), opening={"state": None})
    scene.parameters["initial_model"] = {"process": "first", "node": NEIGHBOUR, "digest": digest}
    scene.state = None if record is None else record.to_bytes()
    scene.offers = (replace(scene.offers[0], iteration=0),)
    return scene


def initial(**changes):
    record = StateRecord.initial(TaskId("fraud", "node01", 0), 42, MODEL.estimators)
    return replace(record, **changes)


def test_a_node_starts_from_the_model_and_numbers_after_it(tmp_path):
    exit_code, said, asked = from_model(initial()).run(tmp_path)
    assert exit_code == Exit.DONE, said
    state = StateRecord.from_bytes(asked[3].blobs[1], LIMITS)
    assert (state.first, len(state.created), state.iteration) == (4, 4, 1)


@pytest.mark.parametrize(
    "changes",
    [{"first": 5}, {"seed": 41}, {"created": (some(1),)}],
)
def test_a_beginning_that_is_not_made_by_the_rule_is_refused(tmp_path, changes):
    refused(from_model(initial(**changes)), tmp_path, Exit.STATE, "begins with", [Verb.TASK])


def test_another_model_than_the_one_the_process_names_is_refused(tmp_path):
    short = initial(ensemble=MODEL.estimators[:-1])
    refused(from_model(short), tmp_path, Exit.STATE, "initial model has digest", [Verb.TASK])


def test_a_model_that_is_not_there_is_refused(tmp_path):
    refused(from_model(None), tmp_path, Exit.STATE, "model that is not here", [Verb.TASK])


# --- offered trees ---------------------------------------------------------------------------------------


def bundle(*estimators):
    return Share(Ensemble.of(estimators).estimators).to_bytes()


def trees_are_refused(folder, words, **changes):
    refused(Scene(**changes), folder, Exit.TREES, words, [Verb.TASK, Verb.SHARE, Verb.SLOTS])


def test_a_tree_tampered_with_on_the_way_is_refused(tmp_path):
    first, *rest = offered().estimators
    trees_are_refused(tmp_path, "have digest", bundle=bundle(Estimator(first.id, STUMP), *rest))


def test_d5_bytes_that_are_no_tree_are_refused(tmp_path):
    raw = bytearray(Scene().bundle)
    raw[-1] ^= 0xFF
    trees_are_refused(tmp_path, "TREE_|SHARE_|have digest", bundle=bytes(raw))
    trees_are_refused(tmp_path, "SHARE_LENGTH", bundle=bytes(raw[:-1]))


def test_d7_a_tree_beyond_the_limits_of_the_process_is_refused(tmp_path):
    wide = Tree.from_arrays([4, -1, -1], [0.5, 0, 0], [1, -1, -1], [2, -1, -1], [0, 0, 1.0])
    share = Share((Estimator(EstimatorId(NEIGHBOUR, 0), wide),))
    offers = (Offer(NEIGHBOUR, 1, share.digest, share.ids),)
    trees_are_refused(tmp_path, "TREE_FEATURE_RANGE", offers=offers, bundle=share.to_bytes())


def test_an_estimator_that_no_slot_names_is_refused(tmp_path):
    extra = Estimator(EstimatorId("node03", 0), STUMP)
    trees_are_refused(tmp_path, "SHARE_COUNT", bundle=bundle(*offered().estimators, extra))


def test_an_estimator_that_is_named_and_missing_is_refused(tmp_path):
    trees_are_refused(tmp_path, "not those that the slots name", bundle=bundle(*offered().estimators[1:]))


def test_estimators_in_another_order_are_refused(tmp_path):
    turned = Share(Ensemble.of(offered().estimators).estimators[::-1]).to_bytes()
    trees_are_refused(tmp_path, "not those that the slots name", bundle=turned)


def test_a_slot_of_a_node_that_is_no_neighbour_is_refused(tmp_path):
    share = offered("node03")
    offers = (Offer("node03", 1, share.digest, share.ids),)
    trees_are_refused(tmp_path, "not a neighbour", offers=offers, bundle=bundle(*share.estimators))


@pytest.mark.parametrize("iteration", [0, 2])
def test_a_share_of_another_iteration_is_refused_in_a_synchronous_step(tmp_path, iteration):
    offers = (Offer(NEIGHBOUR, iteration, offered().digest, offered().ids),)
    trees_are_refused(tmp_path, "the task is 1", offers=offers)


def test_d14_empty_slots_are_a_round_like_any_other(tmp_path):
    nothing = Share(())
    scene = Scene(offers=(Offer(NEIGHBOUR, 1, nothing.digest, ()),), bundle=nothing.to_bytes())
    assert scene.run(tmp_path)[0] == Exit.DONE
    assert Scene(offers=(), bundle=nothing.to_bytes()).run(tmp_path)[0] == Exit.DONE


# --- broker ----------------------------------------------------------------------------------------------


def hang_up():
    raise HangUpError


@pytest.mark.parametrize("number", range(4))
def test_a_broker_that_hangs_up_ends_the_round(tmp_path, number):
    scene = Scene(answers={VERBS[number]: hang_up})
    refused(scene, tmp_path, Exit.BROKER, "the broker hung up", VERBS[: number + 1])


@pytest.mark.parametrize("number", range(4))
def test_what_the_ledger_refuses_is_told_with_its_code(tmp_path, number):
    scene = Scene(answers={VERBS[number]: refusing()})
    words = f"{VERBS[number]} is refused: TASK_EXPIRED: the task's time is over. Launch the round again."
    refused(scene, tmp_path, Exit.BROKER, re.escape(words), VERBS[: number + 1])


@pytest.mark.parametrize(
    "raw",
    [b"HTTP/1.1 200 OK\r\n\r\n", struct.pack("<BI", 1, 2**31), struct.pack("<BI", 1, 2) + b"[]",
     struct.pack("<BI", 1, 20) + b'{"blobs":[],"ok":{}}'],
)  # fmt: skip
def test_a_broker_that_speaks_another_protocol_ends_the_round(tmp_path, raw):
    refused(Scene(answers={Verb.TASK: raw}), tmp_path, Exit.BROKER, "FRAME_", [Verb.TASK])


def test_without_a_broker_there_is_no_round(tmp_path):
    with pytest.raises(StopError) as stop:
        run_task(tmp_path, io.BytesIO(SEED), print, print)
    assert stop.value.exit_code is Exit.BROKER


# --- documentation ---------------------------------------------------------------------------------------


def test_every_exit_code_is_documented():
    page = (Path(__file__).parents[3] / "docs/formats/broker-v1.md").read_text(encoding="utf-8")
    documented = [int(number) for number in re.findall(r"^\| (\d+) \| ", page, re.MULTILINE)]
    assert documented == [code.value for code in Exit]
