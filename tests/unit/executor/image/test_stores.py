"""containerd's image store: an image runs by its manifest only if that leads to the ledger's image id."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from support.memory.containerd import CONFIG, DOCKER, OCI, OTHER, ContainerdEngine, index, manifest

from executor.engine import keeps_manifests
from executor.errors import EngineError, IntegrityError
from executor.exits import ENGINE_UNREACHABLE, IMAGE_INTEGRITY, exit_code
from executor.image import build as build_module
from executor.image.check import check_local, obtain
from executor.image.local import LocalImage, LocalImages
from executor.image.publish import ImagePublication, publish
from executor.image.reference import Reference
from executor.image.registry import ImageRegistry
from protocol.agreement.image import Image
from protocol.digest import Digest

NAME = "127.0.0.1:1/attestree/learner"


def registered(raw: bytes, config: bytes = CONFIG) -> Image:
    return Image("attestree/learner", "1", Digest.of(raw), Digest.of(config), NAME, "")


def serving(*manifests: bytes) -> Any:
    return ContainerdEngine(served={str(Digest.of(raw)): raw for raw in manifests})


@pytest.mark.parametrize("kind", [DOCKER, OCI])
def test_the_image_of_the_ledger_runs_by_its_manifest_and_is_recorded_by_its_id(kind: str) -> None:
    raw = manifest(kind=kind)
    engine = serving(raw)
    assert obtain(engine, registered(raw)) == LocalImage(Digest.of(CONFIG), Digest.of(raw))
    assert engine.asked == [f"pull {NAME}@{Digest.of(raw)}"]
    # A second time it is there, and is checked again all the same.
    assert obtain(engine, registered(raw)).called == Digest.of(raw)
    assert len(engine.asked) == 1


def test_a1_a_manifest_whose_configuration_is_another_s_is_refused_before_and_after_the_pull() -> None:
    raw = manifest(OTHER)
    engine = serving(raw)
    for _ in range(2):  # the second time the engine has it already, and nothing is skipped
        with pytest.raises(IntegrityError) as caught:
            obtain(engine, registered(raw))
        assert (caught.value.code, exit_code(caught.value)) == ("IMAGE_MISMATCH", IMAGE_INTEGRITY)
        assert caught.value.evidence["expected"] == str(Digest.of(CONFIG))
        assert caught.value.evidence["found"] == str(Digest.of(OTHER))
    with pytest.raises(IntegrityError, match="IMAGE_MISMATCH"):
        check_local(engine, registered(raw))


def test_a5_an_index_instead_of_a_manifest_is_refused() -> None:
    raw = index(manifest())
    with pytest.raises(IntegrityError) as caught:
        obtain(serving(raw), registered(raw))
    assert (caught.value.code, exit_code(caught.value)) == ("IMAGE_MANIFEST", IMAGE_INTEGRITY)
    assert caught.value.evidence["image"] == "attestree/learner:1"


def test_a4_equal_digests_are_refused_before_anything_is_asked_for() -> None:
    raw = manifest()
    engine = serving(raw)
    both = Image("attestree/learner", "1", Digest.of(raw), Digest.of(raw), NAME, "")
    with pytest.raises(IntegrityError, match="IMAGE_DIGESTS"):
        obtain(engine, both)
    assert engine.asked == []


@pytest.mark.parametrize("spelling", ["Config", "CONFIG", "config"])
def test_a1_a_second_configuration_in_another_spelling_is_refused(spelling: str) -> None:
    """Go reads names without regard to case, and the last one counts: the engine would run the other."""
    honest, other = (json.dumps({"digest": str(Digest.of(config))}) for config in (CONFIG, OTHER))
    fields = f'"mediaType":"{OCI}","config":{honest},"{spelling}":{other},"layers":[]'
    raw = f"{{{fields}}}".encode()
    with pytest.raises(IntegrityError) as caught:
        obtain(serving(raw), registered(raw))
    assert exit_code(caught.value) == IMAGE_INTEGRITY


@pytest.mark.parametrize("kind", ["application/vnd.docker.distribution.manifest.v1+json", "text/html"])
def test_a8_a_manifest_of_another_media_type_is_refused(kind: str) -> None:
    raw = manifest(kind=kind)
    with pytest.raises(IntegrityError) as caught:
        obtain(serving(raw), registered(raw))
    assert caught.value.code == "IMAGE_MANIFEST"


def test_a6_a_copy_that_was_loaded_serves_where_the_registry_is_away_and_another_image_does_not() -> None:
    copy = manifest(kind=DOCKER)
    engine: Any = ContainerdEngine(
        local={"attestree/learner:2": manifest(OTHER), "attestree/learner:1": copy}
    )
    assert obtain(engine, registered(manifest())) == LocalImage(Digest.of(CONFIG), Digest.of(copy))
    assert check_local(engine, registered(manifest())).called == Digest.of(copy)
    tagged: Any = ContainerdEngine(local={"attestree/learner:1": manifest(OTHER)})
    with pytest.raises(EngineError) as caught:
        obtain(tagged, registered(manifest()))
    assert (caught.value.code, exit_code(caught.value)) == ("IMAGE_UNAVAILABLE", ENGINE_UNREACHABLE)


def test_an_image_that_was_pruned_meanwhile_is_pulled_again_or_said_to_be_gone() -> None:
    raw = manifest()
    engine = serving(raw)
    obtain(engine, registered(raw))
    engine.local.clear()
    assert obtain(engine, registered(raw)).called == Digest.of(raw)
    engine.local.clear()
    engine.served.clear()
    with pytest.raises(EngineError, match="IMAGE_UNAVAILABLE"):
        obtain(engine, registered(raw))


def test_an_engine_that_switches_its_store_is_asked_again_and_believed_in_neither() -> None:
    """After a switch the other store has the image under another name, or not at all."""
    raw = manifest()
    engine = serving(raw)
    assert obtain(engine, registered(raw)).called == Digest.of(raw)
    engine.status, engine.local = (), {}
    engine.served.clear()
    with pytest.raises(EngineError, match="IMAGE_UNAVAILABLE"):
        obtain(engine, registered(raw))


def test_an_engine_whose_store_is_too_old_to_be_known_is_refused_before_it_builds_pulls_or_pushes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def begun(*_: str) -> str:
        raise AssertionError("something is made for a build")

    monkeypatch.setattr(build_module, "_ask_network", begun)
    raw = manifest()
    engine = serving(raw)
    engine.version = "1.44"
    for attempt in (
        lambda: build_module.build(engine, lambda _: None),
        lambda: build_module.build(engine, lambda _: None, force=True),
        lambda: obtain(engine, registered(raw)),
        lambda: LocalImages(engine).find("attestree/learner:1"),
        lambda: keeps_manifests(engine),
    ):
        with pytest.raises(EngineError) as caught:
            attempt()
        assert (caught.value.code, exit_code(caught.value)) == ("ENGINE_IMAGE_STORE", ENGINE_UNREACHABLE)
    assert engine.asked == []


def test_a_local_image_is_found_by_tag_and_named_by_its_configuration() -> None:
    engine: Any = ContainerdEngine(local={"bank/learner:1": manifest(OTHER)})
    images = LocalImages(engine)
    assert images.find("bank/learner:1") == LocalImage(Digest.of(OTHER), Digest.of(manifest(OTHER)))
    assert images.find("bank/learner:2") is None


def test_another_image_than_the_one_to_be_published_is_not_pushed() -> None:
    engine: Any = ContainerdEngine(local={"bank/learner:1": manifest(OTHER)})
    wanted = ImagePublication.of(
        Reference.parse("bank/learner:1"), Digest.of(CONFIG), ImageRegistry("127.0.0.1:1")
    )
    found = LocalImages(engine).find("bank/learner:1")
    assert found is not None
    with pytest.raises(IntegrityError, match="IMAGE_MISMATCH"):
        publish(engine, SimpleNamespace(), wanted, found, lambda _: None)  # type: ignore[arg-type]
    assert engine.asked == []
