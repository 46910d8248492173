"""What a test that takes too long says of the processes it may have waited for."""

import os
import subprocess
import sys
from pathlib import Path

from runner.processes import related
from runner.results import read
from runner.surroundings import ROOT

HANGS = """
import os, signal, subprocess, sys

def test_hangs():
    reader, writer = os.pipe()
    program = "import os; os.read(0, 1)"
    subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE, pass_fds=(writer,))
    os.close(writer)
    signal.setitimer(signal.ITIMER_REAL, 0.01)  # the time that is left, now that the program runs
    os.read(reader, 1)
"""


def test_a_program_that_holds_a_pipe_is_named() -> None:
    reader, writer = os.pipe()
    program = [sys.executable, "-c", "input()"]
    with subprocess.Popen(program, stdin=subprocess.PIPE, pass_fds=(writer,)) as child:
        pipe = str(Path(f"/proc/self/fd/{writer}").readlink())
        lines = [line for line in related() if line.startswith(f"{child.pid} of {os.getpid()}: ")]
        child.communicate(b"\n")
    os.close(reader)
    os.close(writer)
    assert len(lines) == 1
    assert pipe in lines[0]
    assert "input()" in lines[0]


def test_processes_of_others_are_left_out() -> None:
    assert not any(line.startswith("1 of 0: ") for line in related())


def test_a_test_that_takes_too_long_shows_whom_it_may_have_waited_for(tmp_path: Path) -> None:
    file = tmp_path / "test_hangs.py"
    file.write_text(HANGS)
    options = ["-p", "conftest", "-p", "no:cacheprovider", "--timeout=100", f"--basetemp={tmp_path / 'base'}"]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "pyproject.toml", f"--rootdir={ROOT}", *options, str(file)],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), "ATTESTREE_RESULTS": str(tmp_path / "results")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 1
    group = read("unit", tmp_path / "results")
    assert (group.ended, group.is_whole, group.count("failed")) == (True, False, 1)
    shown = ran.stdout.partition("- Processes -")[2]
    assert "os.read(0, 1)" in shown
