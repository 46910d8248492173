"""The jobs of a run: checks, unit tests, the test network, and the groups of end-to-end tests on it."""

import json
import subprocess
from pathlib import Path

from .jobs import Job
from .selection import Selection
from .shards import shards
from .surroundings import CONSENSUS, ROOT, RefusedError, cache

BIN = ".venv/bin"
E2E_WORKERS = "4"
"""More than there are processors, because end-to-end tests mostly wait."""

SIDE_BY_SIDE = ("-n", E2E_WORKERS, "--dist", "loadfile", "--no-loadscope-reorder")
SHARED, ALONE = "e2e", "e2e alone"
MARKS = {SHARED: "not alone", ALONE: "alone"}


def checks() -> list[Job]:
    """Return the linters and the type checker."""
    return [
        Job("ruff check", [f"{BIN}/ruff", "check", "."], 120),
        Job("ruff format", [f"{BIN}/ruff", "format", "--check", "."], 120),
        # Kept with the other caches, where a fresh clone finds it: it goes by content.
        Job("mypy", [f"{BIN}/mypy", "--cache-dir", str(cache() / "mypy")], 900),
        Job("import-linter", [f"{BIN}/lint-imports"], 300),
        Job("shellcheck", [f"{BIN}/shellcheck", "-x", *shell_files()], 300),
    ]


def shell_files() -> list[str]:
    """Return every shell script of the repository, by its first line."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "*.sh", "scripts", ".ci"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    ).stdout.split("\0")
    found = []
    for name in filter(None, listed):
        first = (ROOT / name).open(errors="replace").readline() if (ROOT / name).is_file() else ""
        if (first.startswith("#!") and "bash" in first) or first.startswith("# shellcheck shell=bash"):
            found.append(name)
    return found


def data() -> Job:
    """Return the download of the credit card data, which a test of the paper's experiment reads."""
    return Job("credit card data", [f"{BIN}/executor", "experiment", "data"], 1200)


def fuzz() -> Job:
    """Return a short search for inputs that the parsers cannot take, with the same beginning every time."""
    return Job("fuzz", ["scripts/fuzz", "2"], 600, environment={"ATTESTREE_FUZZ_SEED": "1"})


def mutants() -> Job:
    """Return a look at whether tests guard the rules that the newest commit changed."""
    return Job("mutants", [f"{BIN}/python", "-m", "tests.runner.mutate", "--changed", "--sample", "12"], 900)


def network(*, fresh: bool) -> list[Job]:
    """Return what brings up the test network and makes the learner image; the later jobs need both."""
    publish = [f"{BIN}/executor", "image", "publish", "attestree/learner"]
    up = ["network/up.sh", "--probe", "--consensus", CONSENSUS, *(["--fresh"] if fresh else [])]
    return [
        Job("bootstrap", ["scripts/bootstrap"], 1800, needed=True),
        Job("network", up, 3600, needed=True),
        Job("learner image", [f"{BIN}/executor", "image", "build"], 1800, needed=True),
        Job("learner image on the ledger", publish, 600, needed=True),
    ]


def down() -> Job:
    """Return the removal of the test network."""
    return Job("network down", ["network/down.sh", "--purge"], 300)


def units(selection: Selection, folder: Path, *, live: bool) -> list[Job]:
    """Return the unit tests, dealt out to processes that go side by side."""
    dealt = shards(selection.unit)
    names = [f"unit {number} of {len(dealt)}" for number in range(1, len(dealt) + 1)]
    return [
        _pytest(name, selection, [*files, *selection.marked("")], folder, seconds=1800, live=live)
        for name, files in zip(names if len(dealt) > 1 else ["unit"], dealt, strict=True)
    ]


def e2e(name: str, selection: Selection, folder: Path) -> Job:
    """Return a group of end-to-end tests: those that go side by side, or those that stop what others use."""
    workers = SIDE_BY_SIDE if name == SHARED else ()
    arguments = [*selection.e2e, *selection.marked(MARKS[name]), *workers]
    return _pytest(name, selection, arguments, folder, seconds=3600, live=True)


def _pytest(
    name: str, selection: Selection, arguments: list[str], folder: Path, *, seconds: float, live: bool
) -> Job:
    file = name.replace(" ", "-")
    command = [
        f"{BIN}/pytest", *arguments, f"--basetemp={folder.parent / file}", f"--junit-xml={folder / file}.xml",
        *selection.options,
    ]  # fmt: skip
    # A choice may leave no test of a group, and not every version has tests that go alone: pytest calls it 5.
    allowed = (0, 5) if selection.chosen or name == ALONE else (0,)
    results = {"ATTESTREE_RESULTS": str(results_file(name, folder)), "ATTESTREE_NETWORK_IS_UP": "yes"}
    return Job(name, command, seconds, live=live, allowed=allowed, environment=results)


def results_file(name: str, folder: Path) -> Path:
    """Return where a group's results are written, line by line."""
    return folder / f"{name.replace(' ', '-')}.jsonl"


def groups(selection: Selection, environment: dict[str, str], folder: Path) -> list[str]:
    """Return the groups that the selection has end-to-end tests of; without any, no network is needed."""
    if not selection.e2e or not selection.chosen:
        return [SHARED, ALONE] if selection.e2e else []
    file = folder / "collected.jsonl"
    command = [
        f"{BIN}/pytest",
        *selection.e2e,
        *selection.marked(""),
        *selection.options,
        "--collect-only",
        "-q",
    ]
    ran = subprocess.run(
        command,
        cwd=ROOT,
        env={**environment, "ATTESTREE_RESULTS": str(file)},
        capture_output=True,
        check=False,
        timeout=600,
        stdin=subprocess.DEVNULL,
    )
    if ran.returncode == 5:
        return []
    if ran.returncode < 0:
        raise RefusedError(f"the search for tests was ended by signal {-ran.returncode}")
    collected = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    alone = {line["alone"] for line in collected if line["when"] == "collected"}
    # What cannot even be collected is for the run to report.
    return [name for name, kind in ((SHARED, False), (ALONE, True)) if kind in alone] or [SHARED]
