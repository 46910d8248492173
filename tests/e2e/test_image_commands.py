"""The image commands on the live engine, registry and ledger, as a data scientist types them."""

import json
import os
from collections.abc import Iterator
from importlib.metadata import version as package_version
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from docker import DockerClient
from support.channel import DIGESTS, scientist1, unique
from support.images import INDEX, entry, forget, index_of, push, request, tiny_image
from support.launching import caught_up, ledger
from support.network import done, run
from support.printed import EXECUTOR

from executor.cli import main
from executor.errors import EngineError
from executor.exits import exit_code
from executor.image.local import LocalImages
from executor.image.publish import ImagePublication, publish
from executor.image.registry import ImageRegistry
from executor.network import Network
from protocol.digest import Digest

OK, USAGE, INTEGRITY, DENIED, WRONG_STATE, INVALID, UNREACHABLE = 0, 2, 10, 12, 13, 14, 30


@pytest.fixture(scope="module")
def client(docker_client: DockerClient) -> DockerClient:
    return docker_client


@pytest.fixture
def registry() -> ImageRegistry:
    return ImageRegistry.of_network(Network.load())


@pytest.fixture
def name(client: DockerClient, registry: ImageRegistry) -> Iterator[str]:
    """The name of an image that nothing had before; what the engine got under it is removed again."""
    made = f"test/{unique('image')}"
    yield made
    forget(client, made)
    forget(client, f"{registry.host}/{made}")


def image(*arguments: str, code: int = OK, **environment: str) -> dict[str, Any]:
    """Run a command with --json, expect its exit code, return the one object it prints."""
    ran = CliRunner().invoke(main, ["image", *arguments, "--json"], env=environment)
    assert ran.exit_code == code, (ran.exit_code, ran.output, ran.exception)
    found: dict[str, Any] = json.loads(ran.stdout)
    if code != OK:
        assert found["error"]["exit_code"] == code
    return found


def register(
    name: str, version: str, manifest: Digest | str, image_id: Digest | str, repository: str
) -> None:
    """Put any digests on the ledger, as whoever has the role can."""
    scientist1.submit("image", "Register", name, version, str(manifest), str(image_id), repository, "")


def test_published_image_is_on_the_ledger_with_the_digests_of_engine_and_registry(
    client: DockerClient, registry: ImageRegistry, name: str
) -> None:
    local = tiny_image(client, unique("content"), f"{name}:1.0")
    made = image("publish", f"{name}:1.0", "--description", "a test")
    assert made["image_id"] == str(local)
    raw = request(registry, "GET", f"/v2/{name}/manifests/1.0")
    assert made["manifest_digest"] == str(Digest.of(raw))
    assert json.loads(raw)["config"]["digest"] == str(local)
    record = scientist1.evaluate("image", "Get", name, "1.0")
    assert record["image"] == {
        "name": name,
        "version": "1.0",
        "image_id": str(local),
        "manifest_digest": made["manifest_digest"],
        "repository": f"{registry.host}/{name}",
        "description": "a test",
    }
    assert record["registered"]["tx"] == made["transaction"]


def test_publishing_again_changes_nothing_and_another_image_is_refused(
    client: DockerClient, registry: ImageRegistry, name: str
) -> None:
    tiny_image(client, unique("content"), f"{name}:1")
    first = image("publish", f"{name}:1")
    assert first["registered"] is True
    again = image("publish", f"{name}:1")
    assert again == first | {"registered": False, "transaction": None}
    assert len(scientist1.evaluate("image", "History", name, "1")["items"]) == 1

    tiny_image(client, unique("other"), f"{name}:1")
    before = request(registry, "GET", f"/v2/{name}/manifests/1")
    assert image("publish", f"{name}:1", code=WRONG_STATE)["error"]["code"] == "IMAGE_EXISTS"
    assert request(registry, "GET", f"/v2/{name}/manifests/1") == before


def test_publishing_goes_on_where_it_was_interrupted_after_the_push(
    client: DockerClient, registry: ImageRegistry, name: str
) -> None:
    local = tiny_image(client, unique("content"), f"{name}:1")
    pushed = push(client, local, f"{registry.host}/{name}", "1")
    made = image("publish", f"{name}:1")
    assert (made["manifest_digest"], made["registered"]) == (str(pushed), True)


def test_publishing_what_another_publishes_just_now_registers_it_once(
    client: DockerClient, registry: ImageRegistry, name: str
) -> None:
    """The other one is first, between our push and our registration."""
    local = tiny_image(client, unique("content"), f"{name}:1")
    wanted, images = ImagePublication(name, "1", local, registry), ledger("org1", "data-scientist").images
    here = LocalImages(client).find(str(local))
    assert here is not None
    first = []

    def step(said: str) -> None:
        if said.startswith("registering"):
            first.append(publish(client, images, wanted, here, lambda _: None))

    second = publish(client, images, wanted, here, step)
    assert [made.transaction is None for made in (*first, second)] == [False, True]
    assert second.record == first[0].record
    assert len(scientist1.evaluate("image", "History", name, "1")["items"]) == 1


