"""The learner is tested against a broker on a real socket and the real contracts on a channel in memory."""

import pytest


@pytest.fixture
def tmp_path(socket_folder):
    """A directory of the test's own that a broker can listen in."""
    return socket_folder
