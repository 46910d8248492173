"""Every code with which a ledger refuses is met by some test of a contract."""

from pathlib import Path

import pytest

from protocol.errors import TABLE, AccessError, StateError

HERE = Path(__file__).parent
TESTS = "".join(
    path.read_text() for path in sorted(HERE.glob("test_*.py")) if path.name != Path(__file__).name
)
REFUSALS = [code for code, row in TABLE.items() if issubclass(row.error, AccessError | StateError)]


@pytest.mark.parametrize("code", REFUSALS)
def test_the_refusal_is_tested_on_a_contract(code):
    assert f'"{code}"' in TESTS
