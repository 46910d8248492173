"""Publishing where engine or registry are not what they were a moment ago: nothing is registered halfway."""

import json
from types import SimpleNamespace
from typing import Any

import pytest
from docker.errors import ImageNotFound
from support.memory.containerd import CONFIG, DOCKER, OCI, OTHER, ContainerdEngine, index, manifest

from executor.errors import EngineError, IntegrityError, UsageError
from executor.exits import ENGINE_UNREACHABLE, IMAGE_INTEGRITY, exit_code
from executor.image.publish import ImagePublication, Published, find_local, publish
from executor.image.reference import Reference
from executor.image.registry import ImageRegistry
from protocol.digest import Digest
from protocol.errors import AttestreeError, StateError

REFERENCE = Reference.parse("bank/learner:1")
Table = dict[str, tuple[int, bytes]]


class Ledger:
    """A ledger without the version; it notes what is registered."""

    def __init__(self) -> None:
        self.registered: list[tuple[Any, ...]] = []

    def get(self, *_: str) -> Any:
        raise StateError("IMAGE_UNKNOWN", "no such version")

    def register(self, *given: Any) -> Any:
        self.registered.append(given)
        return SimpleNamespace(answer="the record", receipt=SimpleNamespace(tx_id="tx"))


class PushingEngine(ContainerdEngine):
    """One that pushes, and says which digest it pushed; what it no longer has it cannot tag."""

    @property
    def api(self) -> Any:
        return SimpleNamespace(**vars(super().api), push=self.push)

    @property
    def images(self) -> Any:
        def get(name: str) -> Any:
            attributes = {"Os": "linux", "Architecture": "amd64"}
            return SimpleNamespace(attrs=attributes, save=lambda **_: self.save(name))

        return SimpleNamespace(get=get)

    def tag(self, *words: str) -> None:
        if not any(str(Digest.of(raw)) == words[0] for raw in self.local.values()):
            raise ImageNotFound("no such image")
        super().tag(*words)
        self.pushes = words[0]

    def push(self, repository: str, tag: str, **_: object) -> list[dict[str, Any]]:
        self.asked.append(f"push {repository}:{tag}")
        return [{"aux": {"Digest": self.pushes}}]


def attempt(
    engine: Any, registry: ImageRegistry, spoil: Any = lambda _: None
) -> tuple[Published | AttestreeError, Ledger]:
    """Publish what the engine has; `spoil` steps in before a step."""
    ledger: Any = Ledger()
    found = find_local(engine, REFERENCE)
    wanted = ImagePublication.of(REFERENCE, found.image_id, registry)
    try:
        return publish(engine, ledger, wanted, found, spoil), ledger
    except AttestreeError as error:
        return error, ledger


def path(reference: object) -> str:
    return f"/v2/bank/learner/manifests/{reference}"


@pytest.mark.parametrize("kind", [DOCKER, OCI])
def test_what_the_registry_serves_again_is_registered_whatever_its_media_type(
    registry: ImageRegistry, table: Table, kind: str
) -> None:
    raw = manifest(kind=kind)
    table[path("1")] = (200, raw)
    made, ledger = attempt(PushingEngine(local={"bank/learner:1": raw}), registry)
    assert isinstance(made, Published)
    where = f"{registry.host}/bank/learner"
    assert ledger.registered == [("bank/learner", "1", Digest.of(raw), Digest.of(CONFIG), where, "")]


@pytest.mark.parametrize(
    ("served", "code"),
    [
        (b"", "IMAGE_MISMATCH"),
        (manifest(OTHER), "IMAGE_MISMATCH"),
        (manifest(kind=DOCKER), "IMAGE_MISMATCH"),
        (index(manifest()), "IMAGE_MANIFEST"),
        (manifest(kind="application/vnd.docker.distribution.manifest.v1+prettyjws"), "IMAGE_MANIFEST"),
        (b"<html>sign in</html>", "IMAGE_MANIFEST"),
    ],
    ids=["nothing", "another image", "another manifest", "an index", "schema 1", "a page"],
)
def test_a2_a_registry_that_serves_something_else_than_was_pushed_has_nothing_registered(
    registry: ImageRegistry, table: Table, served: bytes, code: str
) -> None:
    table[path("1")] = (200 if served else 404, served)
    error, ledger = attempt(PushingEngine(local={"bank/learner:1": manifest()}), registry)
    assert isinstance(error, IntegrityError)
    assert (error.code, exit_code(error)) == (code, IMAGE_INTEGRITY)
    assert ledger.registered == []


@pytest.mark.parametrize("switched", [False, True])
def test_an_image_that_was_pruned_or_is_in_another_store_now_is_neither_pushed_nor_registered(
    registry: ImageRegistry, switched: bool
) -> None:
    engine = PushingEngine(local={"bank/learner:1": manifest()})

    def spoil(said: str) -> None:
        if said.startswith("pushing"):
            engine.local.clear()
            engine.status = () if switched else engine.status

    error, ledger = attempt(engine, registry, spoil)
    assert isinstance(error, EngineError)
    assert (error.code, exit_code(error)) == ("ENGINE_FAILED", ENGINE_UNREACHABLE)
    assert (engine.asked, ledger.registered) == ([], [])
    with pytest.raises(UsageError, match="IMAGE_NOT_LOCAL"):
        find_local(engine, REFERENCE)  # type: ignore[arg-type]


def test_what_an_engine_of_an_unknown_store_has_is_not_even_looked_for() -> None:
    engine: Any = PushingEngine(local={"bank/learner:1": manifest()}, version="1.44")
    with pytest.raises(EngineError) as caught:
        find_local(engine, REFERENCE)
    assert (caught.value.code, engine.asked) == ("ENGINE_IMAGE_STORE", [])


def test_a5_a_push_that_made_an_index_is_registered_as_the_one_image_in_it(
    registry: ImageRegistry, table: Table
) -> None:
    """Builders put an image and notes on its making into an index, which containerd's store then pushes."""
    raw, platform = manifest(), {"os": "linux", "architecture": "amd64"}
    listed = {"manifests": [{"digest": str(Digest.of(raw)), "platform": platform}]}
    packed = json.dumps(json.loads(index()) | listed).encode()
    table |= {path("1"): (200, packed), path(Digest.of(raw)): (200, raw)}
    made, ledger = attempt(PushingEngine(local={"bank/learner:1": packed}), registry)
    assert isinstance(made, Published)
    ((*_, registered, image_id, _where, words),) = ledger.registered
    assert (registered, image_id) == (Digest.of(raw), Digest.of(CONFIG))
    assert str(Digest.of(packed)) in words
