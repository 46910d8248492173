"""A model as the ledger gives it."""

import pytest
from support.published import answers

from executor.model.content import Model


@pytest.fixture
def model() -> Model:
    return answers().assemble()
