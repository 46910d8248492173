"""End-to-end tests run on the real network; one that is down is brought up first."""

import pytest
from support.network import done


@pytest.fixture(scope="session", autouse=True)
def network() -> None:
    """The network is up before the first test, whatever the last one of an earlier run left behind."""
    done("network/up.sh", seconds=1800)
