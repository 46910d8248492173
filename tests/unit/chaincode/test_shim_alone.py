"""The shim could be published by itself: what it imports, and the words it does not know."""

import ast
import re
import sys
from pathlib import Path

import pytest

import chaincode.shim

FILES = sorted(Path(chaincode.shim.__file__).parent.glob("*.py"))
ALLOWED = {*sys.stdlib_module_names, "cryptography", "fabric_protos", "google", "greenlet", "grpc"}
DOMAIN = re.compile(r"attestree|estimator|ensemble|federat|anomal|learner|consortium", re.IGNORECASE)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_shim_imports_nothing_of_this_project(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import | ast.ImportFrom):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module]
            for module in modules:
                assert module.startswith("chaincode.shim") or module.split(".")[0] in ALLOWED


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_shim_holds_no_word_of_the_domain(path):
    assert not DOMAIN.findall(path.read_text(encoding="utf-8"))
