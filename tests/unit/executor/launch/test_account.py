"""What is said of a node's work: every line with all that belongs to it, and each thing once."""

from types import SimpleNamespace
from typing import Any

import pytest

from executor.errors import DatasetError, IntegrityError, TaskError
from executor.exits import DATA_UNUSABLE, FAILED, IMAGE_INTEGRITY, LEDGER_UNREACHABLE
from executor.launch.account import Account
from executor.launch.agenda import Assignment
from executor.launch.log import Event, LogEntry
from executor.launch.news import News
from executor.launch.node_report import NodeReport
from executor.launch.nodes import account_for
from executor.launch.parts import PartTimes
from executor.launch.reasons import OTHERWISE, SENTENCES
from executor.launch.task_run import TaskSummary
from executor.launch.watchlist import MOST_ANNOUNCED, POLL
from executor.ledger.errors import PhaseError
from protocol.agreement.lifecycle import ProcessState
from protocol.task.opening import TaskId

UNREADABLE = DatasetError("DATA_FILE", "/srv/bank/rows.csv is not there", case="unnamed")
TAMPERED = IntegrityError("IMAGE_MISMATCH", "it is another")
STOPPED = TaskError("INTERRUPTED", "the operator stopped the executor")
AWAY = PhaseError("LEDGER_UNREACHABLE", "no peer answers")


class Said(list[dict[str, Any]]):
    """The lines that an account made, without their times."""

    def __init__(self) -> None:
        super().__init__()
        self.account = Account("org1", "p", self.keep)

    def keep(self, entry: LogEntry) -> None:
        line = vars(entry).copy()
        assert line.pop("time").endswith("Z")
        assert (line.pop("organisation"), line.pop("process")) == ("org1", "p")
        self.append({name: value for name, value in line.items() if value is not None})


def test_a_step_names_the_node_and_its_iteration() -> None:
    said = Said()
    said.account.step("node01", 3, "FIT")
    said.account.step("node02", None, "publishing the model")
    assert said == [
        {"event": Event.NODE_STEP, "text": "FIT", "node": "node01", "iteration": 3},
        {"event": Event.NODE_STEP, "text": "publishing the model", "node": "node02"},
    ]


def test_a_task_that_is_done_is_said_with_its_block_and_how_long_it_took() -> None:
    said, nothing = Said(), SimpleNamespace()
    result: Any = nothing
    said.account.done(TaskSummary(TaskId("p", "node01", 4), result, {}, 17, 1.23456, PartTimes()))
    done = {"event": Event.TASK_DONE, "text": "done", "node": "node01", "iteration": 4}
    assert said == [{**done, "seconds": 1.235, "block": 17}]


FAILURES = {
    "tried again": (UNREADABLE, 7.46, Event.NODE_FAILED, DATA_UNUSABLE, 7.5),
    "not tried again": (UNREADABLE, None, Event.NODE_FAILED, DATA_UNUSABLE, None),
    "lasting": (TAMPERED, None, Event.NODE_REFUSED, IMAGE_INTEGRITY, None),
    "lasting and tried again": (TAMPERED, 2.0, Event.NODE_FAILED, IMAGE_INTEGRITY, 2.0),
    "stopped": (STOPPED, None, Event.NODE_STOPPED, FAILED, None),
}


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failure_is_said_by_its_code_its_sentence_and_when_it_is_tried_again(kind: str) -> None:
    error, again_in, event, exit_code, shown = FAILURES[kind]
    said = Said()
    said.account.failed("node01", error, again_in)
    text = SENTENCES.get(error.code, OTHERWISE)
    line = {"event": event, "text": text, "node": "node01", "code": error.code, "exit_code": exit_code}
    assert said == [line if shown is None else {**line, "again_in": shown}]


def test_a_report_is_said_whole() -> None:
    said = Said()
    finished = {"model": "sha256:ab", "process": "completed"}
    report = NodeReport("node01", finished=finished, left=2, error=UNREADABLE, beside=[AWAY])
    account_for(report, said.account, 4.0)
    failed = {"event": Event.NODE_FAILED, "text": OTHERWISE, "node": "node01", "again_in": 4.0}
    assert said == [
        {**failed, "code": "DATA_FILE", "exit_code": DATA_UNUSABLE},
        {**failed, "code": "LEDGER_UNREACHABLE", "exit_code": LEDGER_UNREACHABLE},
        {"event": Event.NODE_LEFT, "text": "takes no part from here on", "node": "node01", "iteration": 2},
        {
            "event": Event.NODE_FINISHED,
            "text": "model sha256:ab is published; the process is completed",
            "node": "node01",
        },
    ]
    account_for(NodeReport("node01"), said.account)
    account_for(NodeReport("node02", error=TAMPERED), said.account)
    assert [line["event"] for line in said[4:]] == [Event.NODE_REFUSED]
    account_for(NodeReport("node02", left=0), said.account)
    assert said[-1]["iteration"] == 0


