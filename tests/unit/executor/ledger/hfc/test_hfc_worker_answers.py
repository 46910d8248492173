"""What the executor makes of what an hfc worker says, honest or not: real processes play the worker."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from executor.errors import LedgerError
from executor.ledger.errors import PhaseError
from executor.ledger.hfc import call
from executor.ledger.hfc.call import Worker
from executor.ledger.hfc.client import receipt_of
from executor.ledger.transport import Receipt
from protocol.errors import AccessError, StateError

TX = "ab" * 32
REFUSAL = '{"code":"IMAGE_EXISTS","message":"it is on the ledger. Give a new build a new version"}'


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Start a worker whose script is given."""
    script = tmp_path / "worker.py"
    monkeypatch.setattr(call, "hfc_python", lambda: Path(sys.executable))
    monkeypatch.setattr(call, "WORKER", script)

    def start(source: str, verb: str = "submit", seconds: float = 150.0) -> Worker:
        script.write_text(source)
        return Worker({"verb": verb, "seconds": seconds})

    return start


def said(*lines: Any) -> str:
    """A worker that says these lines and ends."""
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    return f"import sys\nsys.stdin.read()\nfor line in {texts!r}:\n    print(line, flush=True)\n"


def error(kind: str, **more: Any) -> dict[str, Any]:
    record = {"kind": kind, "cause": "why", "tx_id": TX, "details": [], "validation": "", "block": 0}
    return {"error": record | more}


def detail(message: str) -> list[dict[str, str]]:
    return [{"address": "127.0.0.1:1", "msp": "Org1MSP", "message": message}]


def outcome(worker: Worker) -> LedgerError:
    with worker, pytest.raises(LedgerError) as caught:
        worker.answer()
    return caught.value


def test_answer_is_returned_and_no_process_is_left(play: Any) -> None:
    with play(said({"sent": TX}, {"answer": {"block": 3}})) as worker:
        assert worker.answer() == {"block": 3}
    assert worker._process.returncode is not None


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[1]",
        "3",
        "{}",
        {"answer": {}, "sent": TX},
        {"answer": "text"},
        {"sent": 3},
        {"secret": "x"},
        {"error": {"kind": "refused"}},
        error("refused", tx_id=None),
        error("refused", block=True),
        error("refused", details=[{"address": "x"}]),
        error("refused", details=["x"]),
        {"error": error("refused")["error"] | {"more": 1}},
        "[" * 100_000,
    ],
)
def test_line_of_another_form_is_refused(play: Any, line: Any) -> None:
    assert outcome(play(said(line))).code == "HFC_FAILED"


def test_worker_that_dies_is_an_error_with_its_last_words(play: Any) -> None:
    failed = outcome(play("import sys\nsys.stdin.read()\nsys.exit('no such file')"))
    assert failed.code == "HFC_FAILED"
    assert "no such file" in failed.cause


def test_worker_that_dies_before_it_reads_is_an_error(play: Any) -> None:
    assert outcome(play("raise SystemExit(3)")).code == "HFC_FAILED"


def test_worker_that_ends_without_a_word_is_an_error(play: Any) -> None:
    assert outcome(play(said())).code == "HFC_FAILED"


def test_worker_that_hangs_is_killed(play: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call, "GRACE_SECONDS", 0.5)
    assert outcome(play("import threading\nthreading.Event().wait()", seconds=0.5)).code == "HFC_FAILED"


@pytest.mark.parametrize(
    "end", [(), ("garbage",), (error("timeout"),), (error("unknown"),), (error("stream"),)]
)
def test_outcome_of_a_transaction_that_was_sent_is_unknown_not_failed(
    play: Any, end: tuple[Any, ...]
) -> None:
    failed = outcome(play(said({"sent": TX}, *end)))
    assert isinstance(failed, PhaseError)
    assert (failed.code, failed.phase, failed.tx_id) == ("COMMIT_UNKNOWN", "commit status", TX)


