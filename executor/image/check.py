"""Is the image at hand the image on the ledger? Resolve once to an id, compare, and run that id alone.

The ledger has two digests of every version: that of the manifest, which a registry serves, and the image id,
which is the digest of the configuration and with it of every layer. Tags decide nothing here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from docker import DockerClient
from docker.errors import APIError, ImageNotFound

from executor.engine import asking, keeps_manifests, misnamed
from executor.errors import EngineError, IntegrityError
from protocol.agreement.image import Image
from protocol.digest import Digest
from protocol.errors import RecordError

_UNAVAILABLE = "Bring the registry up, or load the image from a copy: what counts is its id on the ledger"


@dataclass(frozen=True)
class RegisteredImage:
    """A version of an image as the ledger has it."""

    name: str
    version: str
    repository: str
    manifest_digest: Digest
    image_id: Digest
    status: str

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> "RegisteredImage":
        """Read the record that the image chaincode returns."""
        try:
            image, status = Image.parse(**record["image"]), str(record["status"])
        except (KeyError, TypeError) as error:
            raise RecordError("RECORD_FIELDS", f"the record of an image is incomplete: {error!r}") from error
        return cls(image.name, image.version, image.repository, image.manifest_digest, image.image_id, status)

    @property
    def by_digest(self) -> str:
        """What an engine pulls: the repository and the digest of the manifest, no tag."""
        return f"{self.repository}@{self.manifest_digest}"

    @property
    def evidence(self) -> dict[str, str]:
        """What the ledger says, for the record of a refusal."""
        return {
            "image": f"{self.name}:{self.version}",
            "repository": self.repository,
            "manifest_digest": str(self.manifest_digest),
        }


def check_image(found: Digest, expected: Digest, evidence: Mapping[str, str] | None = None) -> None:
    """Return nothing if the image found is the one expected; raise with both otherwise."""
    if found != expected:
        raise IntegrityError(
            "IMAGE_MISMATCH",
            f"the image at hand is {found}, the ledger has {expected}",
            evidence={**(evidence or {}), "expected": str(expected), "found": str(found)},
        )


def obtain(
    client: DockerClient, registered: RegisteredImage, say: Callable[[str], None] | None = None
) -> str:
    """Return the id of the registered image, which the engine then has; raise if it cannot be had unaltered.

    An image that the engine knows by both digests is taken as it is. Otherwise it is pulled by the digest of
    its manifest. Where no registry serves it, a local image does if its id is the ledger's.
    """
    local = _local(client, str(registered.image_id))
    if local is not None and registered.by_digest in (local.get("RepoDigests") or ()):
        return str(registered.image_id)
    try:
        found = pull(client, registered, say)
    except EngineError as error:
        if error.code == "IMAGE_UNAVAILABLE" and local is not None:
            return str(registered.image_id)
        raise
    if found != registered.image_id and keeps_manifests(client):
        raise misnamed(client, f"{registered.by_digest} is {found} to it")
    check_image(found, registered.image_id, registered.evidence)
    return str(registered.image_id)


def pull(
    client: DockerClient, registered: RegisteredImage, say: Callable[[str], None] | None = None
) -> Digest:
    """Pull by the digest of the manifest and return the id of what came."""
    if say is not None:
        say(f"pulling {registered.by_digest}")
    try:
        with asking("pull the image"):
            for event in client.api.pull(
                registered.repository, tag=str(registered.manifest_digest), stream=True, decode=True
            ):
                if "error" in event:
                    raise _refused(registered, str(event["error"]))
    except EngineError as error:
        if isinstance(error.__cause__, APIError):
            raise _refused(registered, error.__cause__.explanation or str(error.__cause__)) from error
        raise
    pulled = _local(client, registered.by_digest)
    if pulled is None:
        raise _refused(registered, "the engine pulled it and does not have it")
    return Digest.parse(pulled["Id"])


def local_id(client: DockerClient, reference: str) -> Digest | None:
    """Return the id of what the engine has under an id, a tag or a digest; None if nothing."""
    found = _local(client, reference)
    return Digest.parse(found["Id"]) if found else None


def _local(client: DockerClient, reference: str) -> dict[str, Any] | None:
    try:
        with asking("look up an image"):
            found: dict[str, Any] = client.api.inspect_image(reference)  # type: ignore[no-untyped-call]
            return found
    except EngineError as error:
        if isinstance(error.__cause__, ImageNotFound):
            return None
        raise


def _refused(registered: RegisteredImage, said: str) -> EngineError | IntegrityError:
    """Tell bytes that are not what their digest says from bytes that are not to be had."""
    if "verification failed" in said:
        return IntegrityError(
            "IMAGE_MISMATCH",
            f"the registry serves other bytes than the ledger has: {said}",
            evidence={**registered.evidence, "expected": str(registered.image_id), "found": said[:200]},
        )
    return EngineError(
        "IMAGE_UNAVAILABLE", f"{registered.by_digest} could not be pulled: {said}", _UNAVAILABLE
    )
