"""What stands alone, by its imports and the words it does not know: two wheels, and the worker of hfc."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = {"fabric-gateway": "executor/ledger/gateway", "fabric-shim": "chaincode/shim"}
PACKAGES = {
    "cryptography": "cryptography",
    "fabric_protos": "hyperledger-fabric-protos",
    "google": "protobuf",
    "greenlet": "greenlet",
    "grpc": "grpcio",
}
DOMAIN = re.compile(r"attestree|estimator|ensemble|federat|anomal|learner|consortium", re.IGNORECASE)
FILES = [path for room in ROOMS.values() for path in sorted((ROOT / room).rglob("*.py"))]

each_file = pytest.mark.parametrize("path", FILES, ids=[str(path.relative_to(ROOT)) for path in FILES])
each_wheel = pytest.mark.parametrize("wheel", ROOMS)


def project(folder):
    return tomllib.loads((ROOT / folder / "pyproject.toml").read_text())


def imported(path):
    """Return the packages that a file imports from outside; within its room it may go by one dot, not two."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level <= 1, f"line {node.lineno} leads out of the room"
            found |= set() if node.level else {node.module.split(".")[0]}
    return found - set(sys.stdlib_module_names)


def bounds(requirements):
    parsed = (re.fullmatch(r"([\w-]+)>=([\w.]+)", text) for text in requirements)
    return {found[1]: found[2] for found in parsed if found}


@each_file
def test_a_room_imports_itself_by_relative_names_and_else_only_what_its_wheel_may_require(path):
    assert imported(path) <= set(PACKAGES)


@each_file
def test_a_room_holds_no_word_of_the_domain(path):
    assert not DOMAIN.findall(path.read_text())


@each_wheel
def test_a_wheel_requires_exactly_what_its_room_imports(wheel):
    files = [path for path in FILES if path.is_relative_to(ROOT / ROOMS[wheel])]
    needed = {PACKAGES[name] for path in files for name in imported(path)}
    declared = project(f"scripts/wheels/{wheel}")["project"]["dependencies"]
    assert set(bounds(declared)) == needed
    assert len(declared) == len(needed)


@each_wheel
def test_a_wheel_has_the_version_and_the_lower_bounds_of_the_whole(wheel):
    whole, part = project("."), project(f"scripts/wheels/{wheel}")
    assert part["project"]["version"] == whole["project"]["version"]
    known = bounds(whole["project"]["dependencies"])
    for extra in whole["project"]["optional-dependencies"].values():
        known |= bounds(extra)
    for name, bound in bounds(part["project"]["dependencies"]).items():
        assert known.get(name, bound) == bound


@each_wheel
def test_a_wheel_is_made_of_its_room(wheel):
    mapped = project(f"scripts/wheels/{wheel}")["tool"]["setuptools"]
    (package,) = mapped["packages"]
    assert package == wheel.replace("-", "_")
    assert (ROOT / "scripts/wheels" / wheel / mapped["package-dir"][package]).resolve() == ROOT / ROOMS[wheel]
    assert (ROOT / ROOMS[wheel] / "py.typed").exists()


def test_errors_and_values_of_the_gateway_load_without_grpc():
    """What verifies offline, or only prints help, needs neither gRPC nor the time it takes to load."""
    code = (
        "import sys; import executor.cli, executor.exits, executor.ledger.chaincodes.proxies;"
        "print([name for name in ('grpc', 'fabric_protos', 'google.protobuf') if name in sys.modules])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert ran.stdout.strip() == "[]"


def test_the_worker_of_hfc_imports_nothing_that_its_own_environment_lacks():
    assert imported(ROOT / "executor/ledger/hfc/worker.py") <= {"google", "grpc", "hfc"}
