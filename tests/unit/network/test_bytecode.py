"""Byte code that one clone's environment compiled is another's, as long as the sources are the same."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[3] / "network/lib/bytecode.py"


@pytest.fixture
def first(tmp_path: Path) -> Path:
    site = tmp_path / "first"
    (site / "package").mkdir(parents=True)
    (site / "package/module.py").write_text("ANSWER = 42\n")
    (site / "package/template.py").write_text("this is {no} Python\n")
    return site


def run(site: Path, store: Path) -> None:
    subprocess.run([sys.executable, str(SCRIPT), str(site), str(store)], check=True, timeout=150)


def compiled(site: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(site / "package/module.py")))


def test_second_clone_takes_the_byte_code_of_the_first(first: Path, tmp_path: Path) -> None:
    store, second = tmp_path / "store", tmp_path / "second"
    run(first, store)
    assert compiled(first).samefile(compiled(store))
    # As links to one cache the sources have one time of change.
    shutil.copytree(first, second, ignore=shutil.ignore_patterns("__pycache__"), copy_function=shutil.copy2)
    run(second, store)
    assert compiled(second).samefile(compiled(first))
    assert [path.name for path in compiled(store).parent.iterdir()] == [compiled(store).name]


def test_byte_code_of_another_source_is_replaced(first: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    run(first, store)
    stale = compiled(store).read_bytes()
    (first / "package/module.py").write_text("ANSWER = 43\n")
    os.utime(first / "package/module.py", (1, 1))
    run(first, store)
    assert compiled(first).read_bytes() == compiled(store).read_bytes() != stale