def test_what_was_pruned_meanwhile_is_neither_pushed_nor_registered(
    client: DockerClient, registry: ImageRegistry, name: str
) -> None:
    local = tiny_image(client, unique("content"), f"{name}:1")
    wanted, images = ImagePublication(name, "1", local, registry), ledger("org1", "data-scientist").images
    here = LocalImages(client).find(str(local))
    assert here is not None

    def prune(said: str) -> None:
        if said.startswith("pushing"):
            client.api.remove_image(str(local), force=True)

    with pytest.raises(EngineError) as caught:
        publish(client, images, wanted, here, prune)
    assert exit_code(caught.value) == UNREACHABLE
    assert registry.manifest(name, "1") is None
    assert scientist1.code("image", "Get", name, "1") == "IMAGE_UNKNOWN"
    assert image("publish", f"{name}:1", code=USAGE)["error"]["code"] == "IMAGE_NOT_LOCAL"


def test_version_is_named_after_package_and_image_if_none_is_given(client: DockerClient, name: str) -> None:
    local = tiny_image(client, unique("content"), f"{name}:latest")
    assert image("publish", name)["version"] == f"{package_version('attestree')}-{local.hex[:12]}"


@pytest.mark.parametrize(
    ("reference", "code"),
    [("{}:latest", USAGE), ("{}@sha256:" + "0" * 64, USAGE), ("Upper/{}:1", USAGE), ("{}:1", USAGE)],
)
def test_a2_reference_that_names_no_image_of_ours_is_refused(name: str, reference: str, code: int) -> None:
    error = image("publish", reference.format(name), code=code)["error"]
    assert error["code"] in {"IMAGE_REFERENCE", "IMAGE_NOT_LOCAL"}
    assert error["remedy"]


def test_auditor_may_read_and_not_publish(client: DockerClient, name: str) -> None:
    tiny_image(client, unique("content"), f"{name}:1")
    error = image("publish", f"{name}:1", "--identity", "auditor", code=DENIED)["error"]
    assert error["code"] == "ACCESS_ROLE"
    image("publish", f"{name}:1")
    caught_up()
    assert (
        image("show", f"{name}:1", "--identity", "auditor", "--organisation", "org2")["status"]
        == "registered"
    )


def test_retired_version_is_shown_as_such_and_retired_once(client: DockerClient, name: str) -> None:
    tiny_image(client, unique("content"), f"{name}:1")
    image("publish", f"{name}:1")
    assert image("retire", f"{name}:1", "--reason", "superseded")["retired"]["reason"] == "superseded"
    shown = image("show", f"{name}:1")
    assert shown["status"] == "retired"
    assert [item["value"]["status"] for item in shown["history"]] == ["retired", "registered"]
    assert image("retire", f"{name}:1", code=WRONG_STATE)["error"]["code"] == "LIFECYCLE_TRANSITION"
    caught_up()
    other = image("retire", f"{name}:1", "--organisation", "org2", code=DENIED)
    assert other["error"]["code"] == "ACCESS_ORGANISATION"


def test_list_has_every_version_and_unknown_ones_are_refused(client: DockerClient, name: str) -> None:
    for version in ("1", "2"):
        tiny_image(client, unique("content"), f"{name}:{version}")
        image("publish", f"{name}:{version}")
    listed = image("list", "--of", "Org1MSP")["images"]
    assert [made["image"]["version"] for made in listed if made["image"]["name"] == name] == ["1", "2"]
    lines = done(EXECUTOR, "image", "list").splitlines()
    assert sum(line.startswith(f"| {name}:") for line in lines) == 2
    assert image("show", f"{name}:3", code=WRONG_STATE)["error"]["code"] == "IMAGE_UNKNOWN"


def test_verify_finds_every_copy_equal(client: DockerClient, name: str) -> None:
    local = tiny_image(client, unique("content"), f"{name}:1")
    image("publish", f"{name}:1")
    made = image("verify", f"{name}:1", "--deep")
    assert made["ok"] is True
    found = {finding["where"]: finding["equal"] for finding in made["findings"]}
    assert found == {
        "engine, by id": True,
        "engine, by manifest": True,
        "engine, registry's tag": True,
        "engine, tag": True,
        "engine, configuration": True,
        "engine, files of layer 1": True,
        "registry, by manifest": True,
        "registry, tag": True,
    }
    assert made["image_id"] == str(local)


