"""What is said where hfc's environment cannot be made; test_hfc.py shows that it can."""

import os
from pathlib import Path

import pytest

from executor.errors import UsageError
from executor.exits import USAGE, exit_code
from executor.ledger.hfc import environment

WHEEL = "six-1.17.0-py2.py3-none-any.whl"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache directory of the test's own, and no package index but a folder."""
    folder = tmp_path / "cache"
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("ATTESTREE_CACHE", str(folder))
    return folder


def refused(cache: Path) -> UsageError:
    with pytest.raises(UsageError) as caught:
        environment.hfc_python()
    assert exit_code(caught.value) == USAGE
    assert "--transport" in caught.value.remedy
    assert not list(cache.glob("hfc/*")), "half an environment was left"
    return caught.value


def test_package_index_that_cannot_be_reached_is_named(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    error = refused(cache)
    assert error.code == "HFC_INSTALL"
    assert "package index" in error.remedy


def test_package_that_was_swapped_is_not_installed(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = tmp_path / "index"
    index.mkdir()
    (index / WHEEL).write_bytes(b"not what was locked")
    locked = tmp_path / "locked.txt"
    locked.write_text(f"six==1.17.0 --hash=sha256:{'0' * 64}\n")
    monkeypatch.setattr(environment, "BUILD", locked)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(index))
    assert refused(cache).code == "HFC_HASH"
