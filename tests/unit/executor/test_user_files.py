"""A path from a user may name anything: none of it hangs, fills the memory or ends in a traceback."""

import os
from pathlib import Path

import pytest

from executor.data import load
from executor.errors import DatasetError
from executor.image.manifest import Manifest
from executor.launch.source import DataSource, remember, source_of
from executor.launch.store import NodeStore
from executor.process.document import read
from executor.process.errors import FederationError
from executor.user_files import UserFileError, open_file, parse_json, read_file
from protocol.errors import AttestreeError, RecordError


def odd_paths(folder: Path) -> dict[str, Path]:
    """A pipe, a loop of links, a directory, devices, and a file of the kernel's."""
    pipe, loop = folder / "pipe", folder / "loop"
    os.mkfifo(pipe)
    loop.symlink_to(loop)
    return {
        "pipe": pipe,
        "loop": loop,
        "directory": folder,
        "endless": Path("/dev/zero"),
        "terminal": Path("/dev/tty"),
        "memory": Path("/proc/self/mem"),
        "missing": folder / "missing",
        "zero byte": Path("a\0b"),
        "long": folder / ("x" * 5000),
    }


ODD = ("pipe", "loop", "directory", "endless", "terminal", "memory", "missing", "zero byte", "long")


@pytest.mark.parametrize("kind", ODD)
def test_g_an_odd_path_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = odd_paths(tmp_path)[kind]
    with pytest.raises(UserFileError):
        read_file(path, 1000)
    with pytest.raises(DatasetError) as data:
        load(path, "Class")
    assert data.value.code == "DATA_FILE"
    with pytest.raises(FederationError) as specification:
        read(path)
    assert specification.value.code == "FEDERATION_FILE"


def test_a_large_file_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(UserFileError) as refused:
        read_file(path, 1 << 30)
    assert refused.value.too_large
    with pytest.raises(DatasetError, match="DATA_SIZE"):
        load(path, "Class")


def test_a_file_that_says_it_is_empty_is_read_up_to_the_limit() -> None:
    assert b"Name:" in read_file(Path("/proc/self/status"), 1 << 16)
    with pytest.raises(UserFileError, match="more than 10 bytes"):
        read_file(Path("/proc/self/status"), 10)


def test_the_limit_itself_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345")
    assert read_file(path, 5) == b"12345"
    with pytest.raises(UserFileError):
        read_file(path, 4)
    with open_file(path) as file:
        assert file.read() == b"12345"


# --- JSON of others ---


@pytest.mark.parametrize("raw", [b"[" * 100_000, b'{"a":' * 100_000, b"[" * 65 + b"]" * 65])
def test_nested_json_is_refused_and_no_recursion_error(raw: bytes) -> None:
    with pytest.raises(ValueError, match="nested more than 64 deep"):
        parse_json(raw)
    with pytest.raises(AttestreeError, match="IMAGE_MANIFEST"):
        Manifest.parse(raw)


def test_json_within_the_depth_is_read() -> None:
    assert parse_json(b"[" * 64 + b"]" * 64)
    assert parse_json(b'{"a": "[[[[\\"[[", "b": [1, 2.5, null]}') == {"a": '[[[["[[', "b": [1, 2.5, None]}
    assert parse_json(b'["' + b"[" * 1000 + b'"]') == ["[" * 1000]


def test_json_in_another_encoding_is_refused() -> None:
    with pytest.raises(ValueError, match="utf-8"):
        parse_json("[[]]".encode("utf-16"))


# --- where the rows are ---


@pytest.fixture
def store(tmp_path: Path) -> NodeStore:
    kept = NodeStore(tmp_path, "org1", "p", "node01")
    with kept.locked():
        pass
    return kept


def test_g_a_bad_source_is_not_remembered(store: NodeStore, tmp_path: Path) -> None:
    good, bad = DataSource(str(tmp_path / "{node}.csv")), DataSource(str(tmp_path / "loop"))
    (tmp_path / "node01.csv").write_text("a,Class\n1,0\n2,1\n", "utf-8")
    odd_paths(tmp_path)
    assert source_of(good, store, tmp_path, "node01").load("node01").schema.features == ("a",)
    remember(good, store)
    with pytest.raises(DatasetError, match="loop"):
        source_of(bad, store, tmp_path, "node01").load("node01")
    assert source_of(None, store, tmp_path, "node01") == good


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"[" * 100_000, b'{"path": "x"}'])
def test_a_damaged_memory_of_the_source_is_named(store: NodeStore, content: bytes, tmp_path: Path) -> None:
    (store.directory / "data.json").write_bytes(content)
    with pytest.raises(RecordError, match=r"data\.json is damaged"):
        source_of(None, store, tmp_path, "node01")


@pytest.mark.parametrize("first", ["4711,secret,secret\n1,2,3\n", "secret,7,8\n9,10,11\n"])
def test_g4_values_of_rows_without_a_header_are_not_told(tmp_path: Path, first: str) -> None:
    path = tmp_path / "rows.csv"
    path.write_text(first, "utf-8")
    with pytest.raises(DatasetError) as refused:
        load(path, "Class")
    assert "secret" not in str(refused.value)
    assert "4711" not in str(refused.value)
