"""What the doctor makes of heights that peers report, of proxies, and of engines; the rest is tested live."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import requests
from click.testing import CliRunner
from support.answering_engine import answering

from executor.cli import main
from executor.doctor import host, ledger, services
from executor.doctor.finding import guarded


@dataclass
class Heights:
    """A network whose peers report the next of their heights each time they are asked, and then the last."""

    by_organisation: dict[str, list[int]]
    asked: int = field(default=0)

    @property
    def organisations(self) -> list[str]:
        return list(self.by_organisation)

    def peer(self, organisation: str, *_: str) -> str:
        self.asked += 1
        heights = self.by_organisation[organisation]
        height = heights.pop(0) if len(heights) > 1 else heights[0]
        return "Blockchain info: " + json.dumps({"height": height})


def test_peers_at_one_height_or_a_block_apart_are_even() -> None:
    (finding,) = ledger.check_heights(Heights({"org1": [10], "org2": [9]}))
    assert (finding.ok, finding.detail) == (True, "org1 10, org2 9")


def test_peer_that_catches_up_while_others_write_on_is_sound() -> None:
    network = Heights({"org1": [10, 14, 20], "org2": [7, 8, 9]})
    (finding,) = ledger.check_heights(network)
    assert finding.ok
    assert network.asked == 6


def test_peer_that_stays_behind_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "CATCH_UP_SECONDS", 0.05)
    (finding,) = ledger.check_heights(Heights({"org1": [10, 14], "org2": [7]}))
    assert not finding.ok
    assert "org2 7" in finding.detail
    assert "lower peer" in finding.remedy


@pytest.fixture
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in host.PROXIES:
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_a_host_without_proxies_has_none(no_proxies: pytest.MonkeyPatch) -> None:
    assert (host._proxies().ok, host._proxies().detail) == (True, "none")


@pytest.mark.parametrize("name", host.PROXIES)
def test_a_proxy_of_the_environment_is_named_without_its_address(
    no_proxies: pytest.MonkeyPatch, name: str
) -> None:
    no_proxies.setenv(name, "http://user:password@proxy.example:3128")
    finding = host._proxies()
    assert finding.ok
    assert finding.detail.startswith(f"{name}: ")
    assert "example" not in finding.detail


# --- engines, as `executor doctor` meets them ---

DOCKER = {
    "OSType": "linux",
    "OperatingSystem": "Debian GNU/Linux 13 (trixie)",
    "SecurityOptions": ["name=seccomp,profile=builtin", "name=cgroupns"],
    "DriverStatus": [["Backing Filesystem", "extfs"]],
    **dict.fromkeys(("MemoryLimit", "SwapLimit", "PidsLimit", "CpuCfsQuota"), True),
}
CONTAINERD = {"DriverStatus": [["driver-type", "io.containerd.snapshotter.v1"]]}
PODMAN = json.loads((Path(__file__).parent / "info-podman-4.3.json").read_text())


def doctored(folder: Path, monkeypatch: pytest.MonkeyPatch, info: Any, api: str) -> Any:
    """What `executor doctor --json` says of an engine."""
    socket = folder / "engine.sock"
    monkeypatch.setenv("DOCKER_HOST", f"unix://{socket}")
    monkeypatch.setenv("ATTESTREE_STATE", str(folder / "none"))
    with answering(socket, version={"ApiVersion": api, "Version": "1"}, info=info):
        ran = CliRunner().invoke(main, ["doctor", "--json"])
    checks = {check["name"]: check for check in json.loads(ran.stdout)["checks"]}
    return checks["docker engine"]


@pytest.mark.parametrize(("info", "store"), [(DOCKER, "the classic"), (DOCKER | CONTAINERD, "containerd's")])
def test_docker_passes_with_either_store(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch, info: Any, store: str
) -> None:
    finding = doctored(socket_folder, monkeypatch, info, "1.45")
    assert (finding["ok"], finding["detail"]) == (True, f"1, images in {store} store")


@pytest.mark.parametrize(
    ("info", "api", "words"),
    [
        (DOCKER | CONTAINERD, "1.44", ("containerd's store and speaks API 1.44", "Docker 26 or newer")),
        (PODMAN, "1.41", ("is Podman, which shares IPC", "Install Docker")),
        (DOCKER | {"OperatingSystem": "Docker Desktop"}, "1.47", ("virtual machine", "Install Docker")),
        (DOCKER | {"SwapLimit": False}, "1.45", ("cannot limit memory and swap", "cgroup controllers")),
        (DOCKER | {"SecurityOptions": []}, "1.45", ("cannot filter system calls", "seccomp profile")),
        (DOCKER, "1.40", ("1.41 is the least", "Docker 20.10")),
    ],
    ids=["old containerd store", "podman", "desktop", "no limit", "no seccomp", "old docker"],
)
def test_an_engine_that_does_not_serve_is_said_with_its_remedy(
    socket_folder: Path, monkeypatch: pytest.MonkeyPatch, info: Any, api: str, words: tuple[str, str]
) -> None:
    finding = doctored(socket_folder, monkeypatch, info, api)
    assert finding["ok"] is False
    assert (words[0] in finding["detail"], words[1] in finding["remedy"]) == (True, True), finding


def test_an_engine_that_hangs_while_it_lists_containers_is_a_finding(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def hang(**_: object) -> None:
        raise requests.ReadTimeout("no answer within a minute")

    hanging = SimpleNamespace(containers=SimpleNamespace(list=hang), close=lambda: None)
    monkeypatch.setattr(services, "engine", lambda: hanging)
    network: Any = SimpleNamespace(project="net")
    (finding,) = guarded("containers", "run network/up.sh", services.check_services, network)
    assert (finding.name, finding.ok, finding.remedy) == ("containers", False, "run network/up.sh")
    assert "stopped answering" in finding.detail
