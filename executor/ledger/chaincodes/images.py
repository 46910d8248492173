"""The image chaincode: which code may run."""

from collections.abc import Iterator

from executor.ledger.chaincodes.proxy import Proxy, Submitted
from protocol.digest import Digest
from protocol.ledger.common import HistoryEntry
from protocol.ledger.images import ImageRecord, RebuildRecord


class Images(Proxy):
    """Image versions by name, each with its digests and its provenance."""

    chaincode = "image"

    def get(self, name: str, version: str) -> ImageRecord:
        """Return the record of a version."""
        return self._agreed(ImageRecord, "Get", name, version)

    def list(self, organisation: str = "") -> Iterator[ImageRecord]:
        """Iterate over all versions by name, or over those one organisation (MSP id) registered."""
        return self._items(ImageRecord, "List", organisation)

    def history(self, name: str, version: str) -> Iterator[HistoryEntry[ImageRecord]]:
        """Iterate over the changes of a version, newest first: tx, time and value."""
        return self._history(ImageRecord, "History", name, version)

    def register(  # noqa: PLR0917
        self,
        name: str,
        version: str,
        manifest_digest: Digest,
        image_id: Digest,
        repository: str,
        description: str = "",
    ) -> Submitted[ImageRecord]:
        """Register a version of an image; a version is written once."""
        return self._submit(
            ImageRecord, "Register", name, version, manifest_digest, image_id, repository, description
        )

    def attest(self, name: str, version: str, image_id: Digest) -> Submitted[RebuildRecord]:
        """Say which image id the source of a version gave the caller's organisation."""
        return self._submit(RebuildRecord, "Attest", name, version, image_id)

    def list_rebuilds(self, name: str, version: str) -> Iterator[RebuildRecord]:
        """Iterate over what organisations got that built a version from its source."""
        return self._agreed_items(RebuildRecord, "ListRebuilds", name, version)

    def rebuild_history(
        self, name: str, version: str, organisation: str
    ) -> Iterator[HistoryEntry[RebuildRecord]]:
        """Iterate over what an organisation (MSP id) has said of a version, newest first."""
        return self._history(RebuildRecord, "RebuildHistory", name, version, organisation)

    def retire(self, name: str, version: str, reason: str = "") -> Submitted[ImageRecord]:
        """Retire a version of the caller's organisation: no process is proposed with it any more."""
        return self._submit(ImageRecord, "Retire", name, version, reason)
