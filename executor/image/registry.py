"""A registry, asked directly: what the engine says it pushed or pulled is compared with what is served."""

import ssl
from contextlib import closing
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path

from executor.errors import EngineError, IntegrityError
from executor.image.manifest import ACCEPTED, Manifest, Platform
from executor.image.reference import split_repository
from executor.network import Network
from protocol.digest import Digest
from protocol.values import dataclass

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
        return cls(f"127.0.0.1:{network.ports}005", network.registry_authority)

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
        by_digest = ":" in reference
        raw = self._get(f"/v2/{name}/manifests/{reference}", plain=by_digest and self._is_loopback)
        if raw is None:
            return None
        # Before it is parsed: bytes that are not those asked for are that, whatever else they are.
        if by_digest and str(Digest.of(raw)) != reference:
            raise IntegrityError(
                "IMAGE_MISMATCH",
                f"{self.host} serves other bytes for {reference}",
                evidence={"expected": reference, "found": str(Digest.of(raw))},
            )
        return Manifest.parse(raw)

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

    @property
    def _is_loopback(self) -> bool:
        return self.host.partition(":")[0] in ("localhost", "127.0.0.1")

    def _get(self, path: str, *, plain: bool = False) -> bytes | None:
        """Ask by TLS; `plain` to ask without it where it is not spoken, for bytes that are then hashed."""
        try:
            context = ssl.create_default_context(cafile=self.authority)
            try:
                status, raw = _asked(HTTPSConnection(self.host, timeout=SECONDS, context=context), path)
            except ssl.SSLError:
                if not plain:
                    raise
                # As engines do on loopback, where registries without TLS are common.
                status, raw = _asked(HTTPConnection(self.host, timeout=SECONDS), path)
        # Overflow: the ledger's grammar of ports has five digits, TCP's numbers end at 65535.
        except (OSError, HTTPException, OverflowError) as error:
            raise EngineError(
                "REGISTRY_UNREACHABLE",
                f"the registry {self.host} does not answer: {error}",
            ) from error
        if status == NOT_FOUND:
            return None
        if status != OK or len(raw) > MAX_MANIFEST:
            raise EngineError(
                "REGISTRY_REFUSED",
                f"the registry {self.host} answered {status} with {len(raw)} bytes for {path}",
            )
        return raw


def _asked(connection: HTTPConnection, path: str) -> tuple[int, bytes]:
    with closing(connection):
        connection.request("GET", path, headers={"Accept": ACCEPTED})
        answer = connection.getresponse()
        return answer.status, answer.read(MAX_MANIFEST + 1)
