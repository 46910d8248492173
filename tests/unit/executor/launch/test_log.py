"""The lines that launches keep: bounded, read through rotations and damage, printed by `executor logs`."""

import json
import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.memory.launches import Host, at_host, fresh

from executor.cli import main
from executor.exits import FAILED, USAGE
from executor.launch import log as kept
from executor.launch.log import LARGEST, Event, LaunchLog, LogEntry, LogReader, stamp
from executor.launch.log_command import _earliest


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with at_host(Host(socket_folder, fresh()), monkeypatch) as found:
        yield found


def entry(text: str, process: str = "p", node: str = "node01", age: timedelta = timedelta()) -> LogEntry:
    at = stamp(datetime.now(UTC) - age)
    return LogEntry(
        time=at, event=Event.NODE_STEP, organisation="org1", text=text, process=process, node=node
    )


def texts(lines: Iterator[bytes]) -> list[str]:
    found = [LogEntry.from_line(line) for line in lines]
    return [each.text for each in found if each is not None]


def printed(*options: str) -> Result:
    return CliRunner().invoke(main, ["logs", *options])


def test_a_line_says_what_was_said() -> None:
    made = LogEntry.now(Event.NODE_FAILED, "org1", "it failed", process="p", code="X", again_in=7.5)
    assert LogEntry.from_line(made.to_line().encode()) == made
    assert set(json.loads(made.to_line())) == {
        "time", "event", "organisation", "text", "process", "code", "again_in"
    }  # fmt: skip
    assert str(made) == f"{made.time} p: it failed [X]; again in 8 s"


def test_a_line_for_people_says_where_what_and_when_again() -> None:
    at = {"time": "T", "event": Event.NODE_STEP, "organisation": "org1", "text": "it works"}
    for more, shown in (
        ({}, "T org1: it works"),
        ({"process": "p", "node": "n", "iteration": 0}, "T p n iteration 0: it works"),
        ({"node": "n", "again_in": 0.0}, "T n: it works; again in 0 s"),
        ({"process": "p", "code": "X"}, "T p: it works [X]"),
    ):
        assert str(LogEntry(**{**at, **more})) == shown


@pytest.mark.parametrize("name", ["iteration", "exit_code", "again_in", "seconds", "block"])
def test_g9_a_number_of_a_line_is_a_number_and_not_too_large(name: str) -> None:
    whole = json.loads(entry("whole").to_line())

    def reads(value: object) -> bool:
        return LogEntry.from_line(json.dumps({**whole, name: value}).encode()) is not None

    assert [reads(value) for value in (3, 0, -(LARGEST - 1), LARGEST - 1)] == [True] * 4
    assert [reads(value) for value in ("3", [3], LARGEST, -LARGEST)] == [False] * 4


@pytest.mark.parametrize("name", ["time", "organisation", "text", "process", "node", "code"])
def test_g9_a_text_of_a_line_is_a_text(name: str) -> None:
    whole = {**json.loads(entry("whole").to_line()), "code": "X"}
    assert LogEntry.from_line(json.dumps(whole).encode()) is not None
    assert LogEntry.from_line(json.dumps({**whole, name: 3}).encode()) is None


def test_g9_lines_without_end_take_bounded_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_BYTES", 1000)
    log = LaunchLog(tmp_path, "org1")
    with LogReader(log) as reader:
        followed = []
        for number in range(60):
            log.write(entry(f"line {number:03d}"))
            followed += texts(reader.lines())
    assert followed == [f"line {number:03d}" for number in range(60)]
    files = sorted(log.folder.glob("*.jsonl"))
    assert len(files) == kept.KEPT + 1
    assert all(path.stat().st_size <= 1000 for path in files)
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}
    with LogReader(log) as reader:
        left = texts(reader.lines())
    assert left == followed[-len(left) :]
    assert 20 < len(left) < 60


def test_a_damaged_line_is_passed_over_and_half_a_line_waited_for(tmp_path: Path) -> None:
    log = LaunchLog(tmp_path, "org1")
    with LogReader(log) as reader:
        assert texts(reader.lines()) == []
        log.write(entry("first"))
        whole = entry("second").to_line().encode()
        with log.newest.open("ab") as file:
            file.write(
                b'{"time": 3}\nnonsense\n{"time": 3, "event": "node.step", "organisation": "o", "text": ""}\n'
            )
            file.write(whole[:20])
        assert texts(reader.lines()) == ["first"]
        with log.newest.open("ab") as file:
            file.write(whole[20:] + b"\n")
        assert texts(reader.lines()) == ["second"]


@pytest.mark.parametrize(
    "changes",
    [
        {"again_in": "soon"},
        {"again_in": 10**400},
        {"again_in": float("nan")},
        {"text": {}},
        {"organisation": None},
        {"node": 3},
    ],
    ids=str,
)
def test_g9_a_line_with_values_of_another_kind_is_passed_over(changes: dict[str, object]) -> None:
    whole = json.loads(entry("whole").to_line())
    assert LogEntry.from_line(json.dumps(whole).encode()) is not None
    assert LogEntry.from_line(json.dumps({**whole, **changes}).encode()) is None


def test_g9_a_line_without_end_takes_bounded_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MAX_BYTES", 1000)
    log = LaunchLog(tmp_path, "org1")
    log.write(entry("first"))
    with log.newest.open("ab") as file:
        file.write(b"x" * 10_500 + b"\n" + entry("last").to_line().encode() + b"\n")
    with LogReader(log) as reader:
        lines = list(reader.lines())
    assert max(map(len, lines)) < 1000
    assert texts(iter(lines)) == ["first", "last"]


