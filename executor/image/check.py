"""Is the image at hand the image on the ledger? Resolve once to an id, compare, and run that id alone.

The ledger has two digests of every version: that of the manifest, which a registry serves, and the image id,
which is the digest of the configuration and with it of every layer. Tags decide nothing here, and neither
does what an engine or a registry says of itself: where a pull fails, the bytes served are fetched and hashed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from docker import DockerClient
from docker.errors import APIError, ImageNotFound

from executor.engine import asking, keeps_manifests, misnamed
from executor.errors import EngineError, IntegrityError
from executor.image.reference import split_repository
from executor.image.registry import ImageRegistry
from executor.network import Network
from protocol.agreement.image import Image
from protocol.digest import Digest


def evidence_of(image: Image) -> dict[str, str]:
    """Return what the ledger says of an image, for the record of a refusal."""
    return {
        "image": f"{image.name}:{image.version}",
        "repository": image.repository,
        "manifest_digest": str(image.manifest_digest),
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
    client: DockerClient,
    registered: Image,
    say: Callable[[str], None] | None = None,
    network: Network | None = None,
) -> str:
    """Return the id of the registered image, which the engine then has; raise if it cannot be obtained.

    An image that the engine knows by both digests is taken as it is. Otherwise it is pulled by the digest of
    its manifest. Where no registry serves it, a local image does if its id is the ledger's.
    """
    check_kinds(client, registered)
    local = _local(client, str(registered.image_id))
    if local is not None and registered.by_digest in (local.get("RepoDigests") or ()):
        return str(registered.image_id)
    try:
        found = pull(client, registered, say)
    except EngineError as error:
        if error.code != "IMAGE_UNAVAILABLE":
            raise
        check_served(registered, network)
        if local is not None:
            return str(registered.image_id)
        raise
    if found != registered.image_id and keeps_manifests(client):
        raise misnamed(client, f"{registered.by_digest} is {found} to it")
    check_image(found, registered.image_id, evidence_of(registered))
    return str(registered.image_id)


def check_local(client: DockerClient, registered: Image) -> None:
    """Return if the engine has the registered image already; nothing is pulled, and no registry asked."""
    check_kinds(client, registered)
    if _local(client, str(registered.image_id)) is None:
        raise EngineError(
            "IMAGE_UNAVAILABLE", f"the engine does not have {registered.by_digest} yet", case="dry run"
        )


def check_kinds(client: DockerClient, registered: Image) -> None:
    """Refuse a version whose two digests cannot be what the ledger has them as: equal, or swapped."""
    if registered.manifest_digest == registered.image_id:
        raise _misregistered(registered, "its manifest digest and its image id are one and the same")
    if _local(client, str(registered.manifest_digest)) is not None and not keeps_manifests(client):
        raise _misregistered(registered, "its manifest digest is the id of an image", swapped=True)


def check_served(registered: Image, network: Network | None) -> None:
    """Return unless the registry proves the ledger's record, or itself, wrong; one that is away does not."""
    host, name = split_repository(registered.repository)
    registry = ImageRegistry(host) if network is None else ImageRegistry.of_repository(host, network)
    try:
        registry.manifest(name, str(registered.manifest_digest))
    except EngineError:
        return
    except IntegrityError as error:
        raise IntegrityError(
            error.code, error.cause, {**evidence_of(registered), **error.evidence}
        ) from error
    try:
        swapped = registry.manifest(name, str(registered.image_id)) is not None
    except (EngineError, IntegrityError):
        return  # a configuration under its own digest is no manifest, and proves nothing
    if swapped:
        raise _misregistered(registered, "its image id is the digest of a manifest", swapped=True)


def _misregistered(registered: Image, why: str, *, swapped: bool = False) -> IntegrityError:
    return IntegrityError(
        "IMAGE_DIGESTS",
        f"{registered.name}:{registered.version} was registered wrongly: {why}",
        {**evidence_of(registered), "image_id": str(registered.image_id), "found": why},
        case="swapped" if swapped else "",
    )


def pull(client: DockerClient, registered: Image, say: Callable[[str], None] | None = None) -> Digest:
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


def _refused(registered: Image, said: str) -> EngineError:
    """Say that an image could not be pulled; why, in the engine's words, is for people alone."""
    return EngineError("IMAGE_UNAVAILABLE", f"{registered.by_digest} could not be pulled: {said}")
