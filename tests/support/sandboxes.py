"""Containers of a misbehaving learner, run through the sandbox as the real one would be."""

import functools
import hashlib
import json
import os
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docker import DockerClient
from docker.errors import ImageNotFound

from executor.image.local import LocalImage, LocalImages
from executor.sandbox.container import Container, Mounts, Outcome
from executor.sandbox.profile import Limits, Profile
from support.channel import unique
from support.images import one_at_a_time
from support.network import PROJECT, ROOT, done

IMAGES = ROOT / "tests/e2e/sandbox/images"
SMALL = Limits(memory_bytes=96 << 20)


@functools.cache
def python_base() -> str:
    """The base image that the network's own images are built on."""
    return done("network/images.sh", "python-base", seconds=900).split()[-1]


def build(client: DockerClient, dockerfile: str, argument: str, base: str) -> str:
    """Build an image, without BuildKit and without a network, unless it is there; returns its tag.

    The tag names the content, so runs that share an engine never move each other's.
    """
    content = hashlib.sha256(str(client.images.get(base).id).encode())
    for path in (IMAGES / dockerfile, IMAGES / "learner.py"):
        content.update(path.read_bytes())
    tag = f"attestree/test-sandbox:{content.hexdigest()[:16]}"
    with one_at_a_time("test-sandbox"):
        try:
            client.images.get(tag)
        except ImageNotFound:
            done(
                "docker", "build", "--quiet", "--network", "none", "--file", str(IMAGES / dockerfile),
                "--build-arg", f"{argument}={base}", "--tag", tag, str(IMAGES),
                seconds=600, DOCKER_BUILDKIT="0",
            )  # fmt: skip
    return tag


def carried(source: DockerClient, target: DockerClient, tag: str) -> str:
    """Have an engine's image in another engine, too, unless both are the same; returns its tag."""
    if target is not source:
        target.images.load(source.api.get_image(tag))
    return tag


def local(client: DockerClient, reference: str) -> LocalImage:
    """The image that the engine must have under a name."""
    found = LocalImages(client).find(reference)
    assert found is not None, reference
    return found


@dataclass
class Broker:
    """What the container said on its socket."""

    messages: list[Any] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)


@contextmanager
def broker(path: Path) -> Iterator[Broker]:
    """Take one JSON object per connection; all that were made in the context are read before it is left."""
    with socket.socket(socket.AF_UNIX) as listener, _address(path) as address:
        listener.bind(address)
        path.chmod(0o666)
        listener.listen()
        found, end = Broker(), secrets.token_bytes(16)

        def serve() -> None:
            # Connections are taken in the order they were made, ours as the last.
            while (said := _said(listener)) != end:
                found.messages.append(json.loads(said))
                found.arrived.set()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield found
        finally:
            with socket.socket(socket.AF_UNIX) as last:
                last.connect(address)
                last.sendall(end)
            thread.join(150)
    assert not thread.is_alive(), "somebody holds a connection to the broker open"


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """A socket's address of at most 107 bytes, however long its path is."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def _said(listener: socket.socket) -> bytes:
    connection, _ = listener.accept()
    with connection, connection.makefile("rb") as stream:
        return stream.read()


@dataclass
class Ran:
    """One finished container, inspected before it was removed."""

    outcome: Outcome
    messages: list[Any]
    inspected: dict[str, Any]
    key: bytes
    log: bytes


class Sandboxes:
    """Runs behaviours of one image; its containers have a label that no other test's have."""

    def __init__(self, client: DockerClient, image: LocalImage, folder: Path) -> None:
        self.client, self.image, self.folder = client, image, folder
        self.labels = {"attestree.test": f"{PROJECT}-{unique('sandbox')}"}

    def profile(self, limits: Limits = SMALL, has_state: bool = True) -> Profile:
        return Profile.for_image(self.client, self.image, limits, has_state)

    def mounts(self, behaviour: str, has_state: bool = True, **asked: Any) -> Mounts:
        rows, state = self.folder / "rows", self.folder / "state"
        for path, text in ((rows, json.dumps({"behaviour": behaviour, **asked})), (state, "state")):
            path.unlink(missing_ok=True)
            path.write_text(text)
            path.chmod(0o444)
        return Mounts(rows, state if has_state else None, self.folder / "broker.sock")

    def create(self, mounts: Mounts, profile: Profile | None = None) -> Container:
        """A container that is not started yet; leaving its context removes it."""
        return Container.create(
            self.client, profile or self.profile(), mounts, self.labels, unique("sandbox")
        )

    def run(self, behaviour: str, *, seconds: float = 120, limits: Limits = SMALL, **asked: Any) -> Ran:
        """Create, start, wait, look, remove."""
        (self.folder / "broker.sock").unlink(missing_ok=True)
        with (
            broker(self.folder / "broker.sock") as listening,
            self.create(self.mounts(behaviour, **asked), self.profile(limits)) as container,
        ):
            key = bytearray(secrets.token_bytes(32))
            copy = bytes(key)
            container.start(key)
            assert key == bytes(32)
            outcome = container.wait(seconds)
            inspected = container.inspect()
            log = self.client.api.logs(container.id)
        return Ran(outcome, listening.messages, inspected, copy, log)

    def told(self, behaviour: str, **asked: Any) -> Any:
        """What a behaviour that ends well reports."""
        ran = self.run(behaviour, **asked)
        assert ran.outcome.exit_code == 0, ran.outcome
        (message,) = ran.messages
        return message
