"""The table of the chaincodes' rules: every function that writes has a row, so that none is forgotten."""

from pathlib import Path

import pytest

from chaincode.execution_record import ExecutionRecordContract
from chaincode.image import ImageContract
from chaincode.model import ModelContract
from chaincode.orchestration import OrchestrationContract
from executor.audit.replay.callers import ROLES
from executor.audit.replay.replay import SENTENCES

PAGE = Path(__file__).parents[3] / "docs" / "audit.md"
CONTRACTS = (ImageContract(), OrchestrationContract(), ExecutionRecordContract(), ModelContract())
TABLE = PAGE.read_text().partition("## Which rules")[2].partition("\n## ")[0]
ROWS = [[cell.strip() for cell in line.split("|")[1:-1]] for line in TABLE.splitlines() if line[:2] == "| "]


@pytest.mark.parametrize("contract", CONTRACTS, ids=lambda contract: contract.name)
def test_every_function_that_writes_has_its_rules_in_the_table(contract):
    writing = [name for name, function in contract.functions.items() if function.kind == "submit"]
    named = " ".join(row[0] for row in ROWS)
    assert [name for name in writing if f"`{name}`" not in named] == []


def test_every_rule_names_a_claim_of_the_audit_or_says_why_not():
    for function, rule, asked in ROWS[1:]:
        words = asked.split(";")[0].split(", ")
        assert asked.startswith("no") or set(words) <= {*SENTENCES}, (function, rule, asked)


def test_the_roles_of_the_audit_are_those_of_the_chaincodes():
    known = {role for contract in CONTRACTS for roles in contract.roles.values() for role in roles}
    assert {role for roles in ROLES.values() for role in roles} == known
