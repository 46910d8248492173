"""What tests of the network's scripts share."""

from pathlib import Path

import pytest
from support.scripted_engine import Engine


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine.make(tmp_path)
