"""The engines, and the images of learners that misbehave.

Every test runs on the first engine; with --engines also on each second one that is named, and those that are
marked `every_engine` also without, where one is cached.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient
from support.network import PROJECT
from support.sandboxes import Sandboxes, build, carried, local, python_base
from support.second_engine import SecondEngine, engines_of

from executor.image.local import LocalImage
from executor.sandbox.container import reap

FIRST = pytest.param("", id=pytest.HIDDEN_PARAM)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test for each engine that it is meant for."""
    if "second" not in metafunc.fixturenames:
        return
    marked = metafunc.definition.get_closest_marker("every_engine") is not None
    others = engines_of(metafunc.config) if marked or metafunc.config.getoption("--engines") else ()
    marks = [pytest.mark.engine, pytest.mark.timeout(600)]
    metafunc.parametrize(
        "second", [FIRST, *(pytest.param(name, marks=marks) for name in others)], indirect=True
    )


@pytest.fixture(scope="session")
def second(request: pytest.FixtureRequest, worker_id: str) -> Iterator[str]:
    """The address of a second engine that nobody else uses, or nothing for the first."""
    if not request.param:
        yield ""
        return
    version, _, store = request.param.partition("/")
    engine = SecondEngine(version, project=f"{PROJECT}-sandbox-{worker_id}")
    engine.stop()  # what a killed run left
    yield engine.start(store)
    engine.stop()


@pytest.fixture(scope="session")
def client(second: str, docker_client: DockerClient) -> Iterator[DockerClient]:
    if not second:
        yield docker_client
        return
    connected = DockerClient(base_url=second, timeout=120)
    yield connected
    connected.close()


@pytest.fixture(scope="session")
def hostile_tag(docker_client: DockerClient, network: None) -> str:
    return build(docker_client, "Dockerfile", "BASE", python_base())


@pytest.fixture(scope="session")
def hostile(client: DockerClient, docker_client: DockerClient, hostile_tag: str) -> LocalImage:
    return local(client, carried(docker_client, client, hostile_tag))


@pytest.fixture(scope="session")
def surprising(client: DockerClient, docker_client: DockerClient, hostile_tag: str) -> LocalImage:
    made = build(docker_client, "Surprising.Dockerfile", "PROBE", hostile_tag)
    return local(client, carried(docker_client, client, made))


@pytest.fixture(scope="session")
def without_learner(client: DockerClient, docker_client: DockerClient) -> LocalImage:
    return local(client, carried(docker_client, client, python_base()))


@pytest.fixture
def sandboxes(client: DockerClient, hostile: LocalImage, tmp_path: Path) -> Iterator[Sandboxes]:
    tmp_path.chmod(0o700)
    made = Sandboxes(client, hostile, tmp_path)
    yield made
    assert reap(client, made.labels) == []
