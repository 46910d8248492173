"""Evidence of a task: one form, and refused unless all of it is what the task committed to."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.memory.federation import Federation, estimators, prepared
from support.memory.story import MemberTransport

from executor.data import load
from executor.ledger.chaincodes.proxies import Ledger
from executor.replay.comparison import compare
from executor.replay.errors import EvidenceError
from executor.replay.evidence import Evidence
from executor.replay.recorded import Recorded, read_recorded
from executor.replay.run import ReplayedTask
from protocol.errors import StateError
from protocol.task.opening import TaskId
from protocol.task.result import TaskResult
from protocol.trees.share import Share

TASK = TaskId("fraud-2026", "node01", 0)
SALT = bytes(range(32))
DATA = b"a,b,Class\n1,2,0\n3,4,1\n"
EVIDENCE = Evidence(TASK, SALT, "Class", ("b",), ".csv", DATA, None, Share(()).to_bytes())


def one_round():
    federation = Federation()
    federation.play(0)
    return federation


@pytest.fixture
def federation():
    return prepared(one_round)()


@pytest.fixture
def recorded(federation):
    return read_recorded(Ledger(MemberTransport(federation.auditor1)), TASK)


@pytest.fixture
def evidence(recorded):
    """What opens the task, whose commitment is made to fit."""
    ids = sorted({id_ for offer in recorded.offers for id_ in offer.ids})
    held = {each.id: each for node in ("node02", "node04") for each in estimators(node, 0)}
    return replace(EVIDENCE, slots=Share(tuple(held[id_] for id_ in ids)).to_bytes())


@pytest.fixture
def fitting(recorded, evidence, tmp_path):
    """The same task, as if it had been opened with this evidence."""
    path = tmp_path / "data.csv"
    path.write_bytes(DATA)
    data = load(path, "Class", ("b",)).commitment(SALT)
    return replace(recorded, opening=replace(recorded.opening, data=data))


def test_evidence_is_read_as_it_was_written():
    for state in (None, b"", b"state"):
        made = replace(EVIDENCE, state=state)
        assert Evidence.from_bytes(made.to_bytes()) == made


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_h20_altered_evidence_is_refused_or_is_other_evidence(place, value):
    raw = bytearray(EVIDENCE.to_bytes())
    raw[place % len(raw)] = value
    try:
        found = Evidence.from_bytes(bytes(raw))
    except EvidenceError:
        return
    assert found.to_bytes() == bytes(raw)


@pytest.mark.parametrize("cut", [0, 5, 25, 60, -1])
def test_h20_evidence_that_is_cut_short_or_goes_on_is_refused(cut):
    raw = EVIDENCE.to_bytes()
    for altered in (raw[:cut], raw + b"x"):
        with pytest.raises(EvidenceError) as raised:
            Evidence.from_bytes(altered)
        assert raised.value.code == "EVIDENCE_FORMAT"


def test_what_a_task_read_is_found_again(recorded, evidence, fitting, tmp_path):
    assert [offer.sender for offer in recorded.offers] == ["node02", "node04"]
    assert recorded.neighbours == ("node02", "node04")
    assert len(evidence.opened(fitting, tmp_path).table.y) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"salt": bytes(32)},
        {"data": DATA + b"5,6,0\n"},
        {"data": b"\0"},
        {"label": "a"},
        {"drop": ()},
        {"state": b"another"},
        {"slots": Share(()).to_bytes()},
        {"slots": b"no trees"},
        {"task": TaskId("fraud-2026", "node01", 1)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_h17_what_is_not_what_the_task_committed_to_opens_nothing(fitting, evidence, change, tmp_path):
    with pytest.raises(EvidenceError) as raised:
        replace(evidence, **change).opened(fitting, tmp_path)
    assert raised.value.code == "EVIDENCE_OPENS"


def test_a_task_that_has_put_nothing_on_the_ledger_cannot_be_run_again(federation):
    federation.players["node01"].open(1)
    with pytest.raises(StateError) as raised:
        read_recorded(Ledger(MemberTransport(federation.auditor1)), TaskId("fraud-2026", "node01", 1))
    assert raised.value.code == "REPLAY_TASK"


def replayed(recorded: Recorded, result: TaskResult, share: Share) -> ReplayedTask:
    key = SimpleNamespace()
    verbs = ReplayedTask(recorded, key, b"")
    verbs.share(b"", share.to_bytes())
    assert verbs.slots().offers == recorded.offers
    verbs.complete(b"", result.to_bytes(), b"")
    assert verbs.is_done
    return verbs


def result_of(recorded: Recorded) -> TaskResult:
    found = recorded.task.outcome
    return TaskResult(
        found.created[0].id.counter,
        tuple(member.digest for member in found.created),
        found.slots,
        tuple(member.id for member in found.ensemble),
        found.ensemble_digest,
        found.state,
        found.metrics,
    )


def test_h17_a_replay_says_which_trees_differ(recorded):
    mine = Share(estimators("node01", 0))
    honest = result_of(recorded)
    same = compare(recorded, replayed(recorded, honest, mine))
    assert same.same
    assert same.replayed.result == recorded.task.outcome.signed.payload_digest
    swapped = replace(honest, created=(honest.created[1], honest.created[0], *honest.created[2:]))
    other = compare(recorded, replayed(recorded, swapped, Share(mine.estimators[:3])))
    assert [str(id_) for id_ in other.replayed.differing] == ["node01/0000", "node01/0001"]
    assert any("tree node01/0000 is" in line for line in other.differences)
    assert any("the share is" in line for line in other.differences)
    figures = compare(recorded, replayed(recorded, replace(honest, metrics={}), mine))
    assert figures.differences == ("the result names other slots, other figures or another output",)
