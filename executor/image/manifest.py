"""Manifests as registries serve them: one image, or an index of one image per platform."""

import json
from typing import Any

from executor.errors import IntegrityError
from executor.user_files import parse_json
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.values import dataclass

_IMAGE = {
    "application/vnd.docker.distribution.manifest.v2+json",
    "application/vnd.oci.image.manifest.v1+json",
}
_INDEX = {
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.oci.image.index.v1+json",
}
_READ = {
    name.casefold(): name for name in ("config", "digest", "layers", "manifests", "mediaType", "platform")
}
ACCEPTED = ", ".join(sorted(_IMAGE | _INDEX))


@dataclass(frozen=True)
class Platform:
    """What an image is made for."""

    os: str
    architecture: str
    variant: str = ""

    def __str__(self) -> str:
        return "/".join(part for part in (self.os, self.architecture, self.variant) if part)


@dataclass(frozen=True)
class Manifest:
    """The digest of the bytes, and what they point to: a configuration, or manifests by platform."""

    digest: Digest
    config: Digest | None
    platforms: tuple[tuple[Platform, Digest], ...] = ()

    @classmethod
    def parse(cls, raw: bytes) -> "Manifest":
        """Read a manifest of either kind, Docker's or OCI's, or refuse it."""
        digest = Digest.of(raw)
        try:
            parse_json(raw)  # nothing that nests too deep goes further
            found = json.loads(raw, object_pairs_hook=_one_spelling)
            # OCI lets the type be absent: an index is what lists manifests.
            kind = found.get("mediaType") or ("" if "manifests" in found else min(_IMAGE))
            if kind in _IMAGE and "manifests" not in found:
                return cls(digest, Digest.parse(found["config"]["digest"]))
            if kind not in _IMAGE and (kind in _INDEX or "manifests" in found):
                if "config" in found or "layers" in found:
                    raise ValueError("it is an image and an index of images at once")
                return cls(digest, None, tuple(_entry(entry) for entry in found["manifests"]))
        except (ValueError, KeyError, TypeError, AttributeError, AttestreeError) as error:
            raise _odd(digest, repr(error)) from error
        raise _odd(digest, f"its type is {str(kind)[:80]!r}")

    @property
    def is_index(self) -> bool:
        """Whether it lists images instead of being one."""
        return self.config is None

    def for_platform(self, platform: Platform) -> Digest:
        """Return the digest of the one manifest of an index that is for the platform."""
        fitting = [
            digest
            for made_for, digest in self.platforms
            if (made_for.os, made_for.architecture) == (platform.os, platform.architecture)
            and platform.variant in ("", made_for.variant)
        ]
        if len(fitting) != 1:
            listed = ", ".join(str(made_for) for made_for, _ in self.platforms) or "nothing"
            raise _odd(self.digest, f"it has {len(fitting)} images for {platform}; it lists {listed}")
        return fitting[0]


def _one_spelling(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse a field that comes twice, or in an unusual spelling.

    Engines are written in Go, which reads names without regard to case and keeps the last of them: what is
    the honest configuration to us must not be another one to them.
    """
    names = [name.casefold() for name, _ in pairs]
    if len(set(names)) != len(names):
        raise ValueError("it has a field twice")
    odd = [name for name, _ in pairs if _READ.get(name.casefold(), name) != name]
    if odd:
        raise ValueError(f"it spells a field {odd[0][:80]!r}")
    return dict(pairs)


def _entry(entry: dict[str, Any]) -> tuple[Platform, Digest]:
    made_for = entry.get("platform") or {}
    platform = Platform(
        str(made_for.get("os", "unknown")),
        str(made_for.get("architecture", "unknown")),
        str(made_for.get("variant") or ""),
    )
    return platform, Digest.parse(entry["digest"])


def _odd(digest: Digest, why: str) -> IntegrityError:
    return IntegrityError(
        "IMAGE_MANIFEST",
        f"manifest {digest} is none that can be checked: {why}",
        {"manifest_digest": str(digest)},
    )
