"""What is raised and what the tables have are the same codes, cases and values."""

import ast
import string
from collections.abc import Iterator

import pytest

import executor.cli  # noqa: F401 - the commands, with all that they raise
from docs.generator.repository import ROOT
from executor.ledger.gateway import errors as gateway
from protocol.errors import TABLE, StateError, TreeError, define, defined

ROWS = defined()
SOURCES = {
    path: ast.parse(path.read_text(encoding="utf-8"))
    for package in ("executor", "experiments", "learning")
    for path in sorted((ROOT / package).rglob("*.py"))
    # It stands alone: executor/ledger/errors.py gives its codes their remedies.
    if not path.is_relative_to(ROOT / "executor/ledger/gateway")
}
CLASSES = {row.error.__name__ for row in ROWS.values()} | {"IntegrityError", "DatasetError", "UsageError"}


def raised() -> Iterator[tuple[str, str, ast.Call]]:
    """Yield every error made with a code that the source spells out, by place and code."""
    for path, tree in SOURCES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                code = node.args[0].value
                if (name in CLASSES or ast.unparse(node.func) == "super().__init__") and str(code).isupper():
                    yield f"{path.relative_to(ROOT)}:{node.lineno}", code, node


CALLS = list(raised())
WORDS = {
    node.value
    for path, tree in SOURCES.items()
    if path.name not in ("codes.py", "errors.py")
    for node in ast.walk(tree)
    if isinstance(node, ast.Constant) and isinstance(node.value, str)
}


@pytest.mark.parametrize(
    ("place", "code", "call"), CALLS, ids=[f"{place} {code}" for place, code, _ in CALLS]
)
def test_what_is_raised_is_in_the_table_with_its_case_and_values(place: str, code: str, call: ast.Call):
    given = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg != "evidence"}
    assert "remedy" not in given, "remedies stand in the table"
    case = given.pop("case", ast.Constant(""))
    spelled = [node.value for node in ast.walk(case) if isinstance(node, ast.Constant)]
    for found in spelled if not isinstance(case, ast.Name) else []:
        remedy = ROWS[code].remedies[found]
        assert {name for _, name, _, _ in string.Formatter().parse(remedy) if name} == set(given)
    name = ast.unparse(call.func)
    if name not in ("IntegrityError", "PhaseError", "super().__init__"):
        assert len(call.args) == 2, "remedies stand in the table"


def test_every_code_of_the_table_is_raised():
    by_the_client = set(gateway.__doc__.replace(",", " ").split()) | {gateway.ACCESS_DENIED}
    at_once = {code for _, code, _ in CALLS}
    ours = set(ROWS) - set(TABLE)
    assert ours - at_once - WORDS - by_the_client == set()


def test_every_case_of_the_table_is_raised():
    named = {case for code in ROWS for case in ROWS[code].remedies if case}
    assert named - WORDS == set()


def test_remedies_are_sentences():
    for code, row in ROWS.items():
        for remedy in row.remedies.values():
            assert remedy.endswith((".", ".{tail}")), code


def test_a_code_is_not_given_a_second_meaning():
    with pytest.raises(ValueError, match="belongs to TreeError"):
        define(StateError, {"TREE_CYCLE": "Wait."})
    with pytest.raises(ValueError, match="another remedy"):
        define(TreeError, {"TREE_CYCLE": "Wait."})
    define(TreeError, {"TREE_CYCLE": TABLE["TREE_CYCLE"].remedy})
    assert defined() == ROWS
