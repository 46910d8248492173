"""Mutants: copies of the code with one small change each, and what the tests made of them, by mutmut."""

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .surroundings import ROOT

PYTHON = ROOT / ".venv" / "bin" / "python"
KILLED = ("killed", "timeout", "segfault", "caught by type check")
UNNOTICED = ("survived", "no tests")
# What a mutant of the first kind of code can break is tested by the second.
GUARDED_BY = {
    "protocol": ("tests/unit/protocol", "tests/unit/chaincode"),
    "chaincode/execution_record": ("tests/unit/chaincode",),
    "chaincode/image": ("tests/unit/chaincode",),
    "chaincode/model": ("tests/unit/chaincode",),
    "chaincode/orchestration": ("tests/unit/chaincode",),
    "executor/launch": ("tests/unit/executor/launch",),
}
_COPIED = ("protocol", "learning", "experiments", "chaincode", "executor", "learner-image", "tests", "docs")
# These look at files or start programs of their own, and say nothing about a function changed in memory.
_LEFT_OUT = (
    "test_purity.py",
    "test_document.py",
    "test_serve.py",
    "test_codes.py",
    "test_bench_chaincode.py",
)


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change and what became of it."""

    name: str
    file: str
    status: str

    @property
    def noticed(self) -> bool:
        """Whether a test failed because of it."""
        return self.status in KILLED


class Mutation:
    """The mutants of some files, in a copy of the repository."""

    def __init__(self, files: Sequence[str], folder: Path) -> None:
        self.files, self.folder = files, folder
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for name in _tracked():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        # The compiled kernel is built where the environment is installed from.
        for built in (ROOT / "learning").glob("*.so"):
            shutil.copy2(built, folder / "learning")
        with (folder / "pyproject.toml").open("a") as settings:
            settings.write(_settings(files))

    def make(self) -> list[str]:
        """Make every mutant, find out which tests reach which, and return the mutants' names."""
        # A name that no mutant has: mutmut prepares everything and then refuses to run none.
        self._mutmut("run", "-")
        return sorted(name for file in self.files for name in self._known(file))

    def run(self, names: Sequence[str]) -> list[Mutant]:
        """Run the tests on each of these mutants."""
        self._mutmut("run", *names)
        chosen = set(names)
        found = []
        for line in self._mutmut("results", "--all", "true").splitlines():
            name, _, status = line.strip().partition(": ")
            if name in chosen:
                found.append(Mutant(name, self._file_of(name), status))
        return found

    def change(self, mutant: Mutant) -> str:
        """Return what a mutant changed: the lines that were taken away and put in."""
        shown = self._mutmut("show", mutant.name).splitlines()
        return "\n".join(line for line in shown if line[:1] in "+-" and line[:3] not in ("+++", "---"))

    def _known(self, file: str) -> Iterable[str]:
        meta = self.folder / "mutants" / f"{file}.meta"
        return json.loads(meta.read_text())["exit_code_by_key"] if meta.is_file() else ()

    def _file_of(self, name: str) -> str:
        return next((file for file in self.files if name in self._known(file)), "")

    def _mutmut(self, *arguments: str) -> str:
        log = self.folder / "mutmut.log"
        with log.open("ab") as output:
            ran = subprocess.run(
                [PYTHON, "-W", "ignore", "-m", "mutmut", *arguments],
                cwd=self.folder,
                stdout=subprocess.PIPE if arguments[0] != "run" else output,
                stderr=output,
                check=False,
                timeout=7200,
            )
        return ran.stdout.decode() if ran.stdout else ""


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


def sample(names: Sequence[str], most: int) -> list[str]:
    """Choose at most so many names, the same ones every time."""
    return sorted(sorted(names, key=lambda name: hashlib.sha256(name.encode()).digest())[:most])


def _tracked() -> list[str]:
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def _settings(files: Sequence[str]) -> str:
    tests = sorted({path for file in files for room, paths in GUARDED_BY.items() if file.startswith(room)
                    for path in paths})  # fmt: skip
    left_out = [f"--ignore={path}/{name}" for path in tests for name in _LEFT_OUT]
    lines = {
        "source_paths": ["protocol", "chaincode", "executor"],
        "only_mutate": [*files],
        "also_copy": [*_COPIED, "network", "scripts", "examples", "README.md", "docker-compose.yml"],
        "pytest_add_cli_args_test_selection": [*tests, *left_out],
        "pytest_add_cli_args": ["-p", "no:cacheprovider", "-p", "no:xdist"],
    }
    return "\n[tool.mutmut]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in lines.items())
