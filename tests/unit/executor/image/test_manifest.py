"""Manifests: of one image or an index, Docker's or OCI's, and nothing else."""

import json
from typing import Any

import pytest

from executor.errors import IntegrityError
from executor.image.manifest import Manifest, Platform
from protocol.digest import Digest

CONFIG, AMD, ARM = (Digest(bytes([n]) * 32) for n in range(3))
DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
OCI = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"
HERE = Platform("linux", "amd64")


def image(kind: str | None = DOCKER) -> bytes:
    content = {"schemaVersion": 2, "config": {"digest": str(CONFIG)}, "layers": []}
    return json.dumps(content | ({"mediaType": kind} if kind else {})).encode()


def index(entries: list[dict[str, Any]], kind: str | None = INDEX) -> bytes:
    return json.dumps(
        {"schemaVersion": 2, "manifests": entries} | ({"mediaType": kind} if kind else {})
    ).encode()


def entry(digest: Digest, architecture: str, **more: str) -> dict[str, Any]:
    return {"digest": str(digest), "platform": {"os": "linux", "architecture": architecture, **more}}


@pytest.mark.parametrize("kind", [DOCKER, OCI, None])
def test_manifest_of_one_image(kind: str | None) -> None:
    found = Manifest.parse(image(kind))
    assert found.config == CONFIG
    assert found.digest == Digest.of(image(kind))
    assert not found.is_index


@pytest.mark.parametrize("kind", [INDEX, LIST, None])
def test_a5_index_leads_to_the_manifest_of_the_platform(kind: str | None) -> None:
    found = Manifest.parse(index([entry(ARM, "arm64", variant="v8"), entry(AMD, "amd64")], kind))
    assert found.is_index
    assert found.for_platform(HERE) == AMD
    assert found.for_platform(Platform("linux", "arm64")) == ARM
    assert found.for_platform(Platform("linux", "arm64", "v8")) == ARM


@pytest.mark.parametrize(
    "entries",
    [
        [],
        [entry(ARM, "arm64")],
        [entry(AMD, "amd64"), entry(ARM, "amd64")],
        [{"digest": str(AMD)}],
    ],
)
def test_a5_index_without_exactly_one_image_for_the_platform_is_refused(entries: list[Any]) -> None:
    with pytest.raises(IntegrityError) as caught:
        Manifest.parse(index(entries)).for_platform(HERE)
    assert caught.value.code == "IMAGE_MANIFEST"
    assert "manifest_digest" in caught.value.evidence


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"null",
        b"[]",
        b"{",
        b"\xff",
        b"{}",
        json.dumps({"mediaType": DOCKER}).encode(),
        json.dumps({"mediaType": DOCKER, "config": {"digest": "sha512:" + "0" * 128}}).encode(),
        json.dumps({"mediaType": DOCKER, "config": "text"}).encode(),
        json.dumps({"mediaType": "application/vnd.docker.distribution.manifest.v1+prettyjws"}).encode(),
        json.dumps({"mediaType": INDEX, "manifests": [{"digest": "sha256:" + "A" * 64}]}).encode(),
        json.dumps({"mediaType": INDEX, "manifests": 7}).encode(),
        json.dumps({"mediaType": ["list"]}).encode(),
        # An image to who reads it so and an index to others: two images under one digest.
        json.dumps({"manifests": [entry(AMD, "amd64")], "config": {"digest": str(CONFIG)}}).encode(),
        json.dumps({"mediaType": INDEX, "manifests": [entry(AMD, "amd64")], "layers": []}).encode(),
        json.dumps({"mediaType": OCI, "manifests": [], "config": {"digest": str(CONFIG)}}).encode(),
    ],
)
def test_a8_bytes_that_are_no_manifest_are_refused(raw: bytes) -> None:
    with pytest.raises(IntegrityError) as caught:
        Manifest.parse(raw)
    assert caught.value.code == "IMAGE_MANIFEST"
