"""The wheels as a user has them: each alone in an environment, with its README's example."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.network import ROOT, done, run

# The operator's environment must not stand in for what a wheel lacks; gRPC would obey its proxy variables.
BARE = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "HOME": os.environ.get("HOME", "/")}
CACHE = os.environ.get("ATTESTREE_CACHE") or str(
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "attestree"
)


def environment(folder: Path, requirements: str) -> Path:
    """Make an environment with locked packages alone, and return its Python."""
    done(sys.executable, "-m", "venv", "--without-pip", str(folder))
    python = folder / "bin/python"
    _install(python, "--require-hashes", "-r", str(ROOT / "requirements" / requirements))
    return python


def install(folder: Path, requirements: str, wheel: Path) -> Path:
    """Make an environment with the locked packages and the wheel, and return its Python."""
    python = environment(folder, requirements)
    _install(python, "--no-deps", str(wheel))
    done(".venv/bin/python", "-m", "pip", "--python", str(python), "check")
    return python


def _install(python: Path, *arguments: str) -> None:
    """With uv from the cache that the set-up filled, or with pip, which knows other package indexes."""
    flags = ("--quiet", "--python", str(python), "--cache-dir", f"{CACHE}/uv")
    if run(".venv/bin/uv", "pip", "install", *flags, *arguments).returncode != 0:
        done(".venv/bin/python", "-m", "pip", "--python", str(python), "install", "--quiet", *arguments)


def example(project: str, folder: Path) -> Path:
    """Write the first Python example of a project's README into a file."""
    text = (ROOT / "scripts/wheels" / project / "README.md").read_text(encoding="utf-8")
    found = re.search(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    assert found, f"the README of {project} has no example"
    path = folder / f"{project.replace('-', '_')}_example.py"
    path.write_text(found.group(1))
    return path


def play(python: Path, script: Path, **environment: str) -> str:
    """Run an example to its end and return what it printed."""
    ran = subprocess.run(
        [python, "-I", script],
        env={**BARE, **environment},
        cwd=script.parent,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
    )
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    return ran.stdout


@contextmanager
def serving(python: Path, script: Path, log: Path, **environment: str) -> Iterator[subprocess.Popen[str]]:
    """Run an example that serves, once it has said that it listens; end it as an operator does."""
    with log.open("w") as errors:
        started = subprocess.Popen(
            [python, "-I", script],
            env={**BARE, **environment},
            cwd=script.parent,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            assert started.stdout is not None
            line = started.stdout.readline()
            assert "listens on" in line, f"{line}\n{log.read_text()}"
            yield started
        finally:
            started.terminate()
            started.wait(timeout=150)
