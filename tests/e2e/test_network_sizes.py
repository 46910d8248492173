"""An interrupted start goes on where it stopped, and other sizes of the network work."""

import os
import signal
import subprocess

import pytest
from support.network import ROOT, containers, done, run

pytestmark = pytest.mark.alone

SMALL = {"ATTESTREE_PROJECT": "attestree-small", "ATTESTREE_PORTS": "27"}


def test_interrupted_up_resumes() -> None:
    flags = ("--orgs", "2", "--orderers", "1", "--nodes", "3")
    try:
        interrupt_at("[5/7]", "network/up.sh", *flags, "--fresh")
        done("network/up.sh", *flags, **SMALL)
        assert len(containers("attestree-small")) == 9
        sound = run(".venv/bin/executor", "doctor", **SMALL)
        assert sound.returncode == 0, sound.stdout
        users = ROOT / "network/state/attestree-small/organisations/org2/users"
        assert {path.name for path in users.iterdir()} == {"admin", "auditor", "data-scientist", "node03"}
        done("network/up.sh", "--nodes", "4", **SMALL)
        assert (users / "node04/msp/keystore/key.pem").exists()
    finally:
        done("network/down.sh", "--purge", **SMALL)
    assert not (ROOT / "network/state/attestree-small").exists()


def interrupt_at(mark: str, *command: str) -> None:
    """SIGKILL a command and all it started when it announces a step."""
    started = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, **SMALL},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert started.stderr is not None
    for line in started.stderr:
        if line.startswith(mark):
            os.killpg(started.pid, signal.SIGKILL)
            break
    started.wait()
    assert started.returncode == -signal.SIGKILL
