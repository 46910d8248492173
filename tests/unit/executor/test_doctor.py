"""What the doctor makes of heights that peers report and of proxies; the rest is tested on live networks."""

import json
from dataclasses import dataclass, field

import pytest

from executor.doctor import host, ledger


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
