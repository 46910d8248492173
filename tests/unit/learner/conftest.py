"""The learner is tested against a broker on a real socket and the real contracts on a channel in memory."""

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
# The channel in memory is that of the contracts' own tests.
sys.path[:0] = [str(HERE), str(HERE.parent / "chaincode")]


@pytest.fixture
def tmp_path(socket_folder):
    """A directory of the test's own that a broker can listen in."""
    return socket_folder
