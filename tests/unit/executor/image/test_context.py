"""The build context: content alone decides key and bytes."""

import os
import shutil
import tarfile
from pathlib import Path

import pytest

from executor.errors import UsageError
from executor.image.context import CHAINCODE, Sources

BASE = ["sha256:base"]
ROOT = Path(__file__).parents[4]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for name in (
        "protocol/__init__.py", "protocol/py.typed", "learning/__init__.py", "learning/fit.py",
        "learner-image/learner/__init__.py", "learner-image/learner/__main__.py", "learner-image/Dockerfile",
        "learner-image/rootfs.py", "requirements/learner.txt",
    ):  # fmt: skip
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# {name}\n")
    (tmp_path / "wheels").mkdir()
    (tmp_path / "wheels/numpy.whl").write_bytes(b"wheel")
    return root


def test_a_copy_with_other_times_and_modes_is_the_same_context(tree: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(tree, copy)
    for path in copy.rglob("*"):
        os.utime(path, (1, 1))
        path.chmod(0o700)
    one, other = Sources.find(tree), Sources.find(copy)
    assert one.key(BASE) == other.key(BASE)
    wheels = tmp_path / "wheels"
    assert one.archive(wheels).getvalue() == other.archive(wheels).getvalue()


def test_byte_code_and_libraries_built_here_stay_out(tree: Path, tmp_path: Path) -> None:
    before = Sources.find(tree).key(BASE)
    (tree / "learning/__pycache__").mkdir()
    (tree / "learning/__pycache__/fit.cpython-311.pyc").write_bytes(b"code")
    (tree / "learning/_kernel.abi3.so").write_bytes(b"library")
    assert Sources.find(tree).key(BASE) == before
    with tarfile.open(fileobj=Sources.find(tree).archive(tmp_path / "wheels")) as archive:
        assert archive.getnames() == [
            "Dockerfile",
            "packages/learner/__init__.py",
            "packages/learner/__main__.py",
            "packages/learning/__init__.py",
            "packages/learning/fit.py",
            "packages/protocol/__init__.py",
            "packages/protocol/py.typed",
            "requirements.txt",
            "rootfs.py",
            "wheels/numpy.whl",
        ]


@pytest.mark.parametrize("name", ["learning/fit.py", "learner-image/Dockerfile", "requirements/learner.txt"])
def test_a_change_of_any_source_is_another_key(tree: Path, name: str) -> None:
    before = Sources.find(tree).key(BASE)
    (tree / name).write_text("changed")
    assert Sources.find(tree).key(BASE) != before


def test_the_chaincode_has_sources_and_a_key_of_its_own() -> None:
    found = Sources.find(ROOT, CHAINCODE)
    assert {name.split("/")[1] for name in found.files if "/" in name} == {"protocol", "chaincode"}
    assert found.key(BASE) != Sources.find(ROOT).key(BASE)


def test_another_base_is_another_key(tree: Path) -> None:
    assert Sources.find(tree).key(BASE) != Sources.find(tree).key(["sha256:other"])


@pytest.mark.parametrize("name", ["learner-image/Dockerfile", "learner-image/learner", "protocol"])
def test_an_installation_without_sources_says_so(tree: Path, name: str) -> None:
    path = tree / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    with pytest.raises(UsageError) as caught:
        Sources.find(tree)
    assert caught.value.code == "SOURCES_MISSING"
    assert name in caught.value.cause
