"""docs/tutorial.md does what it says: its commands run one after the other and print what it shows."""

import os
import re
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.launching import caught_up
from support.network import ROOT

from protocol.digest import Digest

PAGE = ROOT / "docs/tutorial.md"
SET_UP = ("git clone URL attestree && cd attestree", "scripts/bootstrap", "network/up.sh")
CLEAN_UP = ('"$ATTESTREE/network/down.sh" --purge',)
END = "the block has ended"


@dataclass(frozen=True)
class Block:
    """Commands of the page, and lines that it shows of what they print; `…` stands for anything."""

    commands: str
    shown: tuple[str, ...]


def blocks() -> list[Block]:
    """Return the page's commands in their order."""
    found = re.findall(r"^```(sh|text)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    kinds = [kind for kind, _ in found] + ["sh"]
    return [
        Block(text, tuple(found[i + 1][1].splitlines()) if kinds[i + 1] == "text" else ())
        for i, (kind, text) in enumerate(found)
        if kind == "sh"
    ]


class Terminal:
    """One shell in which a reader types the blocks; it ends with the first command that fails."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._bash = subprocess.Popen(
            ["bash", "--noprofile", "--norc", "-euo", "pipefail"],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, commands: str) -> str:
        """Run a block to its end and return what it printed."""
        file = self._folder / "block.sh"
        file.write_text(commands)
        assert self._bash.stdin is not None
        assert self._bash.stdout is not None
        # Not as input of the shell itself, because a command might read on where the shell reads.
        self._bash.stdin.write(f". {file} </dev/null; echo '{END}'\n")
        self._bash.stdin.flush()
        printed = []
        for line in self._bash.stdout:
            if line == f"{END}\n":
                return "".join(printed)
            printed.append(line)
        raise AssertionError(f"a command failed in\n{commands}\nIt printed\n{''.join(printed)}")

    def close(self) -> None:
        """End the shell and all that it started."""
        os.killpg(self._bash.pid, signal.SIGKILL)
        self._bash.wait()


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    opened = Terminal(tmp_path)
    yield opened
    opened.close()


def test_set_up_and_clean_up_are_what_the_test_network_replaces() -> None:
    first, *_, last = blocks()
    assert tuple(first.commands.splitlines()) == SET_UP
    assert tuple(last.commands.splitlines()) == CLEAN_UP
    for command in ("scripts/bootstrap", "network/up.sh", "network/down.sh"):
        assert os.access(ROOT / command, os.X_OK)


@pytest.mark.timeout(900)
def test_every_block_runs_and_prints_what_the_page_shows(terminal: Terminal, learner_id: Digest) -> None:
    _, *others, _ = blocks()
    assert len(others) > 10
    for block in others:
        # A reader pauses between two blocks, and the peers catch up meanwhile.
        caught_up()
        printed = [line.rstrip() for line in terminal.run(block.commands).splitlines()]
        for line in block.shown:
            pattern = ".*".join(map(re.escape, line.rstrip().split("…")))
            assert any(re.fullmatch(pattern, seen) for seen in printed), (line, printed)
