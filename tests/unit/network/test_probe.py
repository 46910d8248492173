"""The probe contract answers anybody: it is deployed where it was asked for, and nowhere else."""

import subprocess
from pathlib import Path

import pytest

LIBRARY = Path(__file__).resolve().parents[3] / "network/lib/chaincode.sh"


def deployed(probe: str) -> list[str]:
    """The chaincodes of a network, as `network/up.sh` takes them."""
    script = f'PROBE={probe}; . "{LIBRARY}"; chaincodes'
    ran = subprocess.run(["bash", "-euc", script], capture_output=True, text=True, check=True, timeout=150)
    return [line.partition(":")[0] for line in ran.stdout.split()]


@pytest.mark.parametrize("probe", ["no", ""])
def test_t1_a_network_without_the_option_has_no_probe(probe: str) -> None:
    assert sorted(deployed(probe)) == ["execution-record", "image", "model", "orchestration"]


def test_the_option_adds_it() -> None:
    assert "probe" in deployed("yes")


def test_t1_what_was_not_asked_for_is_written_down_as_no() -> None:
    up = LIBRARY.parents[1] / "up.sh"
    assert '"PROBE=${4:-no}"' in up.read_text()