def test_a1_wrong_image_id_on_the_ledger_is_found_by_verify(
    client: DockerClient, registry: ImageRegistry, name: str
) -> None:
    local = tiny_image(client, unique("content"), f"{name}:1")
    manifest = push(client, local, f"{registry.host}/{name}", "1")
    register(name, "1", manifest, DIGESTS[4], f"{registry.host}/{name}")
    made = image("verify", f"{name}:1", code=INTEGRITY)
    assert made["error"]["code"] == "IMAGE_MISMATCH"
    assert str(local) in made["error"]["cause"]
    assert {finding["where"] for finding in made["findings"] if finding["equal"] is False} == {
        "engine, by manifest",
        "engine, registry's tag",
        "engine, tag",
        "registry, by manifest",
    }


def test_a2_tag_moved_in_the_registry_is_found_by_verify(
    client: DockerClient, registry: ImageRegistry, name: str
) -> None:
    tiny_image(client, unique("content"), f"{name}:1")
    image("publish", f"{name}:1")
    other = tiny_image(client, unique("other"), f"{name}:2")
    push(client, other, f"{registry.host}/{name}", "1")
    made = image("verify", f"{name}:1", code=INTEGRITY)
    wrong = {finding["where"] for finding in made["findings"] if finding["equal"] is False}
    assert wrong == {"registry, tag", "engine, registry's tag"}


def test_a5_index_is_published_as_the_manifest_of_this_platform_with_both_recorded(
    client: DockerClient, registry: ImageRegistry, name: str
) -> None:
    repository = f"{registry.host}/{name}"
    local = tiny_image(client, unique("content"), f"{name}:amd")
    here = request(registry, "GET", f"/v2/{name}/manifests/{push(client, local, repository, 'amd')}")
    other = tiny_image(client, unique("other"), f"{name}:other")
    elsewhere = request(registry, "GET", f"/v2/{name}/manifests/{push(client, other, repository, 'other')}")
    raw = index_of([entry(elsewhere, "s390x"), entry(here, client.version()["Arch"])])
    request(registry, "PUT", f"/v2/{name}/manifests/1", raw, INDEX)

    made = image("publish", f"{name}:1", "--pushed", str(Digest.of(raw)))
    assert made["image_id"] == str(local)
    assert made["manifest_digest"] == str(Digest.of(here))
    assert made["index_digest"] == str(Digest.of(raw))
    assert str(Digest.of(raw)) in made["description"]
    checked = image("verify", f"{name}:1")
    assert checked["index_digest"] == str(Digest.of(raw))
    assert checked["platform_digest"] == str(Digest.of(here))

    register(name, "2", Digest.of(raw), other, repository)
    assert image("verify", f"{name}:2", code=INTEGRITY)["platform_digest"] == str(Digest.of(here))


def test_a7_registry_down_is_said_and_the_local_image_still_counts(client: DockerClient, name: str) -> None:
    local = tiny_image(client, unique("content"), f"{name}:1")
    register(name, "1", DIGESTS[2], local, "127.0.0.1:1/nobody/serves")
    made = image("verify", f"{name}:1")
    (registry,) = [finding for finding in made["findings"] if finding["where"].startswith("registry")]
    assert registry["equal"] is None
    assert "127.0.0.1:1 does not answer" in registry["found"]
    forget(client, name)
    assert image("verify", f"{name}:1", code=UNREACHABLE)["error"]["code"] == "IMAGE_UNAVAILABLE"


@pytest.mark.parametrize(
    "digest", ["sha256:" + "a" * 63, "sha256:" + "A" * 64, "sha512:" + "a" * 128, "a" * 64]
)
def test_a8_odd_hash_is_refused_before_anything_is_asked(name: str, digest: str) -> None:
    error = image("publish", f"{name}:1", "--pushed", digest, code=INVALID)["error"]
    assert error["code"].startswith("DIGEST_")


def test_engine_that_cannot_be_reached_is_told_with_exit_30() -> None:
    ran = run(EXECUTOR, "image", "build", DOCKER_HOST="unix:///none/docker.sock")
    assert ran.returncode == UNREACHABLE
    assert ran.stdout == ""
    assert "ENGINE_UNREACHABLE" in ran.stderr
    assert "remedy: " in ran.stderr


def test_files_altered_below_the_engine_are_found_by_a_deep_verification(
    client: DockerClient, name: str
) -> None:
    """Written into the engine's own storage, as root of the host can: every name and id still looks right."""
    local = tiny_image(client, unique("content"), f"{name}:1")
    image("publish", f"{name}:1")
    storage = client.images.get(str(local)).attrs["GraphDriver"]["Data"].get("UpperDir")
    if storage is None or not os.access(storage, os.W_OK):
        pytest.skip("the engine's storage is not ours to write")
    file = Path(storage, "content")
    file.write_bytes(bytes(len(file.read_bytes())))
    assert image("verify", f"{name}:1")["ok"] is True
    made = image("verify", f"{name}:1", "--deep", code=INTEGRITY)
    assert "engine, files" in {finding["where"] for finding in made["findings"] if finding["equal"] is False}
