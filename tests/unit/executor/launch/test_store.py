"""What a node keeps between rounds is whole, private, and refused when it is not what the ledger names."""

import os
import shutil
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from executor.launch import store as kept
from executor.launch.store import Journal, NodeStore, stores_of, write_whole
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


def test_what_is_damaged_or_lost_is_named_by_its_path(store: NodeStore) -> None:
    digest = store.keep_state(b"a state")
    path = store.directory / "states" / digest.hex
    write_whole(path, b"another")
    with pytest.raises(StateError) as swapped:
        store.state(digest)
    assert swapped.value.cause == f"{path} has digest {Digest.of(b'another')}"
    path.unlink()
    with pytest.raises(StateError) as lost:
        store.state(digest)
    assert lost.value.cause == f"the ledger says the last task left state {digest}, and {path} is not there"
    write_whole(store.directory / "salt", b"short")
    with pytest.raises(RecordError) as damaged:
        store.salt()
    assert damaged.value.cause == f"{store.directory / 'salt'} is damaged: 5 bytes, not 32"
    assert damaged.value.code == "RECORD_VALUE"


def test_the_directories_of_an_organisation_s_nodes_are_found_and_no_others(tmp_path: Path) -> None:
    for organisation, process, node in (
        ("org1", "q", "node01"),
        ("org1", "p", "node02"),
        ("org1", "p", "node01"),
        ("org1", "p", "No Node"),
        ("org1", "No Process", "node01"),
        ("org2", "p", "node03"),
    ):
        (tmp_path / "executor" / organisation / process / node).mkdir(parents=True)
    (tmp_path / "executor" / "org1" / "p" / "a-file").write_text("")
    found = stores_of(tmp_path, "org1")
    assert [(each.process, each.node) for each in found] == [
        ("p", "node01"),
        ("p", "node02"),
        ("q", "node01"),
    ]
    assert [each.directory for each in found] == [
        tmp_path / "executor" / "org1" / each.process / each.node for each in found
    ]
    assert stores_of(tmp_path, "org9") == []


def test_whether_something_is_left_to_see_to(store: NodeStore) -> None:
    assert (store.has_remains, store.has_finished, store.is_settled) == (False, False, False)
    store.finished()
    assert (store.has_finished, store.is_settled) == (True, True)
    assert stat.S_IMODE((store.directory / "finished").stat().st_mode) & 0o177 == 0
    store.begin(Journal(0, "ed25519:00", "c"))
    assert (store.has_remains, store.is_settled) == (True, False)
    store.ended()
    (store.directory / "run").mkdir()
    assert (store.has_remains, store.is_settled) == (True, False)


def test_what_is_written_is_on_the_disk_before_and_after_it_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[bool, bool]] = []
    path = tmp_path / "file"
    usual = os.fsync

    def fsync(number: int) -> None:
        synced.append((stat.S_ISDIR(os.fstat(number).st_mode), path.exists()))
        usual(number)

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(path, b"content")
    assert synced == [(False, False), (True, True)]
    assert path.read_bytes() == b"content"


@pytest.mark.parametrize(
    ("content", "known"), [("abc\n", "abc"), ("\n", None), (None, None)], ids=["named", "empty", "none"]
)
def test_a_host_is_known_by_its_machine_id_or_else_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: str | None, known: str | None
) -> None:
    asked: list[str] = []

    def elsewhere(path: str) -> Path:
        asked.append(path)
        return tmp_path / "machine-id"

    if content is not None:
        (tmp_path / "machine-id").write_text(content)
    monkeypatch.setattr(kept, "Path", elsewhere)
    assert kept._host() == (known or socket.gethostname())
    assert asked == ["/etc/machine-id"]
