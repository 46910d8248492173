"""Which orderer takes what is sent: the first that answers, and another one at the next try."""

import subprocess
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[3] / "network/lib"
HEALTHY = """#!/bin/sh
case " $DOWN " in *" ${1##*:} "*) exit 1 ;; esac
"""


@pytest.mark.parametrize(
    ("turn", "down", "port"),
    [
        ("", "", "17010"),
        ("0", "17010", "17020"),
        ("1", "", "17020"),
        ("2", "17030", "17010"),
        ("3", "", "17010"),
    ],
)
def test_each_turn_begins_with_the_next_orderer_and_passes_over_those_that_are_down(
    tmp_path: Path, turn: str, down: str, port: str
) -> None:
    helper = tmp_path / "healthy"
    helper.write_text(HEALTHY)
    helper.chmod(0o755)
    script = (
        f'. "{LIBRARY}/common.sh"; . "{LIBRARY}/channel.sh"; tools_dir() {{ echo "{tmp_path}"; }}; '
        f"ORDERERS=3 ORGS=2 PORTS=17; orderer_flags {turn}"
    )
    ran = subprocess.run(
        ["bash", "-euc", script],
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "DOWN": down},
        capture_output=True,
        text=True,
        timeout=150,
        check=True,
    )
    assert ran.stdout.splitlines()[:2] == ["--orderer", f"127.0.0.1:{port}"]
