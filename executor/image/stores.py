"""The registered image in an engine's store, classic or containerd's, under the engine's own name for it.

The classic store calls an image by its id, which is compared with the ledger's. containerd's store calls it
by the digest of its manifest, and there

1  the engine has the image under the ledger's manifest digest, after a pull by that or before
2  the manifest's bytes, from the registry or from the engine, have that digest
3  they are one image's manifest, and its configuration is the ledger's image id
4  the container is created by the manifest's digest, for this pair of digests alone

A copy that was loaded from a file has a manifest of its own there; its bytes are checked in the same way.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from docker import DockerClient

from executor.engine import asking, keeps_manifests
from executor.errors import EngineError, IntegrityError
from executor.image.comparison import check_image, evidence_of
from executor.image.local import LocalImage, inspect, saved
from executor.image.manifest import Manifest
from executor.image.reference import split_repository
from executor.image.registry import ImageRegistry
from executor.network import Network
from protocol.agreement.image import Image
from protocol.digest import Digest
from protocol.values import dataclass


class Store(Protocol):
    """Where an engine keeps images, asked about one registered image."""

    def pulled(self) -> LocalImage | None:
        """Return what is there under the ledger's manifest digest, once it is the ledger's image."""

    def copy(self) -> LocalImage | None:
        """Return a copy that came from elsewhere than the registry, if its id is the ledger's."""


def store_of(
    client: DockerClient,
    registered: Image,
    network: Network | None,
    described: Mapping[str, Any] | None = None,
) -> Store:
    """Choose by what the engine says of its storage."""
    if not keeps_manifests(client, described):
        return ClassicStore(client, registered)
    return ManifestStore(client, registered, registry_of(registered, network))


def registry_of(registered: Image, network: Network | None) -> ImageRegistry:
    """Return the registry that a registered image is in."""
    host, _ = split_repository(registered.repository)
    return ImageRegistry(host) if network is None else ImageRegistry.of_repository(host, network)


@dataclass(frozen=True)
class ClassicStore:
    """Images by their ids."""

    client: DockerClient
    registered: Image

    def pulled(self) -> LocalImage | None:
        """Compare what the engine has under the ledger's manifest digest by its id."""
        found = inspect(self.client, self.registered.by_digest)
        if found is None:
            return None
        check_image(Digest.parse(found["Id"]), self.registered.image_id, evidence_of(self.registered))
        return self._by_id(found)

    def copy(self) -> LocalImage | None:
        """Take any image with the ledger's id, whatever its tags."""
        found = inspect(self.client, str(self.registered.image_id))
        return None if found is None else self._by_id(found)

    def _by_id(self, found: Mapping[str, Any]) -> LocalImage:
        return LocalImage(self.registered.image_id, self.registered.image_id, found.get("Config") or {})


@dataclass(frozen=True)
class ManifestStore:
    """Images by the digests of their manifests: containerd's."""

    client: DockerClient
    registered: Image
    registry: ImageRegistry

    def pulled(self) -> LocalImage | None:
        """Follow the ledger's manifest digest through the manifest's bytes to the configuration."""
        digest = self.registered.manifest_digest
        found = inspect(self.client, self.registered.by_digest) or inspect(self.client, str(digest))
        if found is None:
            return None
        check_image(Digest.parse(found["Id"]), digest, evidence_of(self.registered))
        self._check_configuration(self._served() or given_back(self.client, digest))
        return LocalImage(self.registered.image_id, digest, found.get("Config") or {})

    def copy(self) -> LocalImage | None:
        """Look at the images of the registered name; each is read and hashed."""
        for called in self._named_alike():
            try:
                manifest = given_back(self.client, called)
            except (EngineError, IntegrityError):
                continue  # one that cannot be read is not the registered one, nor does it hide that
            if manifest.config == self.registered.image_id:
                return LocalImage(self.registered.image_id, called)
        return None

    def _served(self) -> Manifest | None:
        """Ask the registry; None where it is away, or serves other bytes: the engine has its own."""
        _, name = split_repository(self.registered.repository)
        try:
            return self.registry.manifest(name, str(self.registered.manifest_digest))
        except EngineError:
            return None
        except IntegrityError as error:
            if error.code == "IMAGE_MISMATCH":
                return None
            raise IntegrityError(error.code, error.cause, self._evidence(error.evidence)) from error

    def _check_configuration(self, manifest: Manifest) -> None:
        if manifest.config is None:
            raise IntegrityError(
                "IMAGE_MANIFEST",
                f"{manifest.digest} is an index of images, and the engine would choose which of them runs",
                self._evidence({"found": "an index"}),
                case="index",
            )
        check_image(manifest.config, self.registered.image_id, evidence_of(self.registered))

    def _evidence(self, more: dict[str, str]) -> dict[str, str]:
        return {**evidence_of(self.registered), **more}

    def _named_alike(self) -> list[Digest]:
        names = (self.registered.name, self.registered.repository)
        with asking("list images"):
            listed = [found["Id"] for name in names for found in self.client.api.images(name)]
        return list(dict.fromkeys(Digest.parse(found) for found in listed))


def given_back(client: DockerClient, called: Digest) -> Manifest:
    """Read the manifest that the engine keeps under a digest; its bytes must have that digest."""
    with saved(client, called) as image:
        raw = image.blob(called)
    check_image(Digest.of(raw), called)
    return Manifest.parse(raw)
