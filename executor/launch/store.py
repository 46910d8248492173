"""What a node keeps on its organisation's disk between tasks, and what an interrupted task leaves behind.

    ORGANISATION/PROCESS/NODE/
        lock              held by the one executor that works for the node
        salt              32 random bytes that hide the data commitment
        states/<hex>      every state a task left, named by its SHA-256: what a replay starts from
        journal.json      the task that is under way: its key's public half and its container
        finished          there once nothing is left to do: its model is published, or there is none to come
        run/              what its container reads

Everything is private to the operator and written whole or not at all.
"""

import contextlib
import fcntl
import json
import os
import secrets
import socket
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path

from executor.errors import UsageError
from executor.user_files import parse_json
from protocol.digest import Digest
from protocol.errors import AttestreeError, RecordError, StateError
from protocol.identifiers import parse_node, parse_process
from protocol.values import dataclass

SALT_BYTES = 32


@dataclass(frozen=True)
class Journal:
    """A task that was begun on this host, as the next start finds it."""

    iteration: int
    public_key: str
    container: str
    store: str = ""
    """Which directory it was begun with; a copy of the directory has this from the other one."""
    lost_key: str = ""
    """Of the start before, if that ended while its task was being opened: it may be opened yet."""


class NodeStore:
    """The directory of one node in one process."""

    def __init__(self, root: Path, organisation: str, process: str, node: str) -> None:
        self.process, self.node = process, node
        self.directory = root / "executor" / organisation / process / node
        self._states = self.directory / "states"
        self._journal = self.directory / "journal.json"
        self._finished = self.directory / "finished"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the node for this executor; the lock falls with the process, however it ends."""
        self._make()
        busy = UsageError("NODE_BUSY", f"another executor on this host works for {self.directory.name}")
        with held(self.directory / "lock", busy):
            yield

    @property
    def instance(self) -> str:
        """Tell this directory from every copy of it, here and on other hosts, without naming either.

        Whoever holds the lock of exactly this file knows that no other executor works with it; a copy of the
        directory has a lock of its own, and what belongs to the one must not be taken for the other's.
        """
        found = (self.directory / "lock").stat()
        return sha256(f"{_host()} {found.st_ino} {found.st_ctime_ns}".encode()).hexdigest()[:32]

    def _make(self) -> None:
        # Each by itself: `parents=True` would leave the ones above open to others.
        for part in [*reversed(self.directory.parents[:3]), self.directory, self._states]:
            part.mkdir(mode=0o700, exist_ok=True)

    def salt(self) -> bytes:
        """Return the salt of the node's data commitments, made at the first task."""
        path = self.directory / "salt"
        if not path.exists():
            write_whole(path, secrets.token_bytes(SALT_BYTES))
        salt = path.read_bytes()
        if len(salt) != SALT_BYTES:
            raise RecordError("RECORD_VALUE", f"{path} is damaged: {len(salt)} bytes, not {SALT_BYTES}")
        return salt

    def keep_state(self, raw: bytes) -> Digest:
        """Keep a state, before the ledger hears of it: the ledger must never name a state that is lost."""
        digest = Digest.of(raw)
        write_whole(self._states / digest.hex, raw)
        return digest

    def state(self, digest: Digest) -> bytes:
        """Return the state that the node's last completed task left."""
        path = self._states / digest.hex
        try:
            raw = path.read_bytes()
        except FileNotFoundError as error:
            raise StateError(
                "STATE_MISSING",
                f"the ledger says the last task left state {digest}, and {path} is not there",
            ) from error
        if Digest.of(raw) != digest:
            raise StateError("STATE_MISMATCH", f"{path} has digest {Digest.of(raw)}", case="file")
        return raw

    def begin(self, journal: Journal) -> None:
        """Write down what is about to exist, before it does."""
        write_whole(self._journal, json.dumps(asdict(journal)).encode())

    def begun(self) -> Journal | None:
        """Return the task that was begun and not ended, if there is one."""
        try:
            return Journal(**parse_json(self._journal.read_bytes()))
        except FileNotFoundError:
            return None
        except (ValueError, TypeError) as error:
            raise RecordError("RECORD_VALUE", f"{self._journal} is damaged: {error}") from error

    @property
    def has_remains(self) -> bool:
        """Whether an executor that is gone left a task here that was not ended."""
        return self._journal.exists() or (self.directory / "run").exists()

    @property
    def has_finished(self) -> bool:
        """Whether it is known that nothing is left to do for the node."""
        return self._finished.exists()

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing to see to here, by what is said; another user's directory says nothing."""
        try:
            return self.has_finished and not self.has_remains
        except PermissionError:
            return True

    def finished(self) -> None:
        """Note that nothing is left to do for the node."""
        self._finished.touch(mode=0o600)

    def ended(self) -> None:
        """Forget the task: nothing of it is left to clean."""
        self._journal.unlink(missing_ok=True)


def stores_of(root: Path, organisation: str) -> list[NodeStore]:
    """Return the directories that there are of an organisation's nodes, in any process."""
    found = []
    for directory in sorted((root / "executor" / organisation).glob("*/*/")):
        with contextlib.suppress(AttestreeError):  # another directory than a node's
            process, node = parse_process(directory.parent.name), parse_node(directory.name)
            found.append(NodeStore(root, organisation, process, node))
    return found


@contextmanager
def held(path: Path, busy: UsageError) -> Iterator[None]:
    """Hold a lock that falls with the process, however it ends; raises `busy` if somebody else has it."""
    with os.fdopen(os.open(path, os.O_CREAT | os.O_RDWR, 0o600)) as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise busy from error
        yield


def _host() -> str:
    """Name this host among those that may share an engine."""
    try:
        return Path("/etc/machine-id").read_text(encoding="ascii").strip() or socket.gethostname()
    except OSError:
        return socket.gethostname()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there with all its content or not at all, also after a loss of power."""
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
