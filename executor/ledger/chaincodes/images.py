"""The image chaincode: which code may run."""

from collections.abc import Iterator
from typing import Any

from executor.ledger.chaincodes.proxy import Proxy, Submitted
from protocol.digest import Digest


class Images(Proxy):
    """Image versions by name, each with its digests and its provenance."""

    chaincode = "image"

    def get(self, name: str, version: str) -> dict[str, Any]:
        """Return the record of a version."""
        return self._evaluate("Get", name, version)

    def list(self, organisation: str = "") -> Iterator[dict[str, Any]]:
        """Iterate over all versions by name, or over those one organisation (MSP id) registered."""
        return self._items("List", organisation)

    def history(self, name: str, version: str) -> Iterator[dict[str, Any]]:
        """Iterate over the changes of a version, newest first: tx, time and value."""
        return self._items("History", name, version)

    def register(  # noqa: PLR0917
        self,
        name: str,
        version: str,
        manifest_digest: Digest,
        image_id: Digest,
        repository: str,
        description: str = "",
    ) -> Submitted:
        """Register a version of an image; a version is written once."""
        return self._submit("Register", name, version, manifest_digest, image_id, repository, description)

    def retire(self, name: str, version: str, reason: str = "") -> Submitted:
        """Retire a version of the caller's organisation: it starts no new tasks."""
        return self._submit("Retire", name, version, reason)
