"""The Gateway client and the shim are wheels of their own: what they import, and words they do not know."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROTOCOL = {"cryptography", "fabric_protos", "google", "grpc"}
ROOMS = {"executor/ledger/gateway": PROTOCOL, "chaincode/shim": {*PROTOCOL, "greenlet"}}
DOMAIN = re.compile(r"attestree|estimator|ensemble|federat|anomal|learner|consortium", re.IGNORECASE)
FILES = [(path, allowed) for room, allowed in ROOMS.items() for path in sorted((ROOT / room).rglob("*.py"))]

each_file = pytest.mark.parametrize(
    ("path", "allowed"), FILES, ids=[str(path.relative_to(ROOT)) for path, _ in FILES]
)


def test_the_rooms_are_there():
    assert all(len([path for path, _ in FILES if path.parent == ROOT / room]) > 5 for room in ROOMS)


@each_file
def test_a_room_imports_itself_by_relative_names_and_else_only_what_its_wheel_requires(path, allowed):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            # One dot is the room itself; two would lead out of it.
            assert node.level <= 1, f"line {node.lineno}"
            modules = [] if node.level else [node.module]
        else:
            continue
        for module in modules:
            assert module.split(".")[0] in {*sys.stdlib_module_names, *allowed}, f"line {node.lineno}"


@each_file
def test_a_room_holds_no_word_of_the_domain(path, allowed):
    assert not DOMAIN.findall(path.read_text())


def test_errors_and_values_of_the_gateway_load_without_grpc():
    """What verifies offline, or only prints help, needs neither gRPC nor the time it takes to load."""
    code = (
        "import sys; import executor.cli, executor.reporting, executor.ledger.chaincodes.proxies;"
        "print([name for name in ('grpc', 'fabric_protos', 'google.protobuf') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.strip() == "[]"
