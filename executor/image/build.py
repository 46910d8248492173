"""Build the learner image, or the chaincode's, so that equal sources give an equal image id.

1  find the sources, and the base image they start from, and whether that is the locked one
2  an image with the same source key is the image: nothing to build
3  the engine builds from an archive that holds sources and locked wheels, without network and without cache
4  the built image is saved and rewritten in its one form: no times, no order, no build history of the engine
5  the engine loads it under a tag of this build; the id must be the one that was computed
"""

import os
import subprocess
from contextlib import suppress
from http.client import CONFLICT
from pathlib import Path
from textwrap import shorten
from typing import IO, Any
from uuid import uuid4

from docker import DockerClient
from docker.errors import APIError

from executor.engine import asking, keeps_manifests
from executor.errors import EngineError, UsageError
from executor.image.archive import rewrite, save, scratch
from executor.image.context import LEARNER, Recipe, Sources
from executor.image.local import LocalImage, LocalImages, inspect
from executor.network import ROOT
from executor.output import Say
from protocol.digest import Digest
from protocol.errors import DigestError
from protocol.values import dataclass

NAME = LEARNER.name
LABEL = "attestree.source"
_STAGE = "attestree.stage"
_OLD = "1h"


@dataclass(frozen=True)
class Built:
    """An image of ours that the engine has."""

    image_id: Digest
    tag: str
    source: str
    size: int
    built: bool
    changed: tuple[str, ...]
    base: str
    """The lock that its base is as in; empty where it is as in none, and the id another than elsewhere."""

    def to_dict(self) -> dict[str, Any]:
        """Return what `executor image build --json` prints."""
        return {
            "image_id": str(self.image_id),
            "tag": self.tag,
            "source": self.source,
            "size": self.size,
            "built": self.built,
            "uncommitted": list(self.changed),
            "base": self.base or None,
        }


def build(
    client: DockerClient,
    say: Say,
    *,
    tag: str = f"{NAME}:latest",
    force: bool = False,
    root: Path = ROOT,
    recipe: Recipe = LEARNER,
    base: str = "",
    any_base: bool = True,
) -> Built:
    """Return the image of the sources under `root`, built if there is none, or if `force`.

    It starts from `base`, or from what the network's images do; if not `any_base`, only from a locked one.
    """
    keeps_manifests(client)  # an engine whose store is not known is refused before anything is built
    sources = Sources.find(root, recipe)
    say("sources: finding the Python base image")
    base = base or _ask_network("python-base")
    lock = _ask_network("base-lock", base)
    if not lock and not any_base:
        raise UsageError("IMAGE_BASE", f"{base} has other packages than are locked")
    with asking("look up the base image"):
        key = sources.key(client.images.get(base).attrs["RootFS"]["Layers"])
    image = None if force else _find_built(client, key)
    built = image is None
    if image is None:
        image = _build(client, say, sources, base, key, tag)
        _remember(client, key, image)
    else:
        _tag(client, image, tag)
    found = inspect(client, str(image.called)) or {}
    return Built(image.image_id, tag, key, int(found.get("Size", 0)), built, tuple(sources.changed()), lock)


def _tag(client: DockerClient, image: LocalImage, tag: str) -> None:
    repository, _, version = tag.rpartition(":")
    with asking("tag the image"):
        client.api.tag(str(image.called), repository, version)


def _find_built(client: DockerClient, key: str) -> LocalImage | None:
    """Find the image of an earlier build by what was noted then: its id, and what this engine calls it.

    Not by its label: whatever is made from the learner image, altered or not, inherits that.
    """
    try:
        noted = [Digest.parse(line) for line in _note(client, key).read_text().split()]
    except (OSError, DigestError):
        return None
    if not noted or inspect(client, str(noted[-1])) is None:
        return None
    return LocalImage(noted[0], noted[-1])


def _remember(client: DockerClient, key: str, image: LocalImage) -> None:
    """Note which image the sources gave; whoever cannot write here builds every time."""
    with suppress(OSError):
        note = _note(client, key)
        note.parent.mkdir(parents=True, exist_ok=True)
        part = note.with_suffix(f".{uuid4().hex}")
        part.write_text("".join(f"{digest}\n" for digest in dict.fromkeys((image.image_id, image.called))))
        part.rename(note)


