"""A second engine beside the first: the same image id, profile and trees, and the same refusal.

By itself the first of ENGINES whose programs are in the cache; others with --engines (docs/testing.md).
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from docker import DockerClient
from support.altered_images import derived, registered
from support.channel import unique
from support.images import forget
from support.launching import (
    digest_of,
    executor,
    launch,
    launched,
    ledger,
    nothing_is_left,
    running,
    simulated,
    task_of,
)
from support.network import PROJECT, done
from support.second_engine import ENGINES

from executor.image.registry import ImageRegistry
from executor.network import Network
from protocol import canonical
from protocol.digest import Digest

pytestmark = pytest.mark.engine
RING = {"node01": "org1", "node02": "org1"}


@pytest.fixture(scope="module", params=ENGINES)
def second(request: pytest.FixtureRequest, network: None) -> Iterator[str]:
    """The address of another engine, which reaches the network's registry as the first one does."""
    version, _, store = request.param.partition("/")
    port = ImageRegistry.of_network(Network.load()).host.rpartition(":")[2]
    command = ("scripts/engine", version)
    yield done(*command, "start", "--store", store, "--forward", port, ATTESTREE_PROJECT=PROJECT).strip()
    done(*command, "stop", "--purge", ATTESTREE_PROJECT=PROJECT)


def test_another_engine_runs_the_same_image_in_the_same_profile_to_the_same_trees(
    second: str, learner: str, rows: Path, docker_client: DockerClient
) -> None:
    process = running(learner, rows, RING)
    plan = launch(process, "--node", "node01", "--data", str(rows), "--dry-run").answer["plans"][0]
    launched(process, "--all-local", "--data", str(rows), DOCKER_HOST=second)
    results = {found.node: found for found in ledger().execution.artifacts(process)}
    for node, ensemble in simulated(rows, tuple(RING), 1).ensembles().items():
        assert results[node].ensemble_digest == digest_of(ensemble)
        opening = task_of(process, node).opening
        assert opening is not None
        assert str(opening.sandbox) == plan["sandbox"]["digest"]
    verified = executor("image", "verify", learner, "--json", DOCKER_HOST=second)
    assert (verified.code, verified.answer["ok"]) == (0, True), verified.out
    copies = {found["where"] for found in verified.answer["findings"] if found["equal"]}
    assert {"engine, by manifest", "registry, by manifest"} <= copies


def test_a2_another_engine_refuses_a_tampered_image_and_records_it(
    second: str, learner_id: Digest, rows: Path, docker_client: DockerClient
) -> None:
    name = f"test/{unique('altered')}"
    try:
        with derived(docker_client, learner_id, {"evil.py": b"steal = True\n"}) as tampered:
            image = registered(docker_client, name, tampered, learner_id)
            process = running(image, rows, {"node01": "org1"}, topology="disconnected")
            ran = launch(process, "--data", str(rows), "--node", "node01", DOCKER_HOST=second)
        assert (ran.code, ran.error["code"]) == (10, "IMAGE_MISMATCH"), ran.out
        (refusal,) = ledger().execution.list_refusals(process)
        assert (refusal.evidence["expected"], refusal.evidence["found"]) == (str(learner_id), str(tampered))
        nothing_is_left(docker_client, process, "node01")
    finally:
        forget(docker_client, name)
        forget(docker_client, f"{ImageRegistry.of_network(Network.load()).host}/{name}")


@pytest.mark.at_length
def test_gvisor_runs_a_task_and_its_name_is_part_of_what_the_task_commits_to(
    second: str, learner: str, rows: Path
) -> None:
    process = running(learner, rows, {"node01": "org1"}, topology="disconnected")
    words = ("--node", "node01", "--data", str(rows), "--runtime", "runsc")
    refused = launch(process, *words)
    assert (refused.code, refused.error["code"]) == (31, "SANDBOX_UNSUPPORTED"), refused.out
    if "engine-26" not in second:  # Debian's packages have gVisor, Go modules do not
        assert launch(process, *words, DOCKER_HOST=second).code == 31
        return
    without = launch(process, *words[:-2], "--dry-run").answer["plans"][0]["sandbox"]
    launched(process, *words, DOCKER_HOST=second)
    opening = task_of(process, "node01").opening
    assert opening is not None
    assert opening.sandbox == canonical.digest({**without["profile"], "runtime": "runsc"})
    assert str(opening.sandbox) != without["digest"]


@pytest.mark.at_length
@pytest.mark.timeout(900)
def test_another_engine_builds_the_same_image_and_publishes_it_for_the_first(
    second: str, learner_id: Digest, rows: Path
) -> None:
    built = executor("image", "build", "--force", "--json", seconds=800, DOCKER_HOST=second)
    assert (built.code, built.answer["image_id"]) == (0, str(learner_id)), built.out + built.err
    assert executor("image", "build", "--json", DOCKER_HOST=second).answer["built"] is False
    name = f"test/{unique('second')}"
    published = executor(
        "image", "publish", f"{name}:1", "--image", "attestree/learner", "--json", DOCKER_HOST=second
    )
    assert published.code == 0, published.out + published.err
    assert published.answer["image_id"] == str(learner_id)
    process = running(f"{name}:1", rows, {"node01": "org1"}, topology="disconnected")
    launched(process, "--node", "node01", "--data", str(rows))
