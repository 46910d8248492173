"""A second engine beside the first: the same image id, profile and trees, and the same refusal.

By itself the first of ENGINES whose programs are in the cache; others with --engines (docs/testing.md).
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from support.altered_images import derived, registered
from support.channel import unique
from support.images import INDEX, as_type, entry, forget, index_of, push, request, tiny_image
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
from support.second_engine import ENGINES, SecondEngine, empty

from executor.engine import keeps_manifests
from executor.errors import EngineError
from executor.exits import exit_code
from executor.image.local import LocalImages
from executor.image.publish import ImagePublication, publish
from executor.image.reference import Reference
from executor.image.registry import ImageRegistry
from executor.launch import task_run as steps
from executor.network import Network
from executor.sandbox.container import Container
from protocol import canonical
from protocol.digest import Digest
from protocol.errors import StateError

# The first test of an engine starts it, too.
pytestmark = [pytest.mark.engine, pytest.mark.timeout(600)]
RING = {"node01": "org1", "node02": "org1"}


NODE = {"node01": "org1"}


@pytest.fixture(scope="module", params=ENGINES)
def second(request: pytest.FixtureRequest, network: None) -> Iterator[str]:
    """The address of another engine, which reaches the network's registry as the first one does."""
    version, _, store = request.param.partition("/")
    engine = SecondEngine(version, registry().host.rpartition(":")[2])
    engine.stop()  # what a killed run left
    yield engine.start(store)
    engine.stop()


@pytest.fixture
def client(second: str) -> Iterator[DockerClient]:
    made = DockerClient(base_url=second, timeout=120)
    yield made
    made.close()


@pytest.fixture
def name(docker_client: DockerClient) -> Iterator[str]:
    """A name that no other image has; what the first engine got under it is removed again."""
    made = f"test/{unique('second')}"
    yield made
    forget(docker_client, made)
    forget(docker_client, f"{registry().host}/{made}")


def registry() -> ImageRegistry:
    return ImageRegistry.of_network(Network.load())


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
    second: str, learner_id: Digest, rows: Path, docker_client: DockerClient, name: str
) -> None:
    with derived(docker_client, learner_id, {"evil.py": b"steal = True\n"}) as tampered:
        image = registered(docker_client, name, tampered, learner_id)
        process = running(image, rows, NODE, topology="disconnected")
        ran = launch(process, "--data", str(rows), "--node", "node01", DOCKER_HOST=second)
    assert (ran.code, ran.error["code"]) == (10, "IMAGE_MISMATCH"), ran.out
    (refusal,) = ledger().execution.list_refusals(process)
    assert (refusal.evidence["expected"], refusal.evidence["found"]) == (str(learner_id), str(tampered))
    nothing_is_left(docker_client, process, "node01")


def test_a5_an_index_on_the_ledger_is_refused_where_the_engine_names_images_by_manifests(  # noqa: PLR0917
    second: str, learner_id: Digest, rows: Path, docker_client: DockerClient, client: DockerClient, name: str
) -> None:
    here = f"{registry().host}/{name}"
    image = request(
        registry(), "GET", f"/v2/{name}/manifests/{push(docker_client, learner_id, here, 'image')}"
    )
    raw = index_of([entry(image, docker_client.version()["Arch"])])
    request(registry(), "PUT", f"/v2/{name}/manifests/1", raw, INDEX)
    ledger("org1", "data-scientist").images.register(name, "1", Digest.of(raw), learner_id, here)
    process = running(f"{name}:1", rows, NODE, topology="disconnected")
    ran = launch(process, "--data", str(rows), "--node", "node01", DOCKER_HOST=second)
    if not keeps_manifests(client):
        assert ran.code == 0, ran.out  # it says which image of the index it took, and that is the ledger's
        return
    assert (ran.code, ran.error["code"]) == (10, "IMAGE_MANIFEST"), ran.out
    (refusal,) = ledger().execution.list_refusals(process)
    assert refusal.evidence["manifest_digest"] == str(Digest.of(raw))
    assert task_of(process, "node01").opening is None
    nothing_is_left(docker_client, process, "node01")


def test_what_was_pruned_meanwhile_is_neither_pushed_nor_registered(client: DockerClient, name: str) -> None:
    tiny_image(client, unique("content"), f"{name}:1")
    here = LocalImages(client).find(f"{name}:1")
    assert here is not None
    images = ledger("org1", "data-scientist").images
    wanted = ImagePublication.of(Reference.parse(f"{name}:1"), here.image_id, registry())

    def prune(said: str) -> None:
        if said.startswith("pushing"):
            client.api.remove_image(f"{name}:1", force=True)

    with pytest.raises(EngineError) as caught:
        publish(client, images, wanted, here, prune)
    assert exit_code(caught.value) == 30
    assert registry().manifest(name, "1") is None
    with pytest.raises(StateError, match="IMAGE_UNKNOWN"):
        images.get(name, "1")


