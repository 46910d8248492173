"""Publish an image: push it, read back what the registry serves, and only then register it on the ledger.

1  the version is new on the ledger, or there with the same image: anything else is refused before a push
2  tag and push
3  read the manifest back from the registry; engine, registry and local image must agree
4  register both digests
"""

from importlib.metadata import version as package_version
from typing import Any

from docker import DockerClient

from executor.engine import asking
from executor.errors import EngineError, IntegrityError, UsageError
from executor.image.comparison import check_image
from executor.image.local import LocalImage, LocalImages
from executor.image.manifest import Platform
from executor.image.reference import Reference
from executor.image.registry import ImageRegistry, Served
from executor.ledger.chaincodes.images import Images
from executor.output import Say
from protocol.agreement.image import Image
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.images import ImageRecord
from protocol.values import dataclass

_ID_DIGITS = 12


@dataclass(frozen=True)
class Published:
    """A version that registry and ledger have; `transaction` registered it, None if it was there before."""

    record: ImageRecord
    served: Served
    transaction: str | None

    def to_dict(self) -> dict[str, Any]:
        """Return what `executor image publish --json` prints."""
        index = self.served.index
        return {
            **self.record.image.to_dict(),
            "status": self.record.status.value,
            "index_digest": str(index) if index else None,
            "registered": self.transaction is not None,
            "transaction": self.transaction,
        }


@dataclass(frozen=True)
class ImagePublication:
    """What is to be published, and where."""

    name: str
    version: str
    image_id: Digest
    registry: ImageRegistry
    description: str = ""

    @classmethod
    def of(
        cls, reference: Reference, image_id: Digest, registry: ImageRegistry, description: str = ""
    ) -> "ImagePublication":
        """Choose the version if none was named; every text must pass the ledger's rules before any push."""
        version = reference.version or default_version(image_id)
        made = cls(reference.name, version, image_id, registry, description)
        Image(made.name, made.version, image_id, image_id, made.repository, description)
        return made

    @property
    def repository(self) -> str:
        """Where the registry keeps the image."""
        return f"{self.registry.host}/{self.name}"


def find_local(client: DockerClient, reference: Reference, image: str = "") -> LocalImage:
    """Return the image to publish: the one named, or what carries the reference as its tag."""
    tags = (
        [image]
        if image
        else [f"{reference.name}:{reference.version or 'latest'}", f"{reference.name}:latest"]
    )
    images = LocalImages(client)
    for tag in tags:
        found = images.find(tag)
        if found is not None:
            return found
    raise UsageError(
        "IMAGE_NOT_LOCAL",
        f"the engine has no image {tags[0]}",
    )


def default_version(image_id: Digest) -> str:
    """Name a version after the package's and the image's id, so that a new build is a new version."""
    return f"{package_version('attestree')}-{image_id.hex[:_ID_DIGITS]}"


def publish(
    client: DockerClient, images: Images, wanted: ImagePublication, local: LocalImage, say: Say
) -> Published:
    """Push, compare, register; a second time it changes nothing."""
    check_image(local.image_id, wanted.image_id)
    # Every text is checked by the rules of the ledger before anything is pushed.
    Image(
        wanted.name, wanted.version, wanted.image_id, wanted.image_id, wanted.repository, wanted.description
    )
    present = _on_ledger(images, wanted)
    platform = platform_of(client, local)
    if present is not None:
        served = _already(wanted, present, platform)
        if served is not None:
            return Published(present, served, None)
    say(f"pushing {wanted.repository}:{wanted.version}")
    pushed = _push(client, wanted, local)
    say("reading the manifest back from the registry")
    served = _read_back(wanted, pushed, platform)
    if present is not None:
        _same_manifest(wanted, present, served.image)
        return Published(present, served, None)
    say("registering on the ledger")
    return _register(images, wanted, served)


def adopt(images: Images, wanted: ImagePublication, served: Served, say: Say) -> Published:
    """Register an image that the registry has already.

    What is registered is the manifest for this platform; the digest of an index goes into the description.
    """
    present = _on_ledger(images, wanted)
    if present is not None:
        _same_manifest(wanted, present, served.image)
        return Published(present, served, None)
    say("registering on the ledger")
    return _register(images, wanted, served)


