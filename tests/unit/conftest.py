"""What tests of several packages share."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest


@pytest.fixture
def socket_folder() -> Iterator[Path]:
    """A directory of the test's own with a short path: the address of a unix socket holds 107 bytes."""
    with TemporaryDirectory(prefix="unit-") as made:
        yield Path(made)