def test_a_report_as_json_has_every_failure_with_its_remedy() -> None:
    report = NodeReport("node01", left=2, error=UNREADABLE, beside=[AWAY], process="p")
    told = report.to_dict()
    assert told.pop("parts") == PartTimes().to_dict()
    assert told == {
        "process": "p",
        "node": "node01",
        "rounds": [],
        "finished": None,
        "left": 2,
        "error": {"code": "DATA_FILE", "cause": UNREADABLE.cause, "remedy": UNREADABLE.remedy},
        "beside": [{"code": "LEDGER_UNREACHABLE", "cause": AWAY.cause, "remedy": AWAY.remedy}],
    }


# --- what a service has said before ---


class Told(list[tuple[Any, ...]]):
    """What a service said."""

    def __init__(self) -> None:
        super().__init__()
        self.news = News(self.say)

    def say(self, event: Event, text: str, **more: Any) -> None:
        self.append((event, text, more))


def status(state: ProcessState) -> Any:
    return SimpleNamespace(status=state)


RUNS, COMPLETED = status(ProcessState.RUNNING), status(ProcessState.COMPLETED)


def test_a_process_is_said_to_run_once_and_to_have_ended_once() -> None:
    told = Told()
    told.news.read("foreign", RUNS, is_ours=False)
    told.news.read("foreign", COMPLETED, is_ours=False)
    told.news.read("over", COMPLETED, is_ours=True)
    assert told == []
    assert not told.news.is_running("foreign")
    for _ in range(2):
        told.news.read("p", RUNS, is_ours=True)
    assert told == [(Event.PROCESS_FOUND, "runs", {"process": "p"})]
    assert told.news.is_running("p")
    told.news.read("q", RUNS, is_ours=True)
    for _ in range(2):
        told.news.read("p", COMPLETED, is_ours=True)
        told.news.read("q", None, is_ours=False)
    assert told[2:] == [
        (Event.PROCESS_ENDED, "is completed", {"process": "p"}),
        (Event.PROCESS_ENDED, "is unknown", {"process": "q"}),
    ]
    assert not told.news.is_running("p")


def test_the_end_of_a_process_leaves_what_was_said_of_the_others() -> None:
    """Of the one that ended it is forgotten, as of a name that may come again."""
    told, report = Told(), NodeReport("node01", finished={"model": "m", "process": "running"})
    for process in ("p", "q"):
        told.news.read(process, RUNS, is_ours=True)
        assert told.news.of(Assignment(process, "node01"), report).finished is not None
    told.news.read("p", COMPLETED, is_ours=True)
    assert told.news.of(Assignment("q", "node01"), report).finished is None
    assert told.news.of(Assignment("p", "node01"), report).finished == report.finished


def test_what_is_no_news_is_left_out_and_nothing_else() -> None:
    told, assignment = Told(), Assignment("p", "node01")
    told.news.read("p", RUNS, is_ours=True)
    first = NodeReport("node01", finished={"model": "m", "process": "running"}, error=UNREADABLE)
    assert told.news.of(assignment, first) == first
    again = told.news.of(assignment, first)
    assert (again.left, again.finished, again.error) == (None, None, UNREADABLE)
    changed = NodeReport("node01", finished={"model": "m", "process": "completed"}, left=3)
    assert told.news.of(assignment, changed) == changed
    assert told.news.of(Assignment("p", "node02"), changed) == changed


def test_a_process_that_cannot_be_read_is_said_once_for_each_code_until_it_can() -> None:
    told, changed = Told(), PhaseError("PEERS_DISAGREE", "each says something else")
    for error in (AWAY, AWAY, changed, changed):
        told.news.unread("p", error)
    lines = [(event, text, more["code"]) for event, text, more in told]
    assert lines == [
        (Event.PROCESS_FAILED, "cannot be read", code) for code in ("LEDGER_UNREACHABLE", "PEERS_DISAGREE")
    ]
    assert told[0][2] == {
        "process": "p",
        "code": "LEDGER_UNREACHABLE",
        "exit_code": LEDGER_UNREACHABLE,
        "again_in": POLL,
    }
    told.news.read("p", RUNS, is_ours=False)
    told.news.unread("p", changed)
    assert len(told) == 3


def test_h1_of_names_that_a_peer_makes_up_only_so_many_are_said() -> None:
    told = Told()
    for number in range(MOST_ANNOUNCED + 5):
        told.news.unread(f"p{number}", AWAY)
    assert len(told) == MOST_ANNOUNCED
