"""A model as the ledger gives it."""

import sys
from pathlib import Path

import pytest

from executor.model.content import Model

# The tests import what a ledger would answer, `published`, from beside this file.
sys.path.insert(0, str(Path(__file__).parent))

from published import answers


@pytest.fixture
def model() -> Model:
    return answers().assemble()
