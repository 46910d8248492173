"""The comparison of images, and the record it starts from."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import ImageNotFound

from executor.errors import EngineError, IntegrityError
from executor.exits import ENGINE_UNREACHABLE, IMAGE_INTEGRITY, exit_code
from executor.image.check import check_local, obtain
from executor.image.comparison import check_image, evidence_of
from executor.image.local import LocalImage
from protocol.agreement.image import Image
from protocol.agreement.lifecycle import ImageState
from protocol.digest import Digest
from protocol.errors import DataError
from protocol.ledger.common import Provenance
from protocol.ledger.images import ImageRecord

ONE, OTHER = Digest(b"1" * 32), Digest(b"2" * 32)


def record(**changes: Any) -> dict[str, Any]:
    """Return what the image chaincode answers, with something else in the image."""
    image = {
        "name": "attestree/learner",
        "version": "1",
        "manifest_digest": str(ONE),
        "image_id": str(OTHER),
        "repository": "127.0.0.1:7005/attestree/learner",
        "description": "",
    }
    by = Provenance("Org1MSP", "alice", "data-scientist", ONE, "2026-11-16T00:00:00Z", "tx")
    registered = {"status": "registered", "registered": by.to_dict(), "retired": None}
    return {"version": 1, "image": image | changes, **registered}


def test_equal_images_pass() -> None:
    check_image(ONE, ONE)


def test_a1_another_image_is_refused_with_both_ids_as_evidence() -> None:
    with pytest.raises(IntegrityError) as caught:
        check_image(OTHER, ONE, {"image": "attestree/learner:1"})
    assert exit_code(caught.value) == IMAGE_INTEGRITY
    assert caught.value.code == "IMAGE_MISMATCH"
    expected = {"image": "attestree/learner:1", "expected": str(ONE), "found": str(OTHER)}
    assert caught.value.evidence == expected


def test_record_of_the_ledger_is_read_as_values() -> None:
    found = ImageRecord.from_dict(record())
    image = found.image
    assert (image.manifest_digest, image.image_id, found.status) == (ONE, OTHER, ImageState.REGISTERED)
    assert image.by_digest == f"127.0.0.1:7005/attestree/learner@{ONE}"
    assert evidence_of(image) == {
        "image": "attestree/learner:1",
        "repository": "127.0.0.1:7005/attestree/learner",
        "manifest_digest": str(ONE),
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"image_id": "sha256:" + "a" * 63},
        {"image_id": "sha256:" + "A" * 64},
        {"image_id": None},
        {"manifest_digest": "sha512:" + "a" * 128},
        {"manifest_digest": "a" * 64},
        {"repository": "https://127.0.0.1/learner"},
        {"repository": "127.0.0.1:7005/learner:1"},
        {"version": "latest"},
        {"tag": "latest"},
    ],
)
def test_a8_record_with_an_odd_hash_or_name_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(DataError):
        ImageRecord.from_dict(record(**changes))


@pytest.mark.parametrize("status", ["", "Registered", "trusted", None, 1, []])
def test_a8_record_of_another_status_is_refused(status: Any) -> None:
    with pytest.raises(DataError, match="status is not"):
        ImageRecord.from_dict(record() | {"status": status})


# --- what is obtained, from an engine and a registry that say this and that ---

CONFIG = json.dumps({"rootfs": {"type": "layers", "diff_ids": []}}).encode()
MANIFEST = json.dumps({"schemaVersion": 2, "config": {"digest": str(Digest.of(CONFIG))}}).encode()


class SpeakingEngine:
    """An engine that has these images by id, and fails to pull with these words."""

    def __init__(self, *local: Digest, said: str = "manifest verification failed for digest") -> None:
        self.local, self.said = {str(id_) for id_ in local}, said
        self.pulled = 0
        self.api = SimpleNamespace(inspect_image=self.inspect, pull=self.pull)

    def inspect(self, reference: str) -> dict[str, Any]:
        if reference not in self.local:
            raise ImageNotFound("no such image")
        return {"Id": reference, "RepoDigests": []}

    def pull(self, *_: object, **__: object) -> list[dict[str, str]]:
        self.pulled += 1
        return [{"error": self.said}]

    def info(self) -> dict[str, Any]:
        return {"DriverStatus": []}


@pytest.fixture
def registry() -> Iterator[tuple[str, dict[str, bytes]]]:
    """A registry without TLS on loopback, and what it serves as manifests by reference."""
    served: dict[str, bytes] = {}

    class Serving(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = served.get(self.path.rpartition("/")[2])
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Serving) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"127.0.0.1:{server.server_port}", served
        server.shutdown()
        thread.join()


def image(manifest: Digest, image_id: Digest, host: str = "127.0.0.1:1") -> Image:
    return Image("attestree/learner", "1", manifest, image_id, f"{host}/attestree/learner", "")


def test_an_engines_words_make_no_integrity_error() -> None:
    engine: Any = SpeakingEngine()
    with pytest.raises(EngineError) as caught:
        obtain(engine, image(ONE, OTHER))
    assert (caught.value.code, exit_code(caught.value)) == ("IMAGE_UNAVAILABLE", ENGINE_UNREACHABLE)
    # With the right image at hand, they keep nobody from running it either.
    engine = SpeakingEngine(OTHER)
    assert obtain(engine, image(ONE, OTHER)).image_id == OTHER


def test_a2_other_bytes_under_the_digest_are_found_by_hashing_them(registry: Any) -> None:
    host, served = registry
    served[str(ONE)] = MANIFEST
    engine: Any = SpeakingEngine(OTHER, said="an innocent failure")
    with pytest.raises(IntegrityError) as caught:
        obtain(engine, image(ONE, OTHER, host))
    assert caught.value.code == "IMAGE_MISMATCH"
    assert caught.value.evidence["found"] == str(Digest.of(MANIFEST))
    assert caught.value.evidence["image"] == "attestree/learner:1"


def test_a4_digests_that_were_swapped_are_told_as_that(registry: Any) -> None:
    host, served = registry
    served[str(Digest.of(MANIFEST))] = MANIFEST
    swapped = image(Digest.of(CONFIG), Digest.of(MANIFEST), host)
    for engine in (SpeakingEngine(), SpeakingEngine(Digest.of(CONFIG))):
        with pytest.raises(IntegrityError) as caught:
            obtain(engine, swapped)  # type: ignore[arg-type]
        assert (caught.value.code, exit_code(caught.value)) == ("IMAGE_DIGESTS", IMAGE_INTEGRITY)
        assert "right way round" in caught.value.remedy
    right = image(Digest.of(MANIFEST), Digest.of(CONFIG), host)
    engine: Any = SpeakingEngine(Digest.of(CONFIG))
    assert obtain(engine, right).image_id == Digest.of(CONFIG)


def test_a4_a_registry_cannot_make_a_sound_record_look_swapped(registry: Any) -> None:
    host, served = registry
    served |= {str(Digest.of(MANIFEST)): MANIFEST, str(Digest.of(CONFIG)): CONFIG}
    engine: Any = SpeakingEngine(Digest.of(CONFIG))
    right = image(Digest.of(MANIFEST), Digest.of(CONFIG), host)
    assert obtain(engine, right) == LocalImage(right.image_id, right.image_id)


def test_a4_equal_digests_are_refused_before_anything_is_pulled() -> None:
    engine: Any = SpeakingEngine(ONE)
    with pytest.raises(IntegrityError, match="IMAGE_DIGESTS"):
        obtain(engine, image(ONE, ONE))
    assert engine.pulled == 0


def test_a_dry_run_pulls_nothing() -> None:
    engine: Any = SpeakingEngine()
    with pytest.raises(EngineError, match="does not have"):
        check_local(engine, image(ONE, OTHER))
    check_local(SpeakingEngine(OTHER), image(ONE, OTHER))  # type: ignore[arg-type]
    assert engine.pulled == 0