@pytest.mark.at_length
@pytest.mark.parametrize("maker", ["docker", "oci"])
def test_another_engine_runs_the_image_by_manifests_of_either_media_type(  # noqa: PLR0917
    second: str, learner_id: Digest, rows: Path, docker_client: DockerClient, name: str, maker: str
) -> None:
    here = f"{registry().host}/{name}"
    pushed = push(docker_client, learner_id, here, "pushed")
    raw, kind = as_type(maker, request(registry(), "GET", f"/v2/{name}/manifests/{pushed}"))
    request(registry(), "PUT", f"/v2/{name}/manifests/1", raw, kind)
    ledger("org1", "data-scientist").images.register(name, "1", Digest.of(raw), learner_id, here)
    process = running(f"{name}:1", rows, NODE, topology="disconnected")
    launched(process, "--node", "node01", "--data", str(rows), DOCKER_HOST=second)
    assert executor("image", "verify", f"{name}:1", "--json", DOCKER_HOST=second).code == 0


@pytest.mark.at_length
def test_a_dry_run_pulls_nothing_and_what_is_pruned_before_it_runs_ends_the_task(  # noqa: PLR0917
    second: str,
    learner: str,
    rows: Path,
    docker_client: DockerClient,
    client: DockerClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    process = running(learner, rows, NODE, topology="disconnected")
    words = ("--node", "node01", "--data", str(rows))
    empty(client)
    dry = launch(process, *words, "--dry-run", DOCKER_HOST=second)
    assert (dry.code, dry.error["code"], client.images.list()) == (30, "IMAGE_UNAVAILABLE", []), dry.out

    create = Container.create

    def pruned_before(*given: Any, **named: Any) -> Container:
        empty(client)
        return create(*given, **named)

    with monkeypatch.context() as patched:
        patched.setattr(steps.Container, "create", pruned_before)
        ran = launch(process, *words, DOCKER_HOST=second)
    assert (ran.code, ran.error["code"]) == (30, "IMAGE_UNAVAILABLE"), ran.out
    assert task_of(process, "node01").closed.code == "IMAGE_UNAVAILABLE"
    nothing_is_left(docker_client, process, "node01")
    # It is there to be pulled, so the next launch opens the task anew.
    launched(process, *words, DOCKER_HOST=second)


@pytest.mark.at_length
def test_gvisor_runs_a_task_and_its_name_is_part_of_what_the_task_commits_to(
    second: str, learner: str, rows: Path
) -> None:
    process = running(learner, rows, NODE, topology="disconnected")
    words = ("--node", "node01", "--data", str(rows), "--runtime", "runsc")
    refused = launch(process, *words)
    assert (refused.code, refused.error["code"]) == (31, "SANDBOX_UNSUPPORTED"), refused.out
    if "engine-26" not in second:  # the others come without gVisor
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
    second: str, learner_id: Digest, rows: Path, name: str
) -> None:
    built = executor("image", "build", "--force", "--json", seconds=800, DOCKER_HOST=second)
    assert (built.code, built.answer["image_id"]) == (0, str(learner_id)), built.out + built.err
    assert executor("image", "build", "--json", DOCKER_HOST=second).answer["built"] is False
    published = executor(
        "image", "publish", f"{name}:1", "--image", "attestree/learner", "--json", DOCKER_HOST=second
    )
    assert published.code == 0, published.out + published.err
    assert published.answer["image_id"] == str(learner_id)
    process = running(f"{name}:1", rows, NODE, topology="disconnected")
    launched(process, "--node", "node01", "--data", str(rows))


@pytest.mark.at_length
@pytest.mark.timeout(900)
def test_an_engine_that_switches_its_store_between_tasks_runs_the_same_image_or_none(
    request: pytest.FixtureRequest, second: str, learner: str, rows: Path, docker_client: DockerClient
) -> None:
    version, _, store = request.node.callspec.params["second"].partition("/")
    engine = SecondEngine(version, registry().host.rpartition(":")[2])
    process = running(learner, rows, NODE, topology="disconnected", iterations=2)
    words = ("--node", "node01", "--data", str(rows))
    launched(process, *words, DOCKER_HOST=second)
    other = "classic" if store == "containerd" else "containerd"
    try:
        engine.start(other, reach=False)
        ran = launch(process, *words, DOCKER_HOST=second)
        assert (ran.code, ran.error["code"]) == (30, "IMAGE_UNAVAILABLE"), ran.out
        nothing_is_left(docker_client, process, "node01")
        engine.start(other)  # and with the way to the registry
        launched(process, *words, DOCKER_HOST=second)
    finally:
        engine.start(store)
    before, after = (task_of(process, "node01", iteration).opening for iteration in range(2))
    assert before is not None
    assert after is not None
    assert before.image_id == after.image_id
