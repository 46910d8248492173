"""What is raised and what the tables have are the same codes, cases and values."""

import ast
import string
from functools import cache
from pathlib import Path

import pytest

# Each defines the rows of its classes.
import executor.audit.errors
import executor.ledger.errors
import executor.model.errors
import executor.process.errors
import executor.replay.errors  # noqa: F401
from docs.generator.repository import ROOT
from executor.ledger.gateway import errors as gateway
from protocol.errors import TABLE, AttestreeError, StateError, TreeError, define, defined

ROWS = defined()


@cache
def sources() -> dict[Path, ast.Module]:
    """The syntax of every module; read by the tests, because each process of a run loads this file."""
    return {
        path: ast.parse(path.read_text(encoding="utf-8"))
        for package in ("executor", "experiments", "learning")
        for path in sorted((ROOT / package).rglob("*.py"))
        # It stands alone: executor/ledger/errors.py gives its codes their remedies.
        if not path.is_relative_to(ROOT / "executor/ledger/gateway")
    }


def names(error: type[AttestreeError]) -> set[str]:
    return {error.__name__}.union(*(names(kind) for kind in error.__subclasses__()))


CLASSES = names(AttestreeError)


@cache
def raised() -> list[tuple[str, str, ast.Call]]:
    """Every error made with a code that the source spells out, by place and code."""
    found = []
    for path, tree in sources().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                inits = isinstance(node.func, ast.Attribute) and node.func.attr == "__init__"
                by_super = inits and ast.unparse(node.func) == "super().__init__"
                code = node.args[0].value
                if (name in CLASSES or by_super) and str(code).isupper():
                    found.append((f"{path.relative_to(ROOT)}:{node.lineno}", code, node))
    return found


@cache
def words() -> set[str]:
    """Every text in the sources, but for the tables themselves."""
    return {
        node.value
        for path, tree in sources().items()
        if path.name not in ("codes.py", "errors.py")
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def cases(call: ast.Call) -> list[str]:
    """Return the cases that a call may mean; none if its caller says which."""
    given = next((keyword.value for keyword in call.keywords if keyword.arg == "case"), ast.Constant(""))
    return [node.value for node in ast.walk(given) if isinstance(node, ast.Constant)]


def test_what_is_raised_is_in_the_table_with_its_case_and_values():
    for place, code, call in raised():
        values = {keyword.arg for keyword in call.keywords} - {"case", "evidence"}
        assert "remedy" not in values, f"{place}: remedies stand in the table"
        if ast.unparse(call.func) not in ("IntegrityError", "PhaseError"):
            assert len(call.args) == 2, f"{place}: remedies stand in the table"
        assert code in ROWS, place
        for case in cases(call):
            assert case in ROWS[code].remedies, place
            found = string.Formatter().parse(ROWS[code].remedies[case])
            assert {name for _, name, _, _ in found if name} == values, place


def test_every_code_of_the_table_is_raised():
    by_the_client = set(gateway.__doc__.replace(",", " ").split()) | {gateway.ACCESS_DENIED}
    at_once = {code for _, code, _ in raised()}
    ours = set(ROWS) - set(TABLE)
    assert ours - at_once - words() - by_the_client == set()


def test_every_case_of_the_table_is_raised():
    at_once = {(code, case) for _, code, call in raised() for case in cases(call)}
    defined_ = {(code, case) for code, row in ROWS.items() for case in row.remedies if case}
    # These two classes have one code each, and take the case from where they are raised.
    by_class = {(code, word) for code in ("ROWS_INVALID", "PARAMETER_RANGE") for word in words()}
    assert defined_ - at_once - by_class == set()


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
