"""A task's key, name and end: wiped whatever fails, of one task alone, closed in fixed words."""

import contextlib
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.memory.launches import LearnerContainer

from executor.errors import IntegrityError, TaskError
from executor.exits import gravest
from executor.launch import task_run
from executor.launch.node_report import NodeReport
from executor.launch.reasons import OTHERWISE, SENTENCES, closing_words, fit_for_record
from executor.launch.session import STORE_LABEL, NodeSession
from executor.launch.task_run import container_name, refuse, run_task
from executor.ledger.errors import PhaseError
from protocol import canonical
from protocol.digest import Digest
from protocol.errors import AttestreeError, FrameError, defined, error_from
from protocol.task.opening import Opening, TaskId

LABELS = {"attestree.network": "net", STORE_LABEL: "a"}
TASK = TaskId("p", "node01", 0)
UNREACHABLE = PhaseError("LEDGER_UNREACHABLE", "no peer answers")


class FailingLedger:
    """Refuses whatever is written."""

    def __init__(self) -> None:
        self.execution = self
        self.told: list[tuple[Any, ...]] = []

    def open_task(self, *said: Any) -> Any:
        self.told.append(said)
        raise UNREACHABLE

    refuse = fail = open_task


def session(ledger: Any, folder: Path) -> NodeSession:
    from executor.launch.store import NodeStore

    store, nothing = NodeStore(folder, "org1", "p", "node01"), SimpleNamespace()
    with store.locked():
        return NodeSession("p", "node01", ledger, nothing, store, LABELS, 1.0)  # type: ignore[arg-type]


def planned() -> Any:
    digest = Digest.of(b"anything")
    context = SimpleNamespace(task_seconds=1, organisation="Org1MSP", neighbours=())
    table = SimpleNamespace(to_bytes=lambda: b"rows")
    return SimpleNamespace(
        task=SimpleNamespace(id=TASK),
        opening=lambda key: Opening(key, digest, digest, digest, digest, None, digest, digest),
        context=context,
        dataset=SimpleNamespace(table=table),
        state=None,
        profile=SimpleNamespace(to_record=dict),
    )


def test_b8_the_key_is_wiped_also_when_the_task_cannot_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys: list[bytearray] = []

    def kept(raw: bytes) -> bytearray:
        keys.append(bytearray(raw))
        return keys[-1]

    monkeypatch.setattr(task_run, "bytearray", kept, raising=False)
    monkeypatch.setattr(task_run, "Container", LearnerContainer)
    with pytest.raises(PhaseError):
        run_task(planned(), session(FailingLedger(), tmp_path), lambda _: None)
    assert keys == [bytearray(32)]


def test_a_stopped_executor_opens_no_task(tmp_path: Path) -> None:
    held = session(FailingLedger(), tmp_path)
    held.stopping.set()
    with pytest.raises(TaskError, match="INTERRUPTED"):
        run_task(planned(), held, lambda _: None)
    assert held.store.begun() is None


def test_f7_long_names_of_two_tasks_are_two_names() -> None:
    long = "p" * 60
    names = {
        container_name({**LABELS, "attestree.network": "n" * 60, STORE_LABEL: store}, TaskId(long, node, i))
        for node in ("n" * 60 + "1", "n" * 60 + "2")
        for i in (1, 11)
        for store in ("a", "b")
    }
    assert len(names) == 8
    assert all(len(name) < 128 for name in names)
    assert container_name(LABELS, TASK).startswith("net-p-node01-0-")


def test_a_refusal_that_cannot_be_recorded_is_a_refusal_all_the_same(tmp_path: Path) -> None:
    held = session(FailingLedger(), tmp_path)
    error = IntegrityError("IMAGE_MISMATCH", "another image", {"found": "x"})
    refuse(held, TASK, error)
    report = NodeReport("node01", error=error, beside=held.beside)
    assert gravest(report.failures) is error
    assert report.to_dict()["beside"][0]["code"] == "LEDGER_UNREACHABLE"


def test_the_gravest_of_several_failures_decides() -> None:
    slow, tampered = error_from("WAIT_TIMEOUT", "", ""), IntegrityError("IMAGE_MISMATCH", "another image")
    assert gravest([TaskError("INTERRUPTED", ""), slow, UNREACHABLE, tampered]) is tampered
    assert gravest([TaskError("INTERRUPTED", ""), UNREACHABLE]) is UNREACHABLE


@pytest.mark.parametrize(
    "error",
    [
        FrameError("FRAME_VERB", "'card 4929 1234 of Ada' is not a verb"),
        error_from("card 4929 1234 of Ada", "card 4929 1234 of Ada", "none"),
        TaskError("HOST_FAILED", "/home/Ada/bank 4929: No space left on device"),
    ],
)
def test_f9_g9_neither_the_learner_s_words_nor_the_operator_s_paths_reach_the_ledger(
    error: AttestreeError,
) -> None:
    code, reason = closing_words(error)
    assert code in {"FRAME_VERB", "OTHER_FAILURE", "HOST_FAILED"}
    assert reason in {*SENTENCES.values(), OTHERWISE}


def test_every_sentence_belongs_to_a_code() -> None:
    of_this_room = {"EXECUTOR_LOST"}
    assert set(SENTENCES) - of_this_room <= set(defined())


@pytest.mark.parametrize("text", ["\x1b[31m\x00", "\ud800", "\u202e", "e\u0301" * 400, "a" * 9999])
def test_evidence_can_always_be_recorded(text: str) -> None:
    fit = fit_for_record({"found": text})
    canonical.encode({**fit})
    assert len(fit["found"]) <= 300
    with contextlib.suppress(UnicodeEncodeError):
        os.fsencode(fit["found"])
