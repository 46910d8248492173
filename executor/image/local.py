"""Which image the engine has under a name, whichever store it keeps images in.

The classic store calls an image by its id, the digest of the configuration. containerd's store, which newer
engines use unless told otherwise, calls it by the digest of its manifest; the id is then read from the bytes
that the engine gives back, which are hashed here. A container is created by the engine's own name for the
image, and recorded by the id.
"""

import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import Any

from docker import DockerClient
from docker.errors import ImageNotFound

from executor.engine import asking, keeps_manifests
from executor.errors import EngineError
from executor.image.archive import SavedImage, save, scratch
from protocol.agreement.image import Image
from protocol.digest import Digest
from protocol.values import dataclass


@dataclass(frozen=True)
class LocalImage:
    """An image that the engine has: its id, the configuration's digest, and what this engine calls it."""

    image_id: Digest
    called: Digest
    configured: Mapping[str, Any] | None = field(default=None, compare=False)
    """What the engine said of its configuration when it was compared; None if it was not asked."""


class LocalImages:
    """The engine's images by any of their names; what it gave back of one is read once."""

    def __init__(self, client: DockerClient) -> None:
        self._client = client
        self._by_manifest = keeps_manifests(client)
        self._ids: dict[Digest, Digest] = {}

    def name_of(self, registered: Image) -> Digest:
        """Return what this engine calls an image that it pulled as it is registered."""
        return registered.manifest_digest if self._by_manifest else registered.image_id

    def find(self, reference: str) -> LocalImage | None:
        """Return what the engine has under an id, a tag or a digest; None if nothing."""
        found = inspect(self._client, reference)
        if found is None:
            return None
        called = Digest.parse(found["Id"])
        return LocalImage(self._id_of(called) if self._by_manifest else called, called)

    def _id_of(self, called: Digest) -> Digest:
        if called not in self._ids:
            with saved(self._client, called) as image:
                self._ids[called] = image.image_id
        return self._ids[called]


def inspect(client: DockerClient, reference: str) -> dict[str, Any] | None:
    """Return what the engine says of an image; None if it has none under that name."""
    try:
        with asking("look up an image"):
            found: dict[str, Any] = client.api.inspect_image(reference)  # type: ignore[no-untyped-call]
            return found
    except EngineError as error:
        if isinstance(error.__cause__, ImageNotFound):
            return None
        raise


@contextmanager
def saved(client: DockerClient, called: Digest) -> Iterator[SavedImage]:
    """Have the engine give an image back, and read it."""
    with scratch() as folder:
        path = folder / "saved.tar"
        save(client, str(called), path)
        with tarfile.open(path, "r:") as archive:
            yield SavedImage.read(archive)
