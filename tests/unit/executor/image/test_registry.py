"""A registry that lies, is silent, or answers in another language."""

import json
import socket
from pathlib import Path

import pytest

from executor.errors import EngineError, IntegrityError
from executor.image.manifest import Platform
from executor.image.registry import MAX_MANIFEST, ImageRegistry
from executor.network import Network
from protocol.digest import Digest

HERE = Platform("linux", "amd64")
CONFIG = Digest(b"c" * 32)
MANIFEST = json.dumps({"schemaVersion": 2, "config": {"digest": str(CONFIG)}}).encode()
OTHER = json.dumps({"schemaVersion": 2, "config": {"digest": str(Digest(b"o" * 32))}}).encode()


def path(reference: object) -> str:
    return f"/v2/bank/learner/manifests/{reference}"


def test_a_tag_leads_to_manifest_and_configuration(
    registry: ImageRegistry, table: dict[str, tuple[int, bytes]]
) -> None:
    table[path("1")] = (200, MANIFEST)
    served = registry.served("bank/learner", "1", HERE)
    assert served is not None
    assert (served.manifest, served.image, served.image_id) == (
        Digest.of(MANIFEST),
        Digest.of(MANIFEST),
        CONFIG,
    )
    assert served.index is None
    assert registry.served("bank/learner", "2", HERE) is None


def test_other_bytes_under_a_digest_are_refused(
    registry: ImageRegistry, table: dict[str, tuple[int, bytes]]
) -> None:
    table[path(Digest.of(MANIFEST))] = (200, OTHER)
    with pytest.raises(IntegrityError) as caught:
        registry.served("bank/learner", str(Digest.of(MANIFEST)), HERE)
    assert caught.value.evidence == {"expected": str(Digest.of(MANIFEST)), "found": str(Digest.of(OTHER))}


def test_a5_other_bytes_under_the_digest_an_index_names_are_refused(
    registry: ImageRegistry, table: dict[str, tuple[int, bytes]]
) -> None:
    listed = {"digest": str(Digest.of(MANIFEST)), "platform": {"os": "linux", "architecture": "amd64"}}
    table[path("1")] = (200, json.dumps({"schemaVersion": 2, "manifests": [listed]}).encode())
    table[path(Digest.of(MANIFEST))] = (200, OTHER)
    with pytest.raises(IntegrityError) as caught:
        registry.served("bank/learner", "1", HERE)
    assert caught.value.code == "IMAGE_MISMATCH"


def test_a5_index_of_indices_is_refused(registry: ImageRegistry, table: dict[str, tuple[int, bytes]]) -> None:
    inner = json.dumps({"schemaVersion": 2, "manifests": []}).encode()
    listed = {"digest": str(Digest.of(inner)), "platform": {"os": "linux", "architecture": "amd64"}}
    table[path("1")] = (200, json.dumps({"schemaVersion": 2, "manifests": [listed]}).encode())
    table[path(Digest.of(inner))] = (200, inner)
    with pytest.raises(IntegrityError) as caught:
        registry.served("bank/learner", "1", HERE)
    assert caught.value.code == "IMAGE_MANIFEST"


@pytest.mark.parametrize("answer", [(401, b"{}"), (302, b""), (500, b"{}"), (200, b" " * (MAX_MANIFEST + 1))])
def test_an_answer_that_is_no_manifest_is_refused(
    registry: ImageRegistry, table: dict[str, tuple[int, bytes]], answer: tuple[int, bytes]
) -> None:
    table[path("1")] = answer
    with pytest.raises(EngineError) as caught:
        registry.manifest("bank/learner", "1")
    assert caught.value.code == "REGISTRY_REFUSED"


def test_a_registry_that_another_authority_certified_is_not_asked(
    registry: ImageRegistry, table: dict[str, tuple[int, bytes]]
) -> None:
    table[path("1")] = (200, MANIFEST)
    with pytest.raises(EngineError) as caught:
        ImageRegistry(registry.host).manifest("bank/learner", "1")
    assert caught.value.code == "REGISTRY_UNREACHABLE"
    assert "CERTIFICATE_VERIFY_FAILED" in caught.value.cause


def test_a7_registry_that_is_not_there_is_named(certificate: Path) -> None:
    with socket.socket() as held:  # nobody else can listen there meanwhile
        held.bind(("127.0.0.1", 0))
        for host in (f"127.0.0.1:{held.getsockname()[1]}", "127.0.0.1:99999"):
            with pytest.raises(EngineError) as caught:
                ImageRegistry(host, certificate).manifest("bank/learner", "1")
            assert caught.value.code == "REGISTRY_UNREACHABLE"
            assert host in caught.value.cause


def test_a_network_without_its_authority_s_certificate_is_an_error_not_a_crash(tmp_path: Path) -> None:
    with pytest.raises(EngineError):
        ImageRegistry.of_network(Network("none", tmp_path, 4, 3, 20, "image")).manifest("bank/learner", "1")


def test_only_the_network_s_own_registry_is_trusted_by_its_authority(tmp_path: Path) -> None:
    network = Network("attestree", tmp_path, 4, 3, 20, "image", 17)
    own = ImageRegistry.of_repository("127.0.0.1:17005/attestree/learner", network)
    assert own == ImageRegistry.of_network(network)
    assert own.authority is not None
    assert ImageRegistry.of_repository("registry.example/learner", network) == ImageRegistry(
        "registry.example"
    )
