"""The `executor` command, by its exit code and what it prints."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from click.testing import CliRunner

from executor.cli import main
from executor.network import Network
from support.launching import ledger
from support.network import ROOT, run, until
from support.printed import EXECUTOR, Ran


def executor(*arguments: str, organisation: str = "org1", identity: str = "data-scientist") -> Ran:
    """Run a command as its users do, in a process of its own."""
    ran = run(
        EXECUTOR, *arguments, ATTESTREE_ORGANISATION=organisation, ATTESTREE_IDENTITY=identity, seconds=150
    )
    return Ran(ran.returncode, ran.stdout, ran.stderr)


@contextmanager
def started(*arguments: str) -> Iterator["subprocess.Popen[str]"]:
    """Start a command in a process of its own, whose lines can be read; it is gone afterwards.

    It obeys SIGINT also where whoever runs the tests ignores it, as shells make background jobs do.
    """
    command = ["env", "--default-signal=INT", EXECUTOR, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=os.environ) as process:
        try:
            yield process
        finally:
            process.kill()


def here(*arguments: str, **who: str) -> Ran:
    """Run a command in this process, with --json: the same code without the second it takes to load."""
    return printed(*arguments, "--json", **who)


def printed(*arguments: str, organisation: str = "org1", identity: str = "data-scientist") -> Ran:
    """Run a command in this process as people do, who read what it prints."""
    who = {"ATTESTREE_ORGANISATION": organisation, "ATTESTREE_IDENTITY": identity}
    ran = CliRunner().invoke(main, arguments, env=who)
    if ran.exception is not None and not isinstance(ran.exception, SystemExit):
        raise ran.exception
    return Ran(ran.exit_code, ran.stdout, ran.stderr)


def done(*arguments: str, **who: str) -> Any:
    """Run a command that must succeed; returns its answer."""
    ran = here(*arguments, **who)
    assert ran.code == 0, f"{arguments} exited with {ran.code}\n{ran.out}\n{ran.err}"
    if isinstance(ran.answer, dict) and "block" in ran.answer:
        everywhere(ran.answer["block"])
    return ran.answer


def everywhere(block: int) -> None:
    """Return when every organisation's peer has a block: whoever acts next may belong to another one."""
    for organisation in Network.load().organisations:
        until(
            120,
            f"{organisation} has block {block}",
            lambda name=organisation: ledger(name).transport.chain_info().height > block,
        )


def refused(*arguments: str, **who: str) -> tuple[int, str]:
    """Run a command that must fail; returns its exit code and the error's code."""
    ran = here(*arguments, **who)
    assert ran.code != 0, ran.out
    error = ran.lines[-1]["error"]
    assert error["exit_code"] == ran.code
    assert error["cause"]
    assert error["remedy"]
    return ran.code, error["code"]