def test_g9_a_pipe_in_place_of_the_file_keeps_nobody_waiting(host: Host) -> None:
    log = LaunchLog(host.state, "org1")
    log.write(entry("first"))
    log.newest.unlink()
    os.mkfifo(log.newest)
    log.write(entry("lost"))
    refused = printed("--json")
    error = json.loads(refused.stdout)["error"]
    assert (refused.exit_code, error["code"]) == (FAILED, "HOST_FAILED")
    assert "this is not a file" in error["cause"]


def test_half_a_line_that_a_full_disk_took_is_taken_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, whole = LaunchLog(tmp_path, "org1"), os.write
    log.write(entry("first"))
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda file, raw: whole(file, raw[:20]))
        log.write(entry("lost"))
    log.write(entry("last"))
    with LogReader(log) as reader:
        assert texts(reader.lines()) == ["first", "last"]


def test_a_reader_who_slept_through_several_rotations_misses_nothing_that_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kept, "MAX_BYTES", 1000)
    log = LaunchLog(tmp_path, "org1")
    with LogReader(log) as reader:
        log.write(entry("line 000"))
        followed = texts(reader.lines())
        for number in range(1, 25):
            log.write(entry(f"line {number:03d}"))
        followed += texts(reader.lines())
    assert followed == [f"line {number:03d}" for number in range(25)]


def test_a_copy_that_nobody_writes_to_can_be_read(tmp_path: Path) -> None:
    log = LaunchLog(tmp_path, "org1")
    log.write(entry("first"))
    (log.folder / "lock").unlink()
    with LogReader(log) as reader:
        assert texts(reader.lines()) == ["first"]
    assert not (log.folder / "lock").exists()


def test_a_disk_that_takes_no_line_keeps_nobody_from_working(tmp_path: Path) -> None:
    (tmp_path / "executor").write_text("a file where a folder should be")
    LaunchLog(tmp_path, "org1").write(entry("lost"))


def test_what_a_launch_did_can_be_read_afterwards(host: Host) -> None:
    assert printed().stdout == ""
    host.launch("--node", "node01", "--until-complete", *host.data)
    lines = [json.loads(line) for line in printed("--json").stdout.splitlines()]
    assert [line["event"] for line in lines if line["event"] != "node.step"] == [
        "task.done",
        "task.done",
        "node.finished",
    ]
    assert {(line["process"], line["node"]) for line in lines} == {(host.process, "node01")}
    host.launch("--node", "node02")
    (failed,) = printed("--node", "node02").stdout.splitlines()
    # The cause names a file of the operator's.
    assert failed.endswith(f"{host.process} node02: {kept_sentence()} [DATA_FILE]")


def kept_sentence() -> str:
    return "the task was given up; docs/codes.md has the meaning of the code"


def test_lines_are_chosen_by_process_node_and_time(host: Host) -> None:
    log = LaunchLog(host.state, "org1")
    log.write(entry("old", age=timedelta(hours=3)))
    log.write(entry("other process", process="q"))
    log.write(entry("other node", node="node02"))
    log.write(entry("a line\u202e"))

    def chosen(*options: str) -> list[str]:
        return [line.split(": ", 1)[1] for line in printed(*options).stdout.splitlines()]

    assert chosen("--process", "p", "--node", "node01") == ["old", "a line\\u202e"]
    assert chosen("--process", "q") == ["other process"]
    assert chosen("--since", "2h", "--process", "p") == ["other node", "a line\\u202e"]
    hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    assert chosen("--since", hour_ago, "--node", "node02") == ["other node"]
    assert chosen("--organisation", "org2") == []


@pytest.mark.parametrize(
    ("since", "span"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("2h", timedelta(hours=2)),
        ("99999d", timedelta(days=99999)),
    ],
)
def test_a_span_reaches_back_from_now(since: str, span: timedelta) -> None:
    before = datetime.now(UTC)
    earliest = _earliest(since)
    assert stamp(before - span) <= earliest <= stamp(datetime.now(UTC) - span)


def test_a_time_without_a_zone_is_meant_in_utc_wherever_the_host_is(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("TZ", "Asia/Tokyo")
        time.tzset()
        try:
            assert _earliest("2026-11-17T20:00:00") == "2026-11-17T20:00:00.000Z"
            assert _earliest("2026-11-17T20:00:00+02:00") == "2026-11-17T18:00:00.000Z"
        finally:
            elsewhere.undo()
            time.tzset()


def test_a_file_is_full_when_the_next_line_does_not_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, line = LaunchLog(tmp_path, "org1"), entry("line")
    monkeypatch.setattr(kept, "MAX_BYTES", 2 * (len(line.to_line()) + 1))
    for files in (1, 1, 2, 2, 3):
        log.write(line)
        assert len(list(log.folder.glob("launches*.jsonl"))) == files
    assert log.newest == tmp_path / "executor/org1/logs/launches.jsonl"
    assert (log.folder / "launches.2.jsonl").exists()


@pytest.mark.parametrize("when", ["yesterday", "5w", "-3h", "0001-01-01T00:00:00+14:00", "999999d"])
def test_a_time_that_is_none_is_refused(host: Host, when: str) -> None:
    refused = printed(f"--since={when}", "--json")
    assert (refused.exit_code, json.loads(refused.stdout)["error"]["code"]) == (USAGE, "LOGS_SINCE")
