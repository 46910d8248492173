"""What a node keeps between rounds is whole, private, and refused when it is not what the ledger names."""

import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from executor.launch.store import Journal, NodeStore, write_whole
from protocol.digest import Digest
from protocol.errors import RecordError, StateError


@pytest.fixture
def store(tmp_path: Path) -> NodeStore:
    kept = NodeStore(tmp_path, "org1", "p", "node01")
    with kept.locked():
        pass
    return kept


ANOTHER_EXECUTOR = """
import sys
from pathlib import Path
from executor.errors import UsageError
from executor.launch.store import NodeStore
try:
    with NodeStore(Path(sys.argv[1]), "org1", "p", "node01").locked():
        print("held")
except UsageError as error:
    print(error.code)
"""


def another_executor(root: Path) -> str:
    command = [sys.executable, "-c", ANOTHER_EXECUTOR, str(root)]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def test_two_executors_do_not_work_for_one_node(tmp_path: Path) -> None:
    with NodeStore(tmp_path, "org1", "p", "node01").locked():
        assert another_executor(tmp_path) == "NODE_BUSY"
    assert another_executor(tmp_path) == "held"


def test_another_node_is_free(tmp_path: Path) -> None:
    with NodeStore(tmp_path, "org1", "p", "node01").locked(), NodeStore(tmp_path, "org1", "p", "n2").locked():
        pass


def test_the_salt_is_made_once_and_differs_by_node(tmp_path: Path, store: NodeStore) -> None:
    other = NodeStore(tmp_path, "org1", "p", "node02")
    with other.locked():
        assert store.salt() == store.salt() != other.salt()
    assert len(store.salt()) == 32


def test_a_damaged_salt_is_refused(store: NodeStore) -> None:
    write_whole(store.directory / "salt", b"short")
    with pytest.raises(RecordError):
        store.salt()


def test_a_state_is_found_by_its_digest(store: NodeStore) -> None:
    digest = store.keep_state(b"a state")
    assert store.state(digest) == b"a state"


def test_a_lost_state_is_named(store: NodeStore) -> None:
    with pytest.raises(StateError) as refused:
        store.state(Digest.of(b"never kept"))
    assert refused.value.code == "STATE_MISSING"


def test_a_swapped_state_is_refused(store: NodeStore) -> None:
    digest = store.keep_state(b"a state")
    write_whole(store.directory / "states" / digest.hex, b"another")
    with pytest.raises(StateError) as refused:
        store.state(digest)
    assert refused.value.code == "STATE_MISMATCH"


def test_the_journal_says_what_was_begun(store: NodeStore) -> None:
    assert store.begun() is None
    begun = Journal(3, "ed25519:00", "a-container")
    store.begin(begun)
    assert store.begun() == begun
    store.ended()
    assert store.begun() is None


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"iteration": 1}', b"\xff"])
def test_a_damaged_journal_is_refused(store: NodeStore, content: bytes) -> None:
    write_whole(store.directory / "journal.json", content)
    with pytest.raises(RecordError):
        store.begun()


def test_everything_is_private_to_the_operator(store: NodeStore) -> None:
    store.salt()
    store.keep_state(b"a state")
    store.begin(Journal(0, "ed25519:00", "c"))
    for path in [store.directory, *store.directory.rglob("*")]:
        allowed = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) & ~allowed == 0, path


def test_a_write_that_fails_leaves_the_old_content(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")
    with pytest.raises(TypeError):
        write_whole(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_f7_a_copy_of_the_directory_is_not_the_directory(tmp_path: Path, store: NodeStore) -> None:
    shutil.copytree(tmp_path / "executor", tmp_path / "copy" / "executor")
    copy = NodeStore(tmp_path / "copy", "org1", "p", "node01")
    assert copy.instance != store.instance
    with store.locked(), copy.locked():
        assert copy.instance != store.instance == NodeStore(tmp_path, "org1", "p", "node01").instance
    assert str(tmp_path) not in store.instance


def test_f7_the_directory_that_was_moved_is_still_the_one(tmp_path: Path, store: NodeStore) -> None:
    before = store.instance
    (tmp_path / "executor").rename(tmp_path / "moved")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "moved").rename(tmp_path / "elsewhere/executor")
    assert NodeStore(tmp_path / "elsewhere", "org1", "p", "node01").instance == before
