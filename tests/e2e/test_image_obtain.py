"""Obtaining an image on a live engine: what is run is what the ledger says, or nothing is."""

import json
from collections.abc import Iterator

import pytest
from docker import DockerClient
from support.channel import DIGESTS, unique
from support.images import (
    INDEX,
    TYPES,
    OwnRegistry,
    as_type,
    entry,
    forget,
    has,
    index_of,
    own_registry,
    pack,
    push,
    registered,
    relabelled,
    tiny_image,
)

from executor.errors import EngineError, IntegrityError
from executor.exits import ENGINE_UNREACHABLE, IMAGE_INTEGRITY, exit_code
from executor.image.check import obtain
from protocol.agreement.image import Image
from protocol.digest import Digest


@pytest.fixture(scope="module")
def client(docker_client: DockerClient) -> DockerClient:
    return docker_client


@pytest.fixture(scope="module")
def registry(client: DockerClient) -> Iterator[OwnRegistry]:
    with own_registry(client) as made:
        yield made


@pytest.fixture
def repository(client: DockerClient, registry: OwnRegistry) -> Iterator[str]:
    name = f"{registry.host}/{unique('image')}"
    yield name
    forget(client, name)


@pytest.fixture
def kept(client: DockerClient) -> Iterator[str]:
    """A local name under which an image stays when its repository is forgotten."""
    name = unique("kept")
    yield name
    forget(client, name)


@pytest.fixture
def published(client: DockerClient, repository: str) -> Image:
    """An image that registry and ledger have, and the engine only knows by what it pushed."""
    image = tiny_image(client, unique("content"), f"{repository}:1")
    return registered(image, push(client, image, repository, "1"), repository)


def test_an_image_that_is_not_here_is_pulled_by_its_digest(client: DockerClient, published: Image) -> None:
    forget(client, published.repository)
    assert not has(client, published.image_id)
    assert obtain(client, published).image_id == published.image_id
    assert client.images.get(published.by_digest).tags == []


def test_a1_wrong_image_id_on_the_ledger_is_refused_with_evidence(
    client: DockerClient, published: Image
) -> None:
    lying = registered(Digest.parse(DIGESTS[3]), published.manifest_digest, published.repository)
    with pytest.raises(IntegrityError) as caught:
        obtain(client, lying)
    assert exit_code(caught.value) == IMAGE_INTEGRITY
    assert caught.value.evidence == {
        "image": "test/image:1",
        "repository": published.repository,
        "manifest_digest": str(published.manifest_digest),
        "expected": DIGESTS[3],
        "found": str(published.image_id),
    }


def test_a1_id_of_another_local_image_on_the_ledger_is_refused(
    client: DockerClient, published: Image, kept: str
) -> None:
    """The id names an image that is here, but not the one that the manifest leads to."""
    other = tiny_image(client, unique("other"), f"{kept}:1")
    lying = registered(other, published.manifest_digest, published.repository)
    with pytest.raises(IntegrityError) as caught:
        obtain(client, lying)
    assert caught.value.evidence["found"] == str(published.image_id)


def test_a2_other_content_under_the_same_tag_is_not_taken(client: DockerClient, published: Image) -> None:
    other = tiny_image(client, unique("other"), f"{published.repository}:1")
    push(client, other, published.repository, "1")
    forget(client, published.repository)
    assert obtain(client, published).image_id == published.image_id
    assert not has(client, other)


def test_a2_local_tag_with_other_content_is_no_substitute(
    client: DockerClient, registry: OwnRegistry, published: Image
) -> None:
    """Gone from the registry and from the engine, while the tag is here with another image."""
    name = published.repository.partition("/")[2]
    registry.request("DELETE", f"/v2/{name}/manifests/{published.manifest_digest}")
    forget(client, published.repository)
    tiny_image(client, unique("other"), f"{published.repository}:1")
    with pytest.raises(EngineError) as caught:
        obtain(client, published)
    assert caught.value.code == "IMAGE_UNAVAILABLE"


def test_a3_tag_moved_after_the_check_changes_nothing(
    client: DockerClient, published: Image, kept: str
) -> None:
    image = obtain(client, published)
    client.api.tag(str(image.called), kept, "1")
    other = tiny_image(client, unique("other"), f"{published.repository}:1")
    client.api.tag(str(other), kept, "1", force=True)
    container = client.containers.create(str(image.called))
    try:
        assert container.attrs["Image"] == str(published.image_id)
    finally:
        container.remove()


