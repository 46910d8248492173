"""Mutants: copies of the code with one small change each, made by mutmut, and which of them are tried."""

import ast
import difflib
import hashlib
import json
import multiprocessing
import random
import shutil
import subprocess
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path

from mutmut.mutation.file_mutation import mutate_file_contents
from mutmut.utils.format_utils import (
    get_mutant_name,
    mangled_name_from_mutant_name,
    orig_function_and_class_names_from_key,
)

from .surroundings import ROOT

# What a mutant of the first kind of code can break is tested by the second.
GUARDED_BY = {
    "protocol": ("tests/unit/protocol", "tests/unit/chaincode"),
    "chaincode/execution_record": ("tests/unit/chaincode",),
    "chaincode/image": ("tests/unit/chaincode",),
    "chaincode/model": ("tests/unit/chaincode",),
    "chaincode/orchestration": ("tests/unit/chaincode",),
    "executor/launch": ("tests/unit/executor/launch",),
    "executor/audit": ("tests/unit/executor/audit",),
}
# These look at files or start programs of their own, and say nothing about a function changed in memory.
LEFT_OUT = (
    "test_purity.py",
    "test_document.py",
    "test_serve.py",
    "test_codes.py",
    "test_bench_chaincode.py",
)
_MADE = ROOT / "build" / "mutants"


@dataclass(frozen=True, slots=True)
class Mutated:
    """A file with all its mutants in it side by side; a variable says which one is called."""

    file: str
    code: str
    names: tuple[str, ...]

    @property
    def package(self) -> str:
        """The part of the rules that it belongs to."""
        return next(package for package in GUARDED_BY if self.file.startswith(f"{package}/"))

    def change(self, name: str) -> str:
        """Return what a mutant changed: the lines that were taken away and put in."""
        mutant = name.rpartition(".")[2]
        wanted = {mangled_name_from_mutant_name(mutant) + "__mutmut_orig": "", mutant: ""}
        for node in ast.walk(ast.parse(self.code)):
            if isinstance(node, ast.FunctionDef) and node.name in wanted:
                lines = self.code.splitlines()[node.lineno - 1 : node.end_lineno]
                wanted[node.name] = textwrap.dedent("\n".join(lines)).replace(node.name, "", 1)
        before, after = (source.splitlines() for source in wanted.values())
        return "\n".join(line for line in difflib.ndiff(before, after) if line[:1] in "+-")


def in_scope(paths: Sequence[str]) -> list[str]:
    """Return the files with rules among these paths: all of them if there are none."""
    rules = [
        name
        for name in _tracked()
        if name.endswith(".py") and name.startswith(tuple(f"{room}/" for room in GUARDED_BY))
    ]
    if not paths:
        return rules
    return [name for name in rules if any(name == path or name.startswith(f"{path}/") for path in paths)]


def make(files: Sequence[str]) -> list[Mutated]:
    """Make every mutant of these files; those of a file that has not changed since are still there."""
    _MADE.mkdir(parents=True, exist_ok=True)
    with multiprocessing.get_context("fork").Pool() as pool:
        return pool.map(_mutated, files, chunksize=1)


def sample(made: Sequence[Mutated], most: int, seed: str) -> list[str]:
    """Choose at most so many mutants at random, from each file in proportion to how many it has.

    The mutants of each file are shuffled, the files laid end to end, and one of every so many taken. So any
    mutant is as likely to be chosen as any other, and a file's share is right to within one.
    """
    chance = random.Random(seed)
    laid: list[str] = []
    for one in sorted(made, key=lambda one: one.file):
        laid += chance.sample(sorted(one.names), len(one.names))
    if most >= len(laid):
        return sorted(laid)
    step = len(laid) / most
    start = chance.random() * step
    return sorted(laid[int(start + step * number)] for number in range(most))


def function_of(mutant: str) -> str:
    """Return the function that a mutant changed, as module.function or module.Class.function."""
    module, _, _ = mutant.rpartition(".")
    function, owner = orig_function_and_class_names_from_key(mutant)
    return ".".join(filter(None, (module, owner, function)))


def copy_into(folder: Path, made: Sequence[Mutated]) -> None:
    """Make a copy of the repository that has these files in place of its own."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for name in _tracked():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    # The compiled kernel is built where the environment is installed from.
    for built in (ROOT / "learning").glob("*.so"):
        shutil.copy2(built, folder / "learning")
    for one in made:
        (folder / one.file).write_text(one.code)


def guards(files: Sequence[str]) -> list[str]:
    """Return what pytest is to collect: the tests of these files, without those that tell nothing here."""
    rooms = [room for room in GUARDED_BY if any(file.startswith(f"{room}/") for file in files)]
    tests = sorted({test for room in rooms for test in GUARDED_BY[room]})
    return [*tests, *(f"--ignore={path}/{name}" for path in tests for name in LEFT_OUT)]


def reach_of(made: Sequence[Mutated]) -> tuple[Path, dict[str, str]]:
    """Return the file that keeps which test calls which function of these, and what each file of tests is.

    What is known of a file of tests holds as long as neither it nor anything outside the tests has changed.
    """
    tracked = [name for name in _tracked() if not name.startswith("docs/")]
    tests = [
        name for name in tracked if name.startswith("tests/unit/") and Path(name).name.startswith("test_")
    ]
    around = hashlib.sha256()
    for name in [*sorted({*tracked} - {*tests}), *sorted(one.file for one in made)]:
        around.update(f"{name}\0".encode() + hashlib.sha256((ROOT / name).read_bytes()).digest())
    wrapped = hashlib.sha256("\n".join(sorted(one.file for one in made)).encode()).hexdigest()
    keys = {
        name: hashlib.sha256(around.digest() + (ROOT / name).read_bytes()).hexdigest()[:32] for name in tests
    }
    return _MADE / f"reach-{wrapped[:32]}.json", keys


def _mutated(file: str) -> Mutated:
    source = (ROOT / file).read_text()
    digest = hashlib.sha256(f"{version('mutmut')}\n{file}\n{source}".encode()).hexdigest()
    kept = _MADE / f"{digest[:32]}.json"
    if kept.is_file():
        found = json.loads(kept.read_text())
        return Mutated(file, found["code"], tuple(found["names"]))
    made = mutate_file_contents(file, source)
    one = Mutated(file, made.code, tuple(get_mutant_name(Path(file), name) for name in made.mutant_names))
    kept.write_text(json.dumps({"code": one.code, "names": one.names}))
    return one


def _tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]
