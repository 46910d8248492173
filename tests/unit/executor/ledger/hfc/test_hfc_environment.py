"""Where hfc's environment is, what it is made with, and who makes it."""

import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import pytest

from executor.errors import UsageError
from executor.ledger.hfc import environment
from executor.ledger.hfc.installed import mark


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("ATTESTREE_CACHE", str(folder))
    return folder


def test_python_that_hfc_cannot_run_on_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "version_info", (3, 12, 0, "final", 0))
    monkeypatch.setenv("PATH", str(cache))
    with pytest.raises(UsageError) as caught:
        environment.hfc_python()
    assert caught.value.code == "HFC_PYTHON"
    assert "3.11" in caught.value.cause


def test_newer_python_uses_the_right_one_beside_it(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    beside = cache / "bin"
    beside.mkdir(parents=True)
    (beside / "python3.11").symlink_to(sys.executable)
    monkeypatch.setattr(sys, "version_info", (3, 13, 0, "final", 0))
    monkeypatch.setenv("PATH", str(beside))
    assert environment.base_python() == str(beside / "python3.11")


@pytest.mark.parametrize("python", ["gone", "a name that no file can have" * 10])
def test_environment_whose_python_has_gone_is_made_again(cache: Path, python: str) -> None:
    home = cache / "hfc" / environment._key()
    (home / "bin").mkdir(parents=True)
    (home / "bin/python").symlink_to(cache / python)
    made = cache / "made"
    (made / "bin").mkdir(parents=True)
    (made / "bin/python").symlink_to(sys.executable)
    mark(made)
    environment._move(made, home)
    assert (home / "bin/python").exists()
    assert environment.hfc_python() == home / "bin/python"


@pytest.fixture
def installed(cache: Path) -> Path:
    """What an installation leaves, in small."""
    home = cache / "hfc" / environment._key()
    (home / "lib").mkdir(parents=True)
    (home / "bin").mkdir()
    (home / "bin/python").symlink_to(sys.executable)
    (home / "lib/client.py").write_text("signs = True\n", encoding="utf-8")
    mark(home)
    for path in (cache, home.parent, home, *home.rglob("*")):
        if not path.is_symlink():
            path.chmod(path.stat().st_mode & ~0o022)
    mark(home)
    assert environment.hfc_python() == home / "bin/python"
    return home


ALTERATIONS = {
    "a file is altered": lambda home: (home / "lib/client.py").write_text("signs = False\n"),
    "a file is added": lambda home: (home / "lib/sitecustomize.py").touch(),
    "a file is gone": lambda home: (home / "lib/client.py").unlink(),
    "python is another": lambda home: ((home / "bin/python").unlink(), (home / "bin/python").touch()),
    "others may write a file": lambda home: (home / "lib/client.py").chmod(0o666),
    "others may write a directory": lambda home: (home / "lib").chmod(0o777),
    "others may write the cache": lambda home: home.parent.parent.chmod(0o777),
    "it was never finished": lambda home: (home / "installed.sha256").unlink(),
}


@pytest.mark.parametrize("what", ALTERATIONS)
def test_an_environment_that_is_not_what_was_installed_gets_no_key(installed: Path, what: str) -> None:
    ALTERATIONS[what](installed)
    with pytest.raises(UsageError, match="HFC_CHANGED"):
        environment.hfc_python()


def test_an_alteration_that_sets_its_time_back_is_found_by_a_process_that_looked_before(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = time.time_ns() + 10**10
    monkeypatch.setattr(time, "time_ns", lambda: later)
    hashed: list[Path] = []
    monkeypatch.setattr(hashlib, "file_digest", _counting(hashlib.file_digest, hashed))
    for _ in range(3):
        environment.hfc_python()
    assert len(hashed) == 1, "only the first look hashes"
    file = installed / "lib/client.py"
    before = file.stat()
    # Older kernels tell such times by their clock's ticks of some milliseconds.
    while file.stat().st_ctime_ns == before.st_ctime_ns:
        file.write_text("signs = None\n", encoding="utf-8")
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert (file.stat().st_size, file.stat().st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    with pytest.raises(UsageError, match="HFC_CHANGED"):
        environment.hfc_python()


def _counting(digest: Callable[..., Any], hashed: list[Path]) -> Callable[..., Any]:
    def counted(file: BinaryIO, name: str) -> Any:
        hashed.append(Path(file.name))
        return digest(file, name)

    return counted


def test_second_process_uses_what_a_faster_one_made(cache: Path) -> None:
    home, made = cache / "hfc/key", cache / "made"
    for folder in (home, made):
        (folder / "bin").mkdir(parents=True)
        shutil.copy(sys.executable, folder / "bin/python")
    (home / "first").touch()
    environment._move(made, home)
    assert (home / "first").exists()


def test_every_locked_package_has_a_hash_and_one_version() -> None:
    for path in (environment.LOCKED, environment.BUILD):
        requirements = [
            requirement
            for requirement in path.read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
            if requirement and not requirement.startswith("#")
        ]
        assert requirements
        assert all("==" in one and "--hash=sha256:" in one for one in requirements)


def test_new_lock_makes_a_new_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = environment._key()
    changed = tmp_path / "hfc.txt"
    changed.write_bytes(environment.LOCKED.read_bytes() + b"#")
    monkeypatch.setattr(environment, "LOCKED", changed)
    assert environment._key() != before


def test_cache_is_the_networks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("ATTESTREE_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert environment._cache() == tmp_path / "attestree"
    monkeypatch.setenv("ATTESTREE_CACHE", str(tmp_path / "own"))
    assert environment._cache() == tmp_path / "own"
