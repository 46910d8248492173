"""docs/ledger.md is what the contracts say."""

import re
from pathlib import Path

import pytest

from chaincode import document, shim
from chaincode.common import LedgerContract
from chaincode.registry import CONTRACTS, contract
from protocol.ledger import keys

CHAINCODES = [name for name in CONTRACTS if isinstance(contract(name), LedgerContract)]
PAGE = document.document()


def test_the_page_is_current():
    assert document.FILE.read_text(encoding="utf-8") == PAGE, "run: python -m chaincode.document"


def test_the_four_chaincodes_are_documented():
    assert CHAINCODES == ["image", "orchestration", "execution-record", "model"]


@pytest.mark.parametrize("name", CHAINCODES)
def test_every_function_event_and_key_of_a_chaincode_is_on_the_page(name):
    made = contract(name)
    section = PAGE.partition(f"## {name}\n")[2].partition("\n## ")[0]
    assert set(re.findall(r"^\*\*`(\w+)\(", section, re.MULTILINE)) == made.functions.keys()
    assert all(function.doc for function in made.functions.values())
    for event in made.events:
        assert f"| `{event}` |" in section
    for kind in made.values:
        assert f"`{'~'.join((kind, *keys.KINDS[kind]))}`" in section


def test_every_kind_of_key_belongs_to_exactly_one_chaincode():
    documented = [kind for name in CHAINCODES for kind in contract(name).values]
    assert sorted(documented) == sorted(keys.KINDS)


def test_every_code_of_the_shim_is_documented():
    folder = Path(shim.__file__).parent
    source = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.py")))
    raised = re.findall(r'(?:^    code = |Error\(\s*|encode_error\()"([A-Z_]+)"', source, re.MULTILINE)
    assert {*raised, "CALL_REFUSED"} == document.SHIM_CODES.keys()
