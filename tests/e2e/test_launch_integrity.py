"""Images that are not what the ledger says, through `executor launch`: refused, recorded, never started."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker import DockerClient
from support.altered_images import derived, registered
from support.channel import unique
from support.images import forget, push
from support.launching import (
    launch,
    launched,
    ledger,
    nothing_is_left,
    published,
    running,
    task_of,
)

from executor.errors import IntegrityError
from executor.image.check import check_served
from executor.image.registry import ImageRegistry
from executor.launch import task_run as steps
from executor.network import Network
from executor.sandbox.container import Container
from protocol.digest import Digest

NODE = {"node01": "org1"}
EVIL = {"opt/venv/lib/python3.11/site-packages/learner/evil.py": b"steal = True\n"}
SURPRISES = [
    "VOLUME /data",
    'ENTRYPOINT ["/bin/evil"]',
    "CMD evil",
    "USER root",
    "WORKDIR /data",
    "HEALTHCHECK --interval=1s CMD /bin/evil",
    "ONBUILD RUN /bin/evil",
    "EXPOSE 80",
]


@pytest.fixture
def name(docker_client: DockerClient) -> Iterator[str]:
    """A name that no other image has; what the engine got under it is removed again."""
    made = f"test/{unique('altered')}"
    yield made
    forget(docker_client, made)
    forget(docker_client, f"{ImageRegistry.of_network(Network.load()).host}/{made}")


def refused(
    process: str,
    rows: Path,
    client: DockerClient,
    monkeypatch: pytest.MonkeyPatch,
    code: str = "IMAGE_MISMATCH",
) -> Any:
    """Launch what must be refused with exit code 10; returns the evidence on the ledger."""

    def create(*_: object, **__: object) -> None:
        raise AssertionError("a container was created")

    with monkeypatch.context() as patched:
        patched.setattr(Container, "create", create)
        ran = launch(process, "--data", str(rows), "--node", "node01")
    assert (ran.code, ran.error["code"]) == (10, code), ran.out
    task = task_of(process, "node01")
    assert (task.state, task.opening, task.closed.code) == ("refused", None, code)
    (refusal,) = ledger().execution.list_refusals(process)
    assert (refusal.node, refusal.iteration, refusal.code) == ("node01", 0, code)
    nothing_is_left(client, process, "node01")
    return refusal.evidence


def test_a1_a_wrong_image_id_on_the_ledger_is_refused_and_recorded(
    learner_id: Digest, rows: Path, docker_client: DockerClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    wrong = Digest.of(b"no image at all")
    image = registered(docker_client, name, learner_id, wrong)
    process = running(image, rows, NODE, topology="disconnected")
    evidence = refused(process, rows, docker_client, monkeypatch)
    assert (evidence["expected"], evidence["found"]) == (str(wrong), str(learner_id))
    assert evidence["image"] == image


def test_a2_a_tampered_image_under_the_honest_id_is_refused_and_recorded(
    learner_id: Digest, rows: Path, docker_client: DockerClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The engine even has the honest image; the registry's manifest leads to the tampered one."""
    with derived(docker_client, learner_id, EVIL) as tampered:
        image = registered(docker_client, name, tampered, learner_id)
        process = running(image, rows, NODE, topology="disconnected")
        evidence = refused(process, rows, docker_client, monkeypatch)
        assert (evidence["expected"], evidence["found"]) == (str(learner_id), str(tampered))


def test_a4_swapped_digests_are_refused_as_that_and_recorded(
    learner_id: Digest, rows: Path, docker_client: DockerClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    version, host = unique("1"), ImageRegistry.of_network(Network.load()).host
    manifest = push(docker_client, learner_id, f"{host}/{name}", version)
    images = ledger("org1", "data-scientist").images
    images.register(name, version, learner_id, manifest, f"{host}/{name}")
    process = running(f"{name}:{version}", rows, NODE, topology="disconnected")
    evidence = refused(process, rows, docker_client, monkeypatch, "IMAGE_DIGESTS")
    assert (evidence["manifest_digest"], evidence["image_id"]) == (str(learner_id), str(manifest))
    assert "id of an image" in evidence["found"]
    # Where the engine does not have it, the registry tells the same.
    image = images.get(name, version).image
    with pytest.raises(IntegrityError, match="digest of a manifest"):
        check_served(image, Network.load())


def test_a3_a10_a_moved_tag_and_a_surprising_image_change_nothing_about_what_runs(
    learner_id: Digest, rows: Path, docker_client: DockerClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The tag moves, here and in the registry, between the check and the creation of the container."""
    seen: list[dict[str, Any]] = []
    create = Container.create

    with (
        derived(docker_client, learner_id, {}, SURPRISES) as surprising,
        derived(docker_client, learner_id, EVIL) as tampered,
    ):
        image = published(docker_client, name, surprising)
        process = running(image, rows, NODE, topology="disconnected")
        version = image.partition(":")[2]

        def moved_before(*given: Any, **named: Any) -> Container:
            push(docker_client, tampered, f"{ImageRegistry.of_network(Network.load()).host}/{name}", version)
            docker_client.api.tag(str(tampered), name, version)
            made = create(*given, **named)
            seen.append(made.inspect())
            return made

        plan = launch(process, "--data", str(rows), "--node", "node01", "--dry-run").answer["plans"][0]
        monkeypatch.setattr(steps.Container, "create", moved_before)
        launched(process, "--data", str(rows), "--node", "node01")

    (container,) = seen
    assert container["Image"] == str(surprising)
    assert (container["Path"], container["Config"]["User"]) == ("/opt/venv/bin/python", "10001:10001")
    assert container["Config"]["Healthcheck"]["Test"] == ["NONE"]
    masked = {mount["Destination"]: mount["RW"] for mount in container["Mounts"] if mount["Type"] == "tmpfs"}
    assert masked == {"/data": False}
    task = task_of(process, "node01")
    assert (task.state, task.opening.image_id) == ("completed", surprising)
    # What the dry run showed is what the task committed to.
    assert str(task.opening.sandbox) == plan["sandbox"]["digest"]
    assert {"destination": "/data", "kind": "tmpfs", "read_only": True} in plan["sandbox"]["profile"][
        "mounts"
    ]


def test_an_image_that_is_pruned_between_the_check_and_the_container_ends_the_task_with_that(
    learner_id: Digest, rows: Path, docker_client: DockerClient, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    create = Container.create

    with derived(docker_client, learner_id, {"opt/own": name.encode()}) as own:
        image = published(docker_client, name, own)
        process = running(image, rows, NODE, topology="disconnected")

        def pruned_before(*given: Any, **named: Any) -> Container:
            docker_client.api.remove_image(str(own), force=True)
            return create(*given, **named)

        with monkeypatch.context() as patched:
            patched.setattr(steps.Container, "create", pruned_before)
            ran = launch(process, "--data", str(rows), "--node", "node01")
        assert (ran.code, ran.error["code"]) == (30, "IMAGE_UNAVAILABLE"), ran.out
        task = task_of(process, "node01")
        assert (task.state, task.closed.code) == ("failed", "IMAGE_UNAVAILABLE")
        nothing_is_left(docker_client, process, "node01")
        # The registry still has it: the next launch pulls it, and opens the task anew.
        launched(process, "--data", str(rows), "--node", "node01")
    assert task_of(process, "node01").opening.image_id == own
