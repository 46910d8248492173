"""The engine, and the images of learners that misbehave."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient
from support.sandboxes import Sandboxes, build, local, python_base

from executor.engine import engine
from executor.image.local import LocalImage
from executor.sandbox.container import reap


@pytest.fixture(scope="session")
def client() -> Iterator[DockerClient]:
    connected = engine()
    yield connected
    connected.close()


@pytest.fixture(scope="session")
def hostile_tag(client: DockerClient, network: None) -> str:
    return build(client, "Dockerfile", "BASE", python_base())


@pytest.fixture(scope="session")
def hostile(client: DockerClient, hostile_tag: str) -> LocalImage:
    return local(client, hostile_tag)


@pytest.fixture(scope="session")
def surprising(client: DockerClient, hostile_tag: str) -> LocalImage:
    return local(client, build(client, "Surprising.Dockerfile", "PROBE", hostile_tag))


@pytest.fixture
def sandboxes(client: DockerClient, hostile: LocalImage, tmp_path: Path) -> Iterator[Sandboxes]:
    tmp_path.chmod(0o700)
    made = Sandboxes(client, hostile, tmp_path)
    yield made
    assert reap(client, made.labels) == []
