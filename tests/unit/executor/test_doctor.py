"""What the doctor makes of the heights that peers report; the rest of it is tested on live networks."""

import json
from dataclasses import dataclass, field

import pytest

from executor.doctor import ledger


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
