"""Progress on standard error: lines without a terminal, moving lines on one; answers on standard output."""

import json
import os
import pty
import threading

import pytest

from executor.output import Progress, answer, echo, note, plain, table


def test_without_a_terminal_every_word_is_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    with Progress() as progress:
        progress.say("pull [1/2]")
        progress.say("node01: FIT", "node01")
        progress.say("node02: FIT", "node02")
        progress.say("node01: GET", "node01")
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == ["pull [1/2]", "node01: FIT", "node02: FIT", "node01: GET"]


@pytest.mark.parametrize(("total", "lines"), [(3, 3), (10, 10), (85, 10), (1000, 10)])
def test_without_a_terminal_pieces_print_a_line_for_each_tenth(
    capsys: pytest.CaptureFixture[str], total: int, lines: int
) -> None:
    with Progress(total) as progress:
        for number in range(total):
            progress.advance(f"piece {number}")
    err = capsys.readouterr().err.splitlines()
    assert len(err) == lines
    assert err[-1] == f"100 %  piece {total - 1}"


def test_on_a_terminal_each_row_has_one_line_and_nothing_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "100")
    shown = shown_on_a_terminal(monkeypatch)
    assert "node01 iteration 0: [FIT]" in shown
    assert "node02 iteration 0: [FIT]" in shown
    assert "\x1b[2K" in shown  # lines are erased and drawn again
    assert "2/5" in shown


def shown_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> str:
    reader, writer = pty.openpty()
    read: list[bytes] = []

    def drain() -> None:
        # The other end of a terminal that was closed answers with an error.
        try:
            while piece := os.read(reader, 65_536):
                read.append(piece)
        except OSError:
            pass

    thread = threading.Thread(target=drain)
    thread.start()
    with os.fdopen(writer, "w", encoding="utf-8") as terminal:
        monkeypatch.setattr("sys.stderr", terminal)
        with Progress() as progress:
            for node in ("node01", "node02"):
                progress.say(f"{node} iteration 0: [FIT]", node)
        with Progress(5) as progress:
            progress.advance("first")
            progress.advance("second")
        monkeypatch.undo()
    thread.join(150)
    os.close(reader)
    return b"".join(read).decode()


def test_an_answer_is_one_object_or_text(capsys: pytest.CaptureFixture[str]) -> None:
    answer({"a": [1]}, lambda: "text", as_json=True)
    answer({"a": [1]}, lambda: "text", as_json=False)
    first, second = capsys.readouterr().out.splitlines()
    assert json.loads(first) == {"a": [1]}
    assert second == "text"


def test_a_table_of_words_aligns_left() -> None:
    lines = table("T", ("name", "state"), [("a", "on"), ("long", "off")], figures=False).splitlines()
    assert lines[2:] == ["| name | state |", "|------|-------|", "| a    | on    |", "| long | off   |"]


HOSTILE = "ok\u202eelif\u2066 \x1b[31m\r\x07 \u200bx\U000e0041 \ud800"


def test_what_others_wrote_cannot_turn_hide_or_move_anything(capsys: pytest.CaptureFixture[str]) -> None:
    shown = plain(HOSTILE)
    assert shown.isprintable()
    assert shown == r"ok\u202eelif\u2066 \u001b[31m\u000d\u0007 \u200bx\U000e0041 \ud800"
    assert plain("Bank Zürich, 日本 ✓") == "Bank Zürich, 日本 ✓"
    echo(f"first {HOSTILE}\nsecond")
    note(HOSTILE)
    answer({}, lambda: HOSTILE, as_json=False)
    with Progress() as progress:
        progress.say(HOSTILE)
    found = capsys.readouterr()
    assert [line.isprintable() for line in (found.out + found.err).splitlines()] == [True] * 5


def test_a_line_break_in_a_cell_makes_no_second_row() -> None:
    text = table("Images", ("Name", "Description"), [("a", "x\n| b | forged")], figures=False)
    assert r"x\u000a| b | forged" in text
