"""End-to-end tests run on the real network; one that is down is brought up first."""

import fcntl
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from support.launching import learner_image, published, write_rows
from support.network import done
from support.second_engine import choose, chosen_engines

from executor.engine import engine
from protocol.digest import Digest

# The files that take longest begin first, so that none of them is still going on when all others have ended.
LONGEST_FIRST = (
    "test_network_life",
    "test_engines",
    "test_hfc",
    "test_experiment_paper",
    "test_orderers_bft",
    "test_launch_crash",
    "test_launch",
    "test_composite",
    "test_paper_on_ledger",
    "test_moving_federation",
    "test_tutorial",
    "test_image_build",
    "test_launch_misbehaving",
    "test_confidential_life",
    "test_packages",
    "test_hfc_environment",
    "test_chaincode_orchestration",
    "test_chaincode_execution_record",
    "test_model_commands",
    "test_chaincode_model",
    "test_process_commands",
    "test_sandbox_profile",
)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a worker which engines its tests are about; all of them must collect the same tests."""
    if not hasattr(node.config, "second_engines"):
        node.config.second_engines = chosen_engines(str(node.config.getoption("--engines")))
    node.workerinput["engines"] = list(node.config.second_engines)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Bring the files into that order, their tests as they are; leave out what is not meant."""
    choose(config, items)
    if not config.getoption("--large"):
        large = [item for item in items if item.get_closest_marker("large") is not None]
        config.hook.pytest_deselected(items=large)
        items[:] = [item for item in items if item not in large]
    rank = {name: place for place, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))


@pytest.fixture(scope="session", autouse=True)
def network(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> None:
    """The network is up before the first test, whatever the last one of an earlier run left behind."""
    if os.environ.get("ATTESTREE_NETWORK_IS_UP"):
        return
    base = tmp_path_factory.getbasetemp()
    # Workers that run side by side have one directory in common, and the first of them starts the network.
    shared = base if worker_id == "master" else base.parent
    with (shared / "network.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (shared / "network.up").exists():
            done("network/up.sh", "--probe", seconds=1800)
            (shared / "network.up").touch()


@pytest.fixture(scope="session")
def docker_client() -> Iterator[DockerClient]:
    client = engine()
    yield client
    client.close()


@pytest.fixture(scope="session")
def learner_id(docker_client: DockerClient) -> Digest:
    """The learner image of these sources, in the engine."""
    return learner_image(docker_client)


@pytest.fixture(scope="session")
def learner(docker_client: DockerClient, learner_id: Digest, network: None) -> str:
    """The learner image as registry and ledger have it."""
    return published(docker_client, "attestree/learner", learner_id)


@pytest.fixture(scope="session")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Private rows of six nodes, as a pattern for --data."""
    return write_rows(tmp_path_factory.mktemp("rows") / "split")