def served_here(client: DockerClient, registry: ImageRegistry, name: str, pushed: Digest) -> Served:
    """Find the image that a digest leads to on the engine's own platform."""
    with asking("say its platform"):
        about = client.version()
    served = registry.served(name, str(pushed), Platform(about["Os"], about["Arch"]))
    if served is None:
        raise UsageError(
            "IMAGE_NOT_PUSHED",
            f"{registry.host}/{name} has no {pushed}",
        )
    return served


def _register(images: Images, wanted: ImagePublication, served: Served) -> Published:
    description = wanted.description
    if served.index is not None:
        description = f"{description} (from the index {served.index})".strip()
    try:
        submitted = images.register(
            wanted.name, wanted.version, served.image, wanted.image_id, wanted.repository, description
        )
    except StateError as error:
        # Somebody who publishes the same image just now may have been first: one registration is enough.
        present = _on_ledger(images, wanted) if error.code == "IMAGE_EXISTS" else None
        if present is None:
            raise
        _same_manifest(wanted, present, served.image)
        return Published(present, served, None)
    return Published(submitted.answer, served, submitted.receipt.tx_id)


def platform_of(client: DockerClient, image: LocalImage) -> Platform:
    """Read what a local image is made for."""
    with asking("look up an image"):
        found = client.images.get(str(image.called)).attrs
    return Platform(found["Os"], found["Architecture"], found.get("Variant") or "")


def _on_ledger(images: Images, wanted: ImagePublication) -> ImageRecord | None:
    """Return the record of the version, which must be of the same image, or None if it is new."""
    try:
        record = images.get(wanted.name, wanted.version)
    except StateError as error:
        if error.code == "IMAGE_UNKNOWN":
            return None
        raise
    registered = record.image
    if registered.image_id != wanted.image_id:
        raise StateError(
            "IMAGE_EXISTS",
            f"{wanted.name} {wanted.version} on the ledger is {registered.image_id}, not {wanted.image_id}",
        )
    if registered.repository != wanted.repository:
        raise StateError(
            "IMAGE_EXISTS", f"{wanted.name} {wanted.version} is on the ledger in {registered.repository}"
        )
    return record


def _already(wanted: ImagePublication, record: ImageRecord, platform: Platform) -> Served | None:
    """Return what the registry serves if it serves what the ledger says."""
    digest = str(record.image.manifest_digest)
    served = wanted.registry.served(wanted.name, digest, platform)
    if served is not None:
        check_image(served.image_id, wanted.image_id, {"manifest_digest": digest})
    return served


def _push(client: DockerClient, wanted: ImagePublication, local: LocalImage) -> Digest:
    """Tag and push, and return the digest that the engine says the manifest has.

    An engine that calls images by their manifests pushes what it has, and says no more.
    """
    digest = "" if local.called == local.image_id else str(local.called)
    with asking("push the image"):
        client.api.tag(str(local.called), wanted.repository, wanted.version)
        for event in client.api.push(wanted.repository, tag=wanted.version, stream=True, decode=True):
            if "error" in event:
                raise EngineError(
                    "IMAGE_PUSH",
                    f"{wanted.repository}:{wanted.version} was not pushed: {event['error']}",
                )
            digest = event.get("aux", {}).get("Digest", digest)
    if not digest:
        raise EngineError("IMAGE_PUSH", f"{wanted.repository}:{wanted.version} was pushed without its digest")
    return Digest.parse(digest)


def _read_back(wanted: ImagePublication, pushed: Digest, platform: Platform) -> Served:
    """Ask the registry what it serves: it must be what the engine pushed, and lead to the local image."""
    served = wanted.registry.served(wanted.name, wanted.version, platform)
    if served is None or served.manifest != pushed:
        found = "nothing" if served is None else str(served.manifest)
        raise IntegrityError(
            "IMAGE_MISMATCH",
            f"the engine pushed {pushed} and the registry serves {found}",
            {"expected": str(pushed), "found": found},
            case="pushed",
        )
    check_image(served.image_id, wanted.image_id, {"manifest_digest": str(served.manifest)})
    return served


def _same_manifest(wanted: ImagePublication, record: ImageRecord, pushed: Digest) -> None:
    registered = record.image.manifest_digest
    if pushed != registered:
        raise StateError(
            "IMAGE_EXISTS",
            f"{wanted.name} {wanted.version} is on the ledger with manifest {registered}, which the registry "
            f"has lost; the same image pushed again has manifest {pushed}",
        )
