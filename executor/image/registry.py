"""A registry, asked directly: what the engine says it pushed or pulled is compared with what is served."""

import ssl
from contextlib import closing
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from pathlib import Path

from executor.errors import EngineError, IntegrityError
from executor.image.manifest import ACCEPTED, Manifest, Platform
from executor.image.reference import split_repository
from executor.network import ORDERER, Network
from protocol.digest import Digest

SECONDS = 20
MAX_MANIFEST = 4 * 1024 * 1024
NOT_FOUND, OK = 404, 200


@dataclass(frozen=True)
class Served:
    """What a registry serves under a name: the manifest asked for, and the image that a platform gets."""

    manifest: Digest
    image: Digest
    image_id: Digest

    @property
    def index(self) -> Digest | None:
        """The digest of the index, where there is one between the name and the image."""
        return self.manifest if self.manifest != self.image else None


@dataclass(frozen=True)
class ImageRegistry:
    """One registry by its host; `authority` is who certifies it, or None for those the system trusts."""

    host: str
    authority: Path | None = None

    @classmethod
    def of_network(cls, network: Network) -> "ImageRegistry":
        """The network's own registry."""
        authority = network.state / "organisations" / ORDERER / "tlsca.pem"
        return cls(f"127.0.0.1:{network.ports}005", authority)

    @classmethod
    def of_repository(cls, repository: str, network: Network) -> "ImageRegistry":
        """The registry that a repository is in."""
        own = cls.of_network(network)
        host, _ = split_repository(repository)
        return own if host == own.host else cls(host)

    def manifest(self, name: str, reference: str) -> Manifest | None:
        """Return the manifest under a tag or a digest, or None if there is none.

        Bytes asked for by digest have that digest, whatever the registry says they are.
        """
        raw = self._get(f"/v2/{name}/manifests/{reference}")
        if raw is None:
            return None
        found = Manifest.parse(raw)
        if ":" in reference and str(found.digest) != reference:
            raise IntegrityError(
                "IMAGE_MISMATCH",
                f"{self.host} serves other bytes for {reference}",
                evidence={"expected": reference, "found": str(found.digest)},
            )
        return found

    def served(self, name: str, reference: str, platform: Platform) -> Served | None:
        """Follow a tag or a digest, through an index if there is one, to the image for a platform."""
        manifest = self.manifest(name, reference)
        if manifest is None:
            return None
        image = manifest
        if manifest.is_index:
            chosen = manifest.for_platform(platform)
            found = self.manifest(name, str(chosen))
            if found is None:
                return None
            image = found
        if image.config is None:
            raise IntegrityError("IMAGE_MANIFEST", f"{reference} is an index of indices", case="index")
        return Served(manifest.digest, image.digest, image.config)

    def _get(self, path: str) -> bytes | None:
        try:
            context = ssl.create_default_context(cafile=self.authority)
            with closing(HTTPSConnection(self.host, timeout=SECONDS, context=context)) as connection:
                connection.request("GET", path, headers={"Accept": ACCEPTED})
                answer = connection.getresponse()
                raw = answer.read(MAX_MANIFEST + 1)
        # Overflow: the ledger's grammar of ports has five digits, TCP's numbers end at 65535.
        except (OSError, HTTPException, OverflowError) as error:
            raise EngineError(
                "REGISTRY_UNREACHABLE",
                f"the registry {self.host} does not answer: {error}",
            ) from error
        if answer.status == NOT_FOUND:
            return None
        if answer.status != OK or len(raw) > MAX_MANIFEST:
            raise EngineError(
                "REGISTRY_REFUSED",
                f"the registry {self.host} answered {answer.status} with {len(raw)} bytes for {path}",
            )
        return raw
