"""`executor launch --follow` on the live network, in a process of its own, until it is told to stop."""

import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from docker import DockerClient
from support.altered_images import registered
from support.channel import unique
from support.images import forget
from support.launching import containers_of, ledger, reached, running
from support.network import ROOT
from support.printed import EXECUTOR

from executor.image.registry import ImageRegistry
from executor.launch.store import NodeStore
from executor.network import Network
from protocol.digest import Digest

ORGANISATION, NODES = "org4", ("node19", "node20")
"""Nobody else works for these: a service takes up every process of the nodes it finds."""


@pytest.fixture
def state(rows: Path) -> Iterator[Path]:
    """A host of the organisation that has these two nodes and their rows, and no other."""
    network = Network.load()
    with TemporaryDirectory(prefix="host-") as made:
        there, here = network.state, Path(made)
        shutil.copy(there / "network.env", here)
        users = here / "organisations" / ORGANISATION / "users"
        users.mkdir(parents=True)
        for folder in (there / "organisations").iterdir():
            if folder.name != ORGANISATION:
                (users.parents[1] / folder.name).symlink_to(folder)
        for part in network.folder(ORGANISATION).iterdir():
            if part.name != "users":
                (users.parent / part.name).symlink_to(part)
        for identity in ("auditor", *NODES):
            (users / identity).symlink_to(network.folder(ORGANISATION) / "users" / identity)
        data = here / "executor" / ORGANISATION / "data"
        data.mkdir(parents=True)
        for node, source in zip(NODES, ("node01", "node02"), strict=True):
            shutil.copy(str(rows).format(node=source), data / f"{node}.csv")
        yield here


@contextmanager
def serving(state: Path) -> Iterator["subprocess.Popen[str]"]:
    """The service, with one place for the tasks of both nodes; it is gone afterwards."""
    command = [EXECUTOR, "launch", "--follow", "--json", "--tasks", "1", "--organisation", ORGANISATION]
    environment = {**os.environ, "ATTESTREE_STATE": str(state)}
    with subprocess.Popen(command, text=True, stdout=subprocess.PIPE, cwd=ROOT, env=environment) as started:
        try:
            yield started
        finally:
            started.kill()


def heard(
    started: "subprocess.Popen[str]", is_over: Callable[[dict[str, Any]], bool]
) -> list[dict[str, Any]]:
    """The service's lines up to one that says so; one that does not say it in time is killed."""
    assert started.stdout is not None
    deadline = threading.Timer(150, started.kill)
    deadline.start()
    said: list[dict[str, Any]] = []
    try:
        for line in started.stdout:
            said.append(json.loads(line))
            if is_over(said[-1]):
                return said
    finally:
        deadline.cancel()
    raise AssertionError(f"it ended, having said {said}")


@pytest.fixture
def tampered(docker_client: DockerClient, learner_id: Digest) -> Iterator[str]:
    """An image whose id on the ledger is another."""
    name = f"test/{unique('altered')}"
    yield registered(docker_client, name, learner_id, Digest.of(b"no image at all"))
    forget(docker_client, name)
    forget(docker_client, f"{ImageRegistry.of_network(Network.load()).host}/{name}")


def test_a_service_works_through_a_process_that_is_accepted_later_and_leaves_nothing(
    learner: str, tampered: str, rows: Path, state: Path, docker_client: DockerClient
) -> None:
    """The nodes wait for each other's trees and have one place for both, which one lends to the other.

    A process of one of them with a tampered image keeps neither from going on (A1).
    """
    with serving(state) as service:
        heard(service, lambda line: line["event"] == "service.started")
        other = running(tampered, rows, {NODES[0]: ORGANISATION}, by=ORGANISATION, topology="disconnected")
        refused = heard(service, lambda line: line["event"] == "node.refused" and line["process"] == other)[
            -1
        ]
        assert (refused["code"], refused["exit_code"]) == ("IMAGE_MISMATCH", 10)
        process = running(learner, rows, dict.fromkeys(NODES, ORGANISATION), by=ORGANISATION)
        said = heard(service, lambda line: line["event"] == "process.ended" and line["process"] == process)
        assert sorted(line["node"] for line in said if line["event"] == "task.done") == list(NODES)
        reached(process, "completed")
        assert [model.node for model in ledger().models.list(process)] == list(NODES)
        assert other not in {line["process"] for line in said if line["event"] == "node.refused"}
        assert len(list(ledger().execution.list_refusals(other))) == 1
        ledger(ORGANISATION, "data-scientist").orchestration.abort(other, "its image is another")
        service.send_signal(signal.SIGTERM)
        last = heard(service, lambda line: line["event"] == "service.stopped")
        assert (service.wait(150), last[-1]["organisation"]) == (0, ORGANISATION)
    for node in NODES:
        assert containers_of(docker_client, process, node, ORGANISATION) == []
        assert not NodeStore(state, ORGANISATION, process, node).has_remains
    assert not [line for line in said if str(state) in json.dumps(line)]
