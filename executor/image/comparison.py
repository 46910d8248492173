"""The comparison that decides whether an image is run: equal digests, or a refusal with both as evidence."""

from collections.abc import Mapping

from executor.errors import IntegrityError
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
