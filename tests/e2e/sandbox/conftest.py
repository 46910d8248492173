"""The engine, and the images of learners that misbehave."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient
from support.sandboxes import Sandboxes, build, python_base

from executor.engine import engine
from executor.sandbox.container import reap
from protocol.digest import Digest


@pytest.fixture(scope="module")
def client() -> Iterator[DockerClient]:
    connected = engine()
    yield connected
    connected.close()


@pytest.fixture(scope="module")
def hostile(client: DockerClient) -> Digest:
    return build("Dockerfile", "attestree/test-sandbox:probe", BASE=python_base())


@pytest.fixture(scope="module")
def surprising(hostile: Digest) -> Digest:
    return build(
        "Surprising.Dockerfile", "attestree/test-sandbox:surprising", PROBE="attestree/test-sandbox:probe"
    )


@pytest.fixture
def sandboxes(client: DockerClient, hostile: Digest, tmp_path: Path) -> Iterator[Sandboxes]:
    tmp_path.chmod(0o700)
    yield Sandboxes(client, hostile, tmp_path)
    assert reap(client, {"attestree.test": "sandbox"}) == []
