"""The feature schema: which columns the trees of a process number, in which order, and what is predicted.

Every node's table has to have it, or feature 7 would mean another column on another node; the process commits
to its digest, so the names themselves stay with the organisations.
"""

from protocol import canonical
from protocol.digest import Digest
from protocol.errors import RecordError
from protocol.trees.limits import FORMAT_MAX_FEATURES
from protocol.values import dataclass

VERSION = 1
MAX_COLUMN_NAME = 256
MAX_SCHEMA_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """Names of the feature columns in their order, and of the label column."""

    features: tuple[str, ...]
    label: str

    def __post_init__(self) -> None:
        if not 1 <= len(self.features) <= FORMAT_MAX_FEATURES:
            raise RecordError(
                "RECORD_VALUE", f"{len(self.features)} features are not 1 to {FORMAT_MAX_FEATURES}"
            )
        seen: set[str] = set()
        for name in (*self.features, self.label):
            if type(name) is not str or not 1 <= len(name) <= MAX_COLUMN_NAME:
                raise RecordError(
                    "RECORD_VALUE", f"column {str(name)[:40]!r} is not a text of 1 to {MAX_COLUMN_NAME}"
                )
            if name in seen:
                raise RecordError("RECORD_VALUE", f"column {name[:40]!r} stands twice in the schema")
            seen.add(name)
        self.to_bytes()

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return the record."""
        return {"version": VERSION, "features": list(self.features), "label": self.label}

    def to_bytes(self) -> bytes:
        """Return the canonical bytes."""
        return canonical.encode(self.to_dict(), max_bytes=MAX_SCHEMA_BYTES)

    @property
    def digest(self) -> Digest:
        """The SHA-256 of the canonical bytes: the process's `schema_digest`."""
        return Digest.of(self.to_bytes())
