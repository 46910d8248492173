"""The unit and the compose file that are shipped: real commands, and no more rights than they need."""

import configparser
import os
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from executor.launch.command import launch

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "service"
UNIT = FOLDER / "attestree-executor@.service"
COMPOSE = FOLDER / "compose.yaml"
ENVIRONMENT = {
    "ORGANISATION": "org1",
    "STATE": "/srv/state",
    "USER_ID": "1000",
    "GROUP_ID": "1000",
    "DOCKER_GROUP_ID": "999",
}


@pytest.fixture(scope="module")
def unit() -> configparser.SectionProxy:
    parsed = configparser.ConfigParser(interpolation=None, comment_prefixes=("#",), delimiters=("=",))
    parsed.optionxform = str  # type: ignore[assignment,method-assign]
    parsed.read(UNIT, encoding="utf-8")
    return parsed["Service"]


@pytest.fixture(scope="module")
def container() -> dict[str, Any]:
    return dict(yaml.safe_load(COMPOSE.read_text(encoding="utf-8"))["services"]["executor"])


def check_words(words: list[str]) -> None:
    """Parse a command line as the command itself would."""
    assert words[0] == launch.name
    with launch.make_context("launch", list(words[1:])) as context:
        assert context.params["follow"]
        assert context.params["as_json"]
        assert context.params["organisation"]


def test_the_unit_starts_the_service_and_restarts_it_but_after_wrong_usage(
    unit: configparser.SectionProxy,
) -> None:
    program, *words = shlex.split(unit["ExecStart"])
    assert program == "/opt/attestree/.venv/bin/executor"
    check_words(words)
    assert (unit["Restart"], unit["RestartPreventExitStatus"], unit["KillSignal"]) == (
        "on-failure", "2", "SIGTERM"
    )  # fmt: skip


def test_the_unit_is_confined(unit: configparser.SectionProxy) -> None:
    assert unit["User"] != "root"
    assert unit["CapabilityBoundingSet"] == ""
    assert unit["ProtectSystem"] == "strict"
    assert unit["ReadWritePaths"] == "/opt/attestree/network/state"
    for name in ("NoNewPrivileges", "PrivateTmp", "PrivateDevices", "RestrictNamespaces", "RestrictSUIDSGID"):
        assert unit[name] == "yes"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd on this host")
def test_systemd_understands_every_line_of_the_unit(tmp_path: Path) -> None:
    program = tmp_path / "executor"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    copy = tmp_path / UNIT.name.replace("@", "@org1")
    copy.write_text(UNIT.read_text().replace("/opt/attestree/.venv/bin/executor", str(program)))
    ran = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],
        capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip
    assert [line for line in ran.stderr.splitlines() if copy.name in line] == []


def test_the_container_starts_the_service_and_is_confined(container: dict[str, Any]) -> None:
    check_words(container["command"])
    assert container["read_only"] is True
    assert container["cap_drop"] == ["ALL"]
    assert container["security_opt"] == ["no-new-privileges:true"]
    assert container["restart"] == "on-failure"
    assert not {"privileged", "pid", "ipc", "devices", "cap_add"} & set(container)
    build = container["build"]
    assert Path(os.path.normpath(FOLDER / build["context"] / build["dockerfile"])).is_file()
    assert Path(os.path.normpath(FOLDER / build["context"])) == ROOT / "dist"
    state, socket = container["volumes"]
    assert state["source"] == state["target"]
    assert socket["target"] == "/var/run/docker.sock"


def test_compose_understands_every_line_of_the_file() -> None:
    asked = ["docker", "compose", "version"]
    if shutil.which("docker") is None or subprocess.run(asked, capture_output=True, check=False).returncode:
        pytest.skip("there is no docker compose on this host")
    ran = subprocess.run(
        ["docker", "compose", "-f", str(COMPOSE), "config", "--quiet"],
        env={**os.environ, **ENVIRONMENT}, capture_output=True, text=True, timeout=150, check=False,
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