def test_a5_index_is_followed_to_the_image_of_this_platform(
    client: DockerClient, registry: OwnRegistry, published: Image
) -> None:
    name = published.repository.partition("/")[2]
    here = registry.request("GET", f"/v2/{name}/manifests/{published.manifest_digest}")
    other = tiny_image(client, unique("other"), f"{published.repository}:2")
    elsewhere = registry.request(
        "GET", f"/v2/{name}/manifests/{push(client, other, published.repository, '2')}"
    )
    machine = client.version()["Arch"]
    raw = index_of([entry(elsewhere, "s390x"), entry(here, machine)])
    registry.request("PUT", f"/v2/{name}/manifests/multi", raw, INDEX)
    forget(client, published.repository)

    right = registered(published.image_id, Digest.of(raw), published.repository)
    assert obtain(client, right).image_id == published.image_id
    wrong = registered(other, Digest.of(raw), published.repository)
    with pytest.raises(IntegrityError) as caught:
        obtain(client, wrong)
    assert caught.value.evidence["manifest_digest"] == str(Digest.of(raw))
    assert caught.value.evidence["found"] == str(published.image_id)


@pytest.mark.parametrize("maker", TYPES)
def test_manifests_of_docker_and_of_oci_lead_to_the_same_image(
    client: DockerClient, registry: OwnRegistry, published: Image, maker: str
) -> None:
    name = published.repository.partition("/")[2]
    raw, kind = as_type(maker, registry.request("GET", f"/v2/{name}/manifests/{published.manifest_digest}"))
    registry.request("PUT", f"/v2/{name}/manifests/{maker}", raw, kind)
    forget(client, published.repository)
    assert not has(client, published.image_id)
    typed = registered(published.image_id, Digest.of(raw), published.repository)
    assert obtain(client, typed).image_id == published.image_id


@pytest.mark.parametrize(
    "kind",
    [
        TYPES["oci"][0],
        INDEX,
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v1+prettyjws",
        "text/html",
        "",
    ],
)
def test_a8_a_registry_that_calls_the_manifest_something_else_serves_the_same_image_or_none(
    client: DockerClient, registry: OwnRegistry, published: Image, kind: str
) -> None:
    """Engines read a manifest by the type in the answer's header; the header is nobody's word."""
    forget(client, published.repository)
    with relabelled(registry, kind) as host:
        repository = f"{host}/{published.repository.partition('/')[2]}"
        elsewhere = registered(published.image_id, published.manifest_digest, repository)
        got = obtained(client, elsewhere)
        forget(client, repository)
    if isinstance(got, EngineError):
        assert (got.code, exit_code(got)) == ("IMAGE_UNAVAILABLE", ENGINE_UNREACHABLE)
    else:
        assert got == published.image_id


def obtained(client: DockerClient, image: Image) -> Digest | EngineError:
    try:
        return obtain(client, image).image_id
    except EngineError as error:
        return error


def test_a6_deleted_from_the_registry_runs_only_as_the_local_image_with_the_ledger_s_id(
    client: DockerClient, registry: OwnRegistry, published: Image, kept: str
) -> None:
    name = published.repository.partition("/")[2]
    registry.request("DELETE", f"/v2/{name}/manifests/{published.manifest_digest}")
    client.api.tag(str(published.image_id), kept, "1")
    forget(client, published.repository)
    assert obtain(client, published).image_id == published.image_id
    forget(client, kept)
    with pytest.raises(EngineError) as caught:
        obtain(client, published)
    assert (caught.value.code, exit_code(caught.value)) == ("IMAGE_UNAVAILABLE", ENGINE_UNREACHABLE)


def test_a7_registry_down_runs_only_the_local_image_with_the_ledger_s_id(
    client: DockerClient, kept: str
) -> None:
    with own_registry(client) as going:
        repository = f"{going.host}/{unique('image')}"
        image = tiny_image(client, unique("content"), f"{kept}:1")
        known = registered(image, push(client, image, repository, "1"), repository)
    # The registry is gone. The engine still knows the image by both digests: nothing has to be asked.
    assert obtain(client, known).image_id == image
    forget(client, repository)
    assert obtain(client, known).image_id == image
    forget(client, kept)
    with pytest.raises(EngineError) as caught:
        obtain(client, known)
    assert caught.value.code == "IMAGE_UNAVAILABLE"
    assert repository in caught.value.cause


def test_registry_that_serves_other_bytes_for_a_digest_is_refused(
    client: DockerClient, registry: OwnRegistry, published: Image
) -> None:
    """Altered in the registry's own storage: the bytes of the manifest are not those of its digest."""
    digest = published.manifest_digest.hex
    path = f"/tmp/docker/registry/v2/blobs/sha256/{digest[:2]}/{digest}"
    name = published.repository.partition("/")[2]
    manifest = json.loads(registry.request("GET", f"/v2/{name}/manifests/{published.manifest_digest}"))
    manifest["annotations"] = {"altered": "yes"}
    registry.container.put_archive(path, pack(data=json.dumps(manifest).encode()))
    forget(client, published.repository)
    with pytest.raises(IntegrityError) as caught:
        obtain(client, published)
    assert caught.value.code == "IMAGE_MISMATCH"
    assert caught.value.evidence["expected"] == str(published.manifest_digest)
    # By our own comparison of the bytes, not by the engine's words.
    assert Digest.parse(caught.value.evidence["found"]) != published.manifest_digest
