"""`executor launch` on engines with containerd's image store: what runs, what is refused and recorded.

The channel is in memory, and so is the engine; tests/e2e/test_engines.py has the same on real ones.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.memory.containerd import CONFIG, DOCKER, INDEX, OCI, OTHER, ContainerdEngine, index, manifest
from support.memory.launches import Engine, Host, at_host, fresh, specification_of

from executor.exits import ENGINE_UNREACHABLE, IMAGE_INTEGRITY, SANDBOX_REFUSED
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.task.opening import TaskId

REPOSITORY = "127.0.0.1:1/attestree/learner"
SCHEMA_1 = "application/vnd.docker.distribution.manifest.v1+prettyjws"


@pytest.fixture
def host(socket_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Host]:
    with at_host(Host(socket_folder, fresh()), monkeypatch) as found:
        yield found


def at_registry(host: Host, raw: bytes) -> Any:
    """Register these bytes as the manifest of the honest configuration, and agree on a process with it.

    Returns the host's engine, which has nothing yet and can pull them.
    """
    pin = {"manifest_digest": str(Digest.of(raw)), "image_id": str(Digest.of(CONFIG))}
    host.federation.scientist1.submit(
        "image", "Register", "attestree/learner", "2", *pin.values(), REPOSITORY
    )
    made = {**specification_of(2), "process": "second"}
    made["steps"][0] |= {"image": {"name": "attestree/learner", "version": "2", **pin}}
    host.federation.process = host.agree(made)
    engine: Any = ContainerdEngine(served={str(Digest.of(raw)): raw})
    host.engine = engine
    return engine


def launched(host: Host, *options: str) -> tuple[int, Any]:
    """Launch one iteration of a node; returns the exit code, and the error, if any."""
    ran = host.launch("--node", "node01", *host.data, "--json", *options)
    answer = json.loads(ran.stdout)
    (node,) = answer.get("nodes", [answer])
    return ran.exit_code, node.get("error")


def opened(host: Host, iteration: int = 0) -> bool:
    try:
        return host.ledger().execution.get_task(TaskId(host.process, "node01", iteration)).opening is not None
    except StateError:
        return False


def refusals(host: Host) -> list[Any]:
    return list(host.ledger().execution.list_refusals(host.process, "node01"))


@pytest.mark.parametrize("kind", [DOCKER, OCI])
def test_manifests_of_both_media_types_run_and_are_recorded_by_the_image_s_id(host: Host, kind: str) -> None:
    at_registry(host, manifest(kind=kind))
    assert launched(host) == (0, None)
    opening = host.ledger().execution.get_task(TaskId(host.process, "node01", 0)).opening
    assert opening is not None
    assert opening.image_id == Digest.of(CONFIG)
    assert refusals(host) == []


BOTH = json.loads(manifest()) | json.loads(index(manifest()))
ODD = {
    "an index": (index(manifest()), "IMAGE_MANIFEST"),
    "a manifest whose configuration is another's": (manifest(OTHER), "IMAGE_MISMATCH"),
    "Docker's first schema": (manifest(kind=SCHEMA_1), "IMAGE_MANIFEST"),
    "an image that says it is an index": (manifest(kind=INDEX), "IMAGE_MANIFEST"),
    "image and index at once": (json.dumps(BOTH).encode(), "IMAGE_MANIFEST"),
    "image and index at once, of no type": (
        json.dumps({**BOTH, "mediaType": ""}).encode(),
        "IMAGE_MANIFEST",
    ),
}


@pytest.mark.parametrize("what", ODD)
def test_a5_a_manifest_that_leads_elsewhere_or_nowhere_is_refused_on_the_ledger_and_opens_no_task(
    host: Host, what: str
) -> None:
    raw, code = ODD[what]
    engine = at_registry(host, raw)
    exit_code, error = launched(host)
    assert (exit_code, error["code"]) == (IMAGE_INTEGRITY, code)
    (refusal,) = refusals(host)
    assert (refusal.code, refusal.evidence["manifest_digest"]) == (code, str(Digest.of(raw)))
    assert not opened(host)
    assert len(engine.asked) == 1


def test_a_store_that_is_too_old_to_be_known_is_said_before_anything_is_pulled(host: Host) -> None:
    engine = at_registry(host, manifest())
    engine.version = "1.44"
    exit_code, error = launched(host)
    assert (exit_code, error["code"]) == (ENGINE_UNREACHABLE, "ENGINE_IMAGE_STORE")
    assert (engine.asked, refusals(host), opened(host)) == ([], [], False)


def test_podman_is_refused_before_anything_is_pulled_or_opened(
    host: Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = at_registry(host, manifest())
    podman = json.loads((Path(__file__).parents[1] / "info-podman-4.3.json").read_text())
    monkeypatch.setattr(ContainerdEngine, "info", lambda _: podman)
    exit_code, error = launched(host)
    assert (exit_code, error["code"]) == (SANDBOX_REFUSED, "SANDBOX_UNSUPPORTED")
    assert "is Podman" in error["cause"]
    assert (engine.asked, refusals(host), opened(host)) == ([], [], False)


def test_a_dry_run_pulls_nothing_into_this_store_either(host: Host) -> None:
    engine = at_registry(host, manifest())
    exit_code, error = launched(host, "--dry-run")
    assert (exit_code, error["code"]) == (ENGINE_UNREACHABLE, "IMAGE_UNAVAILABLE")
    assert (engine.asked, opened(host)) == ([], False)


def test_an_engine_that_switched_its_store_is_refused_until_it_has_the_image_there(host: Host) -> None:
    """A switch hides every image of the other store; a task that would miss its image is not opened."""
    engine = at_registry(host, manifest())
    assert launched(host) == (0, None)
    engine.status, engine.local, engine.served = (), {}, {}
    exit_code, error = launched(host)
    assert (exit_code, error["code"]) == (ENGINE_UNREACHABLE, "IMAGE_UNAVAILABLE")
    assert (refusals(host), opened(host, 1)) == ([], False)
    classic, image_id = Engine(), str(Digest.of(CONFIG))
    classic.images = {image_id: {"Id": image_id, "RepoDigests": [], "Config": {}}}
    host.engine = classic
    assert launched(host) == (0, None)
    first, second = (
        host.ledger().execution.get_task(TaskId(host.process, "node01", number)).opening for number in (0, 1)
    )
    assert first is not None
    assert second is not None
    assert (first.image_id, second.image_id) == (Digest.of(CONFIG), Digest.of(CONFIG))


def test_an_image_that_was_pruned_after_a_task_is_pulled_and_checked_again(host: Host) -> None:
    engine = at_registry(host, manifest())
    assert launched(host) == (0, None)
    engine.local.clear()
    assert launched(host) == (0, None)
    assert len(engine.asked) == 2
