"""Settings of every test: how long it may take, and how Hypothesis searches."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

E2E = Path(__file__).parent / "e2e"
E2E_SECONDS = 300

# No deadline: a busy machine is slow, not wrong. The same examples every time, so that a change that broke
# nothing fails nothing; scripts/flaky asks for other examples, by a seed that it prints.
settings.register_profile("steady", deadline=None, max_examples=60, derandomize=True, print_blob=True)
settings.register_profile("searching", deadline=None, max_examples=60, print_blob=True)
settings.load_profile(os.environ.get("ATTESTREE_HYPOTHESIS", "steady"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests on a live network the time they need; a test that says otherwise is left alone."""
    for item in items:
        if E2E in item.path.parents and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(E2E_SECONDS))
