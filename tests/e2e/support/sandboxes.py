"""Containers of a misbehaving learner, run through the sandbox as the real one would be."""

import json
import secrets
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docker import DockerClient
from support.channel import unique
from support.network import ROOT, done

from executor.sandbox.container import Container, Mounts, Outcome
from executor.sandbox.profile import Limits, Profile
from protocol.digest import Digest

IMAGES = ROOT / "tests/e2e/sandbox/images"
SMALL = Limits(memory_bytes=96 << 20)


def python_base() -> str:
    """The base image that the network's own images are built on."""
    return done("network/images.sh", "python-base", seconds=900).split()[-1]


def build(dockerfile: str, tag: str, **arguments: str) -> Digest:
    """Build an image without BuildKit and without a network."""
    options = [word for name, value in arguments.items() for word in ("--build-arg", f"{name}={value}")]
    done(
        "docker", "build", "--quiet", "--network", "none", "--file", str(IMAGES / dockerfile), *options,
        "--tag", tag, str(IMAGES), seconds=600, DOCKER_BUILDKIT="0",
    )  # fmt: skip
    return Digest.parse(done("docker", "image", "inspect", "--format", "{{.Id}}", tag).strip())


@dataclass
class Broker:
    """What the container said on its socket."""

    path: Path
    messages: list[Any] = field(default_factory=list)
    arrived: threading.Event = field(default_factory=threading.Event)


@contextmanager
def broker(path: Path) -> Iterator[Broker]:
    """Take one JSON object per connection until the context is left."""
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        path.chmod(0o666)
        listener.listen()
        found = Broker(path)

        def serve() -> None:
            while True:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                with connection, connection.makefile("rb") as stream:
                    found.messages.append(json.load(stream))
                found.arrived.set()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield found
        listener.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@dataclass
class Ran:
    """One finished container, inspected before it was removed."""

    outcome: Outcome
    messages: list[Any]
    inspected: dict[str, Any]
    key: bytes
    log: bytes


class Sandboxes:
    """Runs behaviours of one image."""

    def __init__(self, client: DockerClient, image_id: Digest, folder: Path) -> None:
        self.client, self.image_id, self.folder = client, image_id, folder

    def profile(self, limits: Limits = SMALL, has_state: bool = True) -> Profile:
        return Profile.for_image(self.client, self.image_id, limits, has_state)

    def mounts(self, behaviour: str, has_state: bool = True, **asked: Any) -> Mounts:
        rows, state = self.folder / "rows", self.folder / "state"
        for path, text in ((rows, json.dumps({"behaviour": behaviour, **asked})), (state, "state")):
            path.unlink(missing_ok=True)
            path.write_text(text)
            path.chmod(0o444)
        return Mounts(rows, state if has_state else None, self.folder / "broker.sock")

    def run(
        self, behaviour: str, *, seconds: float = 60, limits: Limits = SMALL, name: str = "", **asked: Any
    ) -> Ran:
        """Create, start, wait, look, remove."""
        (self.folder / "broker.sock").unlink(missing_ok=True)
        with broker(self.folder / "broker.sock") as listening:
            profile, mounts = self.profile(limits), self.mounts(behaviour, **asked)
            labels = {"attestree.test": "sandbox"}
            with Container.create(
                self.client, profile, mounts, labels, name or unique("sandbox")
            ) as container:
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
