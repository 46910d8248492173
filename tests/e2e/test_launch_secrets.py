"""The task's private key is nowhere but in the executor and on the learner's standard input (B8).

A round runs in this process with a key that the test knows. While the learner is at work, and again when
all is over, every place is searched that others could read.
"""

import base64
import os
import re
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from docker import DockerClient
from support.launching import (
    blocks_since,
    containers_of,
    height,
    launch,
    nothing_is_left,
    running,
    store_of,
    task_of,
)

from executor.launch import task_run as steps
from executor.launch.relay import TaskRelay
from executor.sandbox.profile import ROWS, SOCKET, STATE
from protocol.digest import Digest
from protocol.signing import SigningKey

NODES = {"node01": "org1", "node02": "org1"}
LARGEST = 64 << 20
TEMPORARY = tuple({Path(tempfile.gettempdir()), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")})
MOUNTS = {"/attestree", ROWS, STATE, SOCKET}


def spellings(secret: bytes) -> tuple[bytes, ...]:
    """The secret raw, in hex and in base64, there at each of the three places a longer text can put it."""
    shifted = [base64.b64encode(bytes(i) + secret)[4 if i else 0 : -4] for i in range(3)]
    url = [text.translate(bytes.maketrans(b"+/", b"-_")) for text in shifted]
    return secret, secret.hex().encode(), secret.hex().upper().encode(), *shifted, *url


def holds(content: bytes, secret: bytes) -> bool:
    return any(text in content for text in spellings(secret))


@dataclass
class Search:
    """Everything that was looked at, by place, and where the secret was."""

    secret: bytes
    since: float
    found: list[str] = field(default_factory=list)
    looked_at: dict[str, int] = field(default_factory=dict)

    def look(self, place: str, content: bytes) -> None:
        kind = place.partition(" ")[0]
        self.looked_at[kind] = self.looked_at.get(kind, 0) + 1
        if holds(content, self.secret):
            self.found.append(place)

    def look_at_processes(self) -> None:
        """Environment and arguments of all processes, those of containers included."""
        for folder in Path("/proc").iterdir():
            for name in ("environ", "cmdline"):
                if folder.name.isdigit():
                    self.look(f"{name} {folder.name}", contents(folder / name))

    def look_at_files(self, *roots: Path) -> None:
        """Files below these places that were written since the test began."""
        for root in roots:
            for path in written_since(root, self.since):
                self.look(f"file {path}", contents(path))

    def look_at_container(self, client: DockerClient, identity: str) -> None:
        """What the engine tells about the container, has logged of it, and has of it on its disk."""
        inspected = client.api.inspect_container(identity)
        self.look("inspect", repr(inspected).encode())
        self.look("logs", client.api.logs(identity))
        # Its root holds what the image does, and the places of the mounts.
        changed = {entry["Path"] for entry in client.api.diff(identity) or []}
        self.found += [f"diff {path}" for path in changed - MOUNTS]
        self.look("history", repr(client.api.history(inspected["Image"])).encode())
        self.look("image", repr(client.api.inspect_image(inspected["Image"])).encode())
        self.look_at_files(Path(inspected["LogPath"] or "/nowhere").parent)


def contents(path: Path) -> bytes:
    """A file that went away, or that is not ours to read, has nothing to tell."""
    try:
        with path.open("rb") as file:
            return file.read(LARGEST)
    except OSError:
        return b""


def of_tests(folder: Path) -> bool:
    """Whether pytest keeps its tests' own folders there, or another run of the test command all of its."""
    own = Path(tempfile.gettempdir())
    elsewhere = re.match(r"attestree(-\w+)?-test\.", folder.name) is not None and folder != own
    # What it has as --basetemp, and its unit tests, which may go on beside: as tests/runner names them.
    named = re.fullmatch(r"e2e|e2e-alone|t\d+|unit(-\d+-of-\d+)?", folder.name) is not None
    of_pytest = folder.parent == own and named
    return elsewhere or of_pytest or folder.name.startswith("pytest-of-")


def written_since(root: Path, since: float) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):
        # Other tests write there by the gigabyte, and this one's rows are looked at by their own path. What
        # somebody has mounted there is elsewhere. A folder may go while it is looked at.
        inner = [Path(folder, name) for name in folders]
        folders[:] = [path.name for path in inner if not of_tests(path) and not os.path.ismount(path)]
        for name in names:
            path = Path(folder, name)
            try:
                if path.is_file() and not path.is_symlink() and path.stat().st_mtime >= since:
                    yield path
            except OSError:
                continue


def test_the_search_finds_every_spelling() -> None:
    secret = bytes(range(200, 232))
    for place in range(3):
        text = base64.b64encode(b"x" * place + secret + b"more")
        assert holds(text, secret)
        assert holds(text.translate(bytes.maketrans(b"+/", b"-_")), secret)
    assert holds(b"key=" + secret.hex().encode(), secret)
    assert holds(b"..." + secret, secret)
    assert not holds(bytes(200), secret)


def test_b8_the_private_key_is_nowhere_during_and_after_a_round(
    learner: str, rows: Path, docker_client: DockerClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = running(learner, rows, NODES, synchronous=False)
    secret = Digest.of(os.urandom(32)).raw
    public = SigningKey(secret).verify_key.raw
    search, control = Search(secret, time.time() - 1), Search(public, time.time() - 1)
    first = height()
    store = store_of(process, "node01").directory
    monkeypatch.setattr(steps, "os", SimpleNamespace(urandom=lambda size: secret[:size]))

    def look_around() -> None:
        (container,) = containers_of(docker_client, process, "node01")
        for each in (search, control):
            each.look_at_container(docker_client, container)
            each.look_at_processes()
            each.look_at_files(store)

    def looking(verb: str, look: Callable[[], None]) -> None:
        honest = getattr(TaskRelay, verb)

        def answer(relay: TaskRelay, *given: Any) -> Any:
            look()
            return honest(relay, *given)

        monkeypatch.setattr(TaskRelay, verb, answer)

    # The learner has its key before it asks for its task, and uses it before it shares and completes.
    for verb in ("task", "share", "complete"):
        looking(verb, look_around)
    looking("complete", lambda: search.look_at_files(rows.parent, *TEMPORARY))
    ran = launch(process, "--node", "node01", "--data", str(rows))
    assert ran.code == 0, ran.out
    assert str(task_of(process, "node01").opening.public_key) == f"ed25519:{public.hex()}"

    search.look("stdout", ran.out.encode())
    search.look("stderr", ran.err.encode())
    search.look_at_processes()
    search.look_at_files(store, rows.parent, *TEMPORARY)
    for block in blocks_since(first):
        search.look("block", block)
        control.look("block", block)
    assert search.found == []
    # The same search finds the public half where that belongs: in the journal, and on the ledger.
    assert {place.partition(" ")[0] for place in control.found} == {"file", "block"}
    places = {
        "environ",
        "cmdline",
        "inspect",
        "logs",
        "history",
        "image",
        "file",
        "block",
        "stdout",
        "stderr",
    }
    assert set(search.looked_at) == places
    nothing_is_left(docker_client, process, "node01")