@pytest.mark.parametrize(
    "answer",
    [
        {},
        {"tx_id": "cd" * 32, "block": 3, "payload": ""},
        {"tx_id": TX, "block": "3", "payload": ""},
        {"tx_id": TX, "block": 3, "payload": "no base64!"},
    ],
)
def test_receipt_that_cannot_be_read_leaves_the_outcome_unknown(play: Any, answer: dict[str, Any]) -> None:
    with play(said({"sent": TX}, {"answer": answer})) as worker, pytest.raises(PhaseError) as caught:
        receipt_of(worker)
    assert (caught.value.code, caught.value.tx_id) == ("COMMIT_UNKNOWN", TX)


def test_receipt_is_read(play: Any) -> None:
    answer = {"tx_id": TX, "block": 3, "payload": call.encoded(b"\xff")}
    with play(said({"sent": TX}, {"answer": answer})) as worker:
        assert receipt_of(worker) == Receipt(TX, 3, b"\xff")


def test_failed_endorsement_is_raised_in_the_refusals_class(play: Any) -> None:
    with play(said(error("refused", details=detail(REFUSAL)))) as worker, pytest.raises(StateError) as caught:
        worker.answer()
    assert caught.value.code == "IMAGE_EXISTS"
    phase = caught.value.__cause__
    assert isinstance(phase, PhaseError)
    assert (phase.phase, phase.tx_id, phase.details[0].msp) == ("endorse", TX, "Org1MSP")


def test_channel_policy_is_an_access_error(play: Any) -> None:
    denied = error("failed", details=detail("UNKNOWN: access denied: channel [attestree]"))
    with play(said(denied), "evaluate") as worker, pytest.raises(AccessError) as caught:
        worker.answer()
    assert caught.value.code == "ACCESS_DENIED"


@pytest.mark.parametrize(
    ("verb", "reported", "phase", "code"),
    [
        ("evaluate", error("refused"), "evaluate", "EVALUATE_FAILED"),
        ("evaluate", error("unreachable"), "evaluate", "LEDGER_UNREACHABLE"),
        ("evaluate", error("timeout"), "evaluate", "LEDGER_TIMEOUT"),
        ("submit", error("mismatch"), "endorse", "ENDORSE_FAILED"),
        ("submit", error("unreachable"), "endorse", "LEDGER_UNREACHABLE"),
        ("submit", error("no-orderer"), "submit", "LEDGER_UNREACHABLE"),
        ("submit", error("rejected"), "submit", "SUBMIT_FAILED"),
        ("submit", error("rejected", cause="exceeds maximum"), "submit", "TRANSACTION_TOO_LARGE"),
        ("submit", error("invalid", validation="MVCC_READ_CONFLICT"), "commit", "LEDGER_CONFLICT"),
        ("submit", error("invalid", validation="BAD_RWSET"), "commit", "TRANSACTION_INVALID"),
    ],
)
def test_each_failure_is_an_error_of_its_phase(
    play: Any, verb: str, reported: Any, phase: str, code: str
) -> None:
    failed = outcome(play(said(reported), verb))
    assert isinstance(failed, PhaseError)
    assert (failed.phase, failed.code) == (phase, code)


def test_worker_gets_no_environment_and_no_argument_of_the_operator(
    play: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    source = (
        "import json, os, sys\nsys.stdin.read()\n"
        "print(json.dumps({'answer': {'variables': sorted(os.environ), 'arguments': sys.argv[1:]}}))"
    )
    with play(source) as worker:
        answer = worker.answer()
    assert set(answer["variables"]) <= {"LC_ALL", "LC_CTYPE", "GRPC_VERBOSITY"}
    assert answer["arguments"] == []


@pytest.mark.parametrize("text", [None, 3, "a", "YQ", "YQ==\n", "é"])
def test_bytes_that_are_not_base64_are_refused(text: Any) -> None:
    with pytest.raises(LedgerError):
        call.decoded(text)
