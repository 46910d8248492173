"""Is the image at hand the image on the ledger? Resolve once to an id, compare, and run that id alone.

The ledger has two digests of every version: that of the manifest, which a registry serves, and the image id,
which is the digest of the configuration and with it of every layer. Tags decide nothing here, and neither
does what an engine or a registry says of itself: where a pull fails, the bytes served are fetched and hashed.
"""

from collections.abc import Callable, Mapping
from typing import Any

from docker import DockerClient
from docker.errors import APIError

from executor.engine import asking, describe, keeps_manifests
from executor.errors import EngineError, IntegrityError
from executor.image.comparison import evidence_of
from executor.image.local import LocalImage, inspect
from executor.image.reference import split_repository
from executor.image.stores import registry_of, store_of
from executor.network import Network
from protocol.agreement.image import Image


def obtain(
    client: DockerClient,
    registered: Image,
    say: Callable[[str], None] | None = None,
    network: Network | None = None,
    described: Mapping[str, Any] | None = None,
) -> LocalImage:
    """Return the registered image, which the engine then has; raise if it cannot be obtained.

    An image that the engine knows by both digests is taken as it is. Otherwise it is pulled by the digest of
    its manifest. Where no registry serves it, a local image does if its id is the ledger's. The engine is
    asked about itself once, unless what it said for the plan that is being made is given.
    """
    described = describe(client) if described is None else described
    check_kinds(client, registered, described)
    store = store_of(client, registered, network, described)
    found = store.pulled()
    if found is not None:
        return found
    try:
        pull(client, registered, say)
        found = store.pulled()
        if found is None:
            raise _refused(registered, "the engine pulled it and does not have it")
    except EngineError as error:
        if error.code != "IMAGE_UNAVAILABLE":
            raise
        check_served(registered, network)
        found = store.copy()
        if found is None:
            raise
    return found


def check_local(
    client: DockerClient,
    registered: Image,
    network: Network | None = None,
    described: Mapping[str, Any] | None = None,
) -> LocalImage:
    """Return the registered image if the engine has it already; nothing is pulled."""
    described = describe(client) if described is None else described
    check_kinds(client, registered, described)
    store = store_of(client, registered, network, described)
    found = store.pulled() or store.copy()
    if found is None:
        raise EngineError(
            "IMAGE_UNAVAILABLE", f"the engine does not have {registered.by_digest} yet", case="dry run"
        )
    return found


def check_kinds(client: DockerClient, registered: Image, described: Mapping[str, Any]) -> None:
    """Refuse a version whose two digests cannot be what the ledger has them as: equal, or swapped."""
    if registered.manifest_digest == registered.image_id:
        raise _misregistered(registered, "its manifest digest and its image id are one and the same")
    if keeps_manifests(client, described):
        return  # there an image is called by the digest of its manifest
    if inspect(client, str(registered.manifest_digest)) is not None:
        raise _misregistered(registered, "its manifest digest is the id of an image", swapped=True)


def check_served(registered: Image, network: Network | None) -> None:
    """Return unless the registry proves the ledger's record, or itself, wrong; one that is away does not."""
    _, name = split_repository(registered.repository)
    registry = registry_of(registered, network)
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


def pull(client: DockerClient, registered: Image, say: Callable[[str], None] | None = None) -> None:
    """Pull by the digest of the manifest; what came is still to be looked at."""
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


def _refused(registered: Image, said: str) -> EngineError:
    """Say that an image could not be pulled; why, in the engine's words, is for people alone."""
    return EngineError("IMAGE_UNAVAILABLE", f"{registered.by_digest} could not be pulled: {said}")
