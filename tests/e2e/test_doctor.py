"""The doctor says what is wrong with the network and what to do."""

import json
import os

import pytest
from support.network import containers, done, run

pytestmark = pytest.mark.alone


def doctor() -> tuple[int, dict[str, dict[str, object]]]:
    ran = run(".venv/bin/executor", "doctor", "--json")
    return ran.returncode, {check["name"]: check for check in json.loads(ran.stdout)["checks"]}


def test_sound_network_passes() -> None:
    code, checks = doctor()
    assert code == 0, checks
    assert {
        "docker engine",
        "containers",
        "channel height",
        "probe: approvals",
        "probe: image",
        "certificates",
    } <= set(checks)


def test_stopped_peer_is_found_with_its_remedy() -> None:
    container = containers()["peer.org4"]
    done("docker", "stop", container)
    try:
        code, checks = doctor()
        assert code == 1
        assert checks["containers"]["ok"] is False
        assert "peer.org4" in str(checks["containers"]["detail"])
        assert "network/up.sh" in str(checks["containers"]["remedy"])
    finally:
        done("network/up.sh")
    assert doctor()[0] == 0


def test_other_chaincode_image_in_one_organisation_is_found() -> None:
    container = containers()["chaincode.org2"]
    image = done("docker", "inspect", "-f", "{{.Config.Image}}", container).strip()
    altered = image.partition(":")[0] + ":altered"
    done("docker", "commit", "--change", "LABEL attestree.test=altered", container, altered)
    environment = {"CHAINCODE_IMAGE": altered}
    try:
        compose("up", "-d", "chaincode.org2", **environment)
        code, checks = doctor()
        assert code == 1
        assert checks["probe: image"]["ok"] is False
        assert "org2 runs" in str(checks["probe: image"]["detail"])
    finally:
        done("network/up.sh")
        done("docker", "rmi", "-f", altered)
    assert doctor()[0] == 0


def compose(*arguments: str, **environment: str) -> None:
    settings = f"network/state/{os.environ['ATTESTREE_PROJECT']}/compose.env"
    done("docker", "compose", "--env-file", settings, *arguments, **environment)


def test_absent_network_is_one_clear_line() -> None:
    ran = run(".venv/bin/executor", "doctor", ATTESTREE_PROJECT="attestree-nowhere")
    assert ran.returncode == 1
    assert "there is no network 'attestree-nowhere' here" in ran.stdout
    assert "remedy: run network/up.sh" in ran.stdout