def _note(client: DockerClient, key: str) -> Path:
    """Where network/lib/common.sh keeps what was built, too; by engine, where each has names of its own."""
    if keeps_manifests(client):
        with asking("describe itself"):
            key = f"{key}-{Digest.of(str(client.info().get('ID')).encode()).hex[:16]}"
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("ATTESTREE_CACHE") or Path(home, "attestree"), "images", key)


def _build(client: DockerClient, say: Say, sources: Sources, base: str, key: str, tag: str) -> LocalImage:  # noqa: PLR0917
    recipe = sources.recipe
    wheels = Path(_ask_network("wheels", recipe.wheels))
    stage = uuid4().hex
    try:
        arguments = {"BASE": base, "STAGE": stage}
        image_id = _run_dockerfile(client, say, sources.archive(wheels), arguments, key)
        try:
            return _fix(client, say, image_id, tag, f"{recipe.name}:build-{stage}")
        finally:
            with asking("remove the image as it was built"):
                client.images.remove(image_id)
    finally:
        _clear(client, stage)


def _clear(client: DockerClient, stage: str) -> None:
    """Remove the stage that this build left, and what killed builds left; running builds keep theirs."""
    with asking("remove what the build left"):
        for image in client.images.list(filters={"dangling": True, "label": f"{_STAGE}={stage}"}):
            client.images.remove(str(image.id))
        try:
            client.images.prune(filters={"dangling": True, "label": _STAGE, "until": _OLD})
        except APIError as error:
            if error.status_code != CONFLICT:  # another build prunes, and the engine has one do it at a time
                raise


def _run_dockerfile(
    client: DockerClient, say: Say, context: IO[bytes], arguments: dict[str, str], key: str
) -> str:
    """Have the engine build, and return the id of what came out."""
    said: list[str] = []
    image_id = ""
    with asking("build the image"):
        # Without cache: a layer of an earlier build would carry that build's chance into this one.
        for event in client.api.build(
            fileobj=context,
            custom_context=True,
            decode=True,
            nocache=True,
            rm=True,
            forcerm=True,
            network_mode="none",
            buildargs=arguments,
            labels={LABEL: key},
        ):
            if "error" in event:
                raise EngineError(
                    "IMAGE_BUILD",
                    f"the image did not build: {event['error']}: {''.join(said[-10:]).strip()}",
                )
            image_id = event.get("aux", {}).get("ID", image_id)
            said.append(event.get("stream", ""))
            if said[-1].startswith("Step "):
                say("build: " + shorten(said[-1], 100, placeholder=" …"))
    return image_id


def _fix(client: DockerClient, say: Say, built: str, tag: str, passing: str) -> LocalImage:
    """Replace what was built by its one form, which gets its tag once it is seen to be what was computed."""
    with scratch() as folder:
        saved, fixed = folder / "saved.tar", folder / "fixed.tar"
        say("build: saving")
        save(client, built, saved)
        say("build: fixing times and order")
        image_id = rewrite(saved, fixed, (passing,))
        saved.unlink()
        say("build: loading")
        with asking("load the image"), fixed.open("rb") as stream:
            client.images.load(stream)
    try:
        loaded = LocalImages(client).find(passing)
        if loaded is None or loaded.image_id != image_id:
            raise EngineError(
                "ENGINE_FAILED",
                f"the engine loaded {image_id} and has {loaded.image_id if loaded else 'nothing'}",
                case="answer",
            )
        _tag(client, loaded, tag)
    finally:
        with asking("remove the tag of this build"):
            client.images.remove(passing, force=True)
    return loaded


def _ask_network(*arguments: str) -> str:
    """Run network/images.sh, whose progress goes to stderr as ours does."""
    ran = subprocess.run(
        [str(ROOT / "network/images.sh"), *arguments], stdout=subprocess.PIPE, text=True, check=False
    )
    if ran.returncode != 0:
        raise EngineError(
            "IMAGE_BUILD",
            f"network/images.sh {' '.join(arguments)} exited with {ran.returncode}",
            case="script",
        )
    return ran.stdout.strip()
