"""The list of files that a command passes through: what ran, and not what was only loaded."""

import subprocess
import sys
from pathlib import Path

from docs.generator.repository import ROOT


def test_files_are_listed_in_the_order_in_which_they_are_called():
    ran = walk("process", "create", "--dry-run", "--spec", "examples/federation.yaml")
    assert ran.returncode == 0
    passed = [line.split()[1] for line in ran.stderr.splitlines()]
    first, *_ = passed
    assert first == "executor/cli.py"
    assert passed.index("executor/process/proposals.py") < passed.index("executor/process/federation.py")
    assert "protocol/agreement/process.py" in passed
    # The command loads its brothers and sisters, and calls none of them.
    assert "executor/process/watch.py" not in passed
    assert len(passed) == len(set(passed))


def test_the_exit_code_is_the_programs():
    assert walk("no-such-command").returncode == 2


def walk(*arguments: str) -> subprocess.CompletedProcess[str]:
    executor = str(Path(sys.executable).with_name("executor"))
    return subprocess.run(
        [sys.executable, "-m", "docs.generator.walk", executor, *arguments],
        cwd=ROOT, capture_output=True, text=True, check=False, timeout=150,
    )  # fmt: skip
