"""The doctor finds nothing wrong with a sound network, however busy, and says where there is none.

What it finds wrong with others is in test_network_life.py.
"""

import json

from support.network import PROJECT, run
from support.printed import EXECUTOR


def test_sound_network_passes() -> None:
    ran = run(EXECUTOR, "doctor", "--json")
    checks = {check["name"]: check for check in json.loads(ran.stdout)["checks"]}
    assert ran.returncode == 0, [check for check in checks.values() if not check["ok"]]
    assert {
        "docker engine",
        "containers",
        "channel height",
        "probe: approvals",
        "probe: image",
        "certificates",
    } <= set(checks)


def test_absent_network_is_one_clear_line() -> None:
    name = f"{PROJECT}-nowhere"
    ran = run(EXECUTOR, "doctor", ATTESTREE_PROJECT=name)
    assert ran.returncode == 1
    assert f"there is no network '{name}' here" in ran.stdout
    assert "remedy: run network/up.sh" in ran.stdout
