"""What opens a task to an auditor, as one file: the data with their salt, the state before, the slots.

    attestree evidence v1 NUL | length of the header (4 bytes) | header | data | state | slots

The header is a canonical record. The file holds what an organisation otherwise shows nobody: it is for the
auditor whom the owner's answer names, and for nobody else.
"""

from pathlib import Path
from typing import Any, Self

from executor.data import Dataset, load
from executor.errors import DatasetError
from executor.replay.errors import EvidenceError
from executor.replay.recorded import Recorded
from protocol import canonical
from protocol.broker.frames import MAX_BLOB
from protocol.digest import Digest
from protocol.errors import AttestreeError, DataError
from protocol.fields import Fields
from protocol.task.commitment import SALT_BYTES
from protocol.task.opening import TaskId
from protocol.task.state import StateRecord
from protocol.trees.share import Share, ShareLimits
from protocol.values import dataclass

VERSION = 1
MAGIC = b"attestree evidence v1\0"
MAX_HEADER = 1 << 16
MAX_DROPPED = 1000
SUFFIXES = (".csv", ".parquet")
_FIELDS = (
    "version",
    "process",
    "node",
    "iteration",
    "salt",
    "label",
    "drop",
    "suffix",
    "data",
    "state",
    "slots",
)


@dataclass(frozen=True)
class Evidence:
    """The inputs of one task that are not on the ledger, or that an auditor could not read there."""

    task: TaskId
    salt: bytes
    label: str
    drop: tuple[str, ...]
    suffix: str
    data: bytes
    state: bytes | None
    slots: bytes
    """The estimators that the slots named, in share format, by id."""

    def to_bytes(self) -> bytes:
        """Return the file."""
        header = canonical.encode(
            {
                "version": VERSION,
                **self.task.to_dict(),
                "salt": self.salt.hex(),
                "label": self.label,
                "drop": [*self.drop],
                "suffix": self.suffix,
                "data": len(self.data),
                "state": None if self.state is None else len(self.state),
                "slots": len(self.slots),
            }
        )
        parts = (MAGIC, len(header).to_bytes(4, "big"), header, self.data, self.state or b"", self.slots)
        return b"".join(parts)

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Accept a whole file and nothing more."""
        start = len(MAGIC) + 4
        length = int.from_bytes(raw[len(MAGIC) : start], "big")
        if raw[: len(MAGIC)] != MAGIC or not 0 < length <= MAX_HEADER:
            raise EvidenceError("EVIDENCE_FORMAT", "it does not begin as evidence of a task does")
        try:
            found: Any = canonical.decode(raw[start : start + length], max_bytes=MAX_HEADER)
            return cls._of(found, memoryview(raw)[start + length :])
        except EvidenceError:
            raise
        except AttestreeError as error:
            raise EvidenceError("EVIDENCE_FORMAT", error.cause) from error

    @classmethod
    def _of(cls, found: Any, rest: memoryview) -> Self:
        fields = Fields(found, "the evidence", _FIELDS)
        fields.version(VERSION)
        salt, suffix = fields.text("salt", 2 * SALT_BYTES), fields.text("suffix", 8)
        drop = tuple(fields.items("drop", MAX_DROPPED))
        if len(salt) != 2 * SALT_BYTES or not set(salt) <= set("0123456789abcdef") or suffix not in SUFFIXES:
            raise EvidenceError("EVIDENCE_FORMAT", "its salt or the kind of its data is none")
        if not all(type(name) is str for name in drop):
            raise EvidenceError("EVIDENCE_FORMAT", "it leaves out what is no column")
        sizes = [fields.count("data"), 0 if found["state"] is None else fields.count("state")]
        sizes.append(fields.count("slots"))
        if sum(sizes) != len(rest):
            raise EvidenceError("EVIDENCE_FORMAT", f"it has {len(rest)} bytes of inputs, not {sum(sizes)}")
        data, state, slots = (
            bytes(rest[sum(sizes[:place]) : sum(sizes[: place + 1])]) for place in range(len(sizes))
        )
        return cls(
            TaskId(found["process"], found["node"], found["iteration"]),
            bytes.fromhex(salt),
            fields.text("label", 256),
            drop,
            suffix,
            data,
            None if found["state"] is None else state,
            slots,
        )

    def opened(self, recorded: Recorded, folder: Path) -> Dataset:
        """Return the rows if all of this is what the task committed to; the data are read in a folder."""
        if self.task != recorded.id:
            raise _closed(f"it is of task {self.task}")
        path = folder / f"data{self.suffix}"
        path.touch(0o600)
        path.write_bytes(self.data)
        try:
            dataset = load(path, self.label, self.drop)
            if dataset.commitment(self.salt) != recorded.opening.data:
                raise _closed("data and salt are not those that the task committed to")
            self._check_state(recorded)
            self._check_slots(recorded)
        except EvidenceError:
            raise
        except (DatasetError, DataError) as error:
            raise _closed(error.cause) from error
        return dataset

    def _check_state(self, recorded: Recorded) -> None:
        expected, model = recorded.opening.state, recorded.context.parameters.initial_model
        if expected is not None:
            right = self.state is not None and Digest.of(self.state) == expected
        elif self.state is None or model is None:
            right = self.state is None and model is None
        else:
            right = (
                StateRecord.from_bytes(self.state, recorded.context.limits).ensemble_digest == model.digest
            )
        if not right:
            raise _closed("the state is not the one that the task began with")

    def _check_slots(self, recorded: Recorded) -> None:
        named = sorted({id_ for offer in recorded.offers for id_ in offer.ids})
        limits = ShareLimits(len(named), MAX_BLOB)
        held = {
            each.id: each for each in Share.from_bytes(self.slots, limits, recorded.context.limits).estimators
        }
        if sorted(held) != named:
            raise _closed("the trees are not those that the slots named")
        for offer in recorded.offers:
            if Share(tuple(held[id_] for id_ in offer.ids)).digest != offer.share:
                raise _closed(f"the trees of {offer.sender} are not those that it shared")


def _closed(cause: str) -> EvidenceError:
    return EvidenceError("EVIDENCE_OPENS", cause)
