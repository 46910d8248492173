"""The package is a function of its arguments: no clock, environment, files, network or randomness."""

import ast
from pathlib import Path

import pytest

import protocol

ALLOWED = {"cryptography", "numpy", "protocol"} | {
    "base64", "binascii", "collections", "dataclasses", "enum", "functools", "hashlib", "itertools", "json",
    "math", "operator", "re", "struct", "typing", "unicodedata",
}  # fmt: skip
FORBIDDEN_CALLS = {"open", "eval", "exec", "compile", "input", "print", "__import__", "id"}
MAKES_METHODS = "values"
"""The one module that compiles, as the standard library's dataclasses do, and names of fields alone."""
MODULES = sorted(Path(protocol.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.stem)
def test_module_imports_and_calls_nothing_impure(path):
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    imported |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    assert {name.partition(".")[0] for name in imported} <= ALLOWED
    called = {
        node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    assert called & FORBIDDEN_CALLS == ({"exec"} if path.stem == MAKES_METHODS else set())
    attributes = {node.attr for node in nodes if isinstance(node, ast.Attribute)}
    assert not attributes & {"random", "generate", "load", "save", "fromfile", "tofile", "memmap"}
