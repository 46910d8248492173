"""A block as the orderers made it: its header, its link to the one before, and their signatures."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Self

from google.protobuf.message import DecodeError

from executor.audit.fabric.configuration import BLOCK_VALIDATION, Configuration
from executor.audit.fabric.form import Form, InvalidError, Opened, Signed, open_envelope
from executor.audit.fabric.identity import Identity
from executor.audit.fabric.messages import MalformedError, common, parse
from executor.audit.fabric.policy import signers
from executor.audit.fabric.view import View
from protocol.digest import SIZE

SIGNATURES, LAST_CONFIG, FLAGS, UNUSED, COMMIT_HASH = range(5)
"""The places of the block's metadata."""
FIRST = (b"\n\2\n\0", b"", b"\0", b"", b"")
"""The metadata of a first block, which nobody signs: no configuration before it, and a valid transaction."""
_CONFIG = int(common.CONFIG)
_NOTED = bytes((1 << 3 | 2, SIZE))
"""How metadata begin that hold a hash and nothing else."""


@dataclass(slots=True)
class Block:
    """One block, decoded."""

    number: int
    previous: bytes
    data_hash: bytes
    data: tuple[bytes, ...]
    metadata: tuple[bytes, ...]
    header: bytes = field(init=False, repr=False)
    """The header as it is hashed and signed: number and both hashes in ASN.1."""
    hash: bytes = field(init=False)
    """SHA-256 of the header: what the next block names, and what pins a channel for block 0."""
    _only: Opened | None = field(init=False, repr=False)
    """Its transaction, where it has one alone that can be opened."""
    _forms: list[Form | InvalidError] | None = field(init=False, repr=False, default=None)
    _signed: tuple[Configuration, list[Signed]] | None = field(init=False, repr=False, default=None)
    _signatures: Any = field(init=False, repr=False, default=None)
    _said: tuple[int, bytes] | None = field(init=False, repr=False, default=None)

    def __post_init__(self) -> None:
        number = self.number.to_bytes(self.number.bit_length() // 8 + 1, "big")
        self.header = _der(0x30, _der(2, number) + _der(4, self.previous) + _der(4, self.data_hash))
        self.hash = hashlib.sha256(self.header).digest()
        self._only = _opened(self.data[0]) if len(self.data) == 1 else None

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Decode a block."""
        try:
            found = common.Block.FromString(raw)
        except DecodeError as error:
            raise MalformedError(f"{len(raw)} bytes are not a Block") from error
        found.DiscardUnknownFields()
        if found.SerializeToString() != raw:
            raise MalformedError("the block is not written in the one form that peers write")
        header = found.header
        return cls(
            int(header.number),
            header.previous_hash,
            header.data_hash,
            tuple(found.data.data),
            tuple(found.metadata.metadata),
        )

    @property
    def real_data_hash(self) -> bytes:
        """SHA-256 of the transactions as they are."""
        digest = hashlib.sha256()
        for envelope in self.data:
            digest.update(envelope)
        return digest.digest()

    @property
    def flags(self) -> bytes:
        """What the exporting peer noted about each transaction; signed by nobody."""
        return self.metadata[FLAGS] if len(self.metadata) > FLAGS else b""

    @property
    def commit_hash(self) -> bytes:
        """What the exporting peer noted about its state; signed by nobody."""
        raw = self.metadata[COMMIT_HASH] if len(self.metadata) > COMMIT_HASH else b""
        if len(raw) == len(_NOTED) + SIZE and raw.startswith(_NOTED):
            return raw[len(_NOTED) :]
        return bytes(parse(common.Metadata, raw).value)

    @property
    def last_config(self) -> int:
        """The number of the configuration block in force, as the orderers signed it."""
        return self._orderers_value()[0]

    @property
    def view(self) -> View:
        """The place in the order that a quorum of orderers signed."""
        return View.from_bytes(self._orderers_value()[1])

    @property
    def is_repeated(self) -> bool:
        """Whether what nobody signed repeats what was signed: the number of the configuration block."""
        found = self.metadata
        return len(found) == len(FIRST) and (found[LAST_CONFIG], found[UNUSED]) == (
            _repeated(self.last_config),
            b"",
        )

    def config_envelope(self) -> Any | None:
        """Return the configuration transaction if this is a configuration block."""
        only = self._only
        return only.envelope if only is not None and only.channel.type == _CONFIG else None

    @property
    def forms(self) -> list[Form | InvalidError]:
        """The form of each transaction, or why it has none."""
        if self._forms is None:
            self._forms = [_form(raw, self._only) for raw in self.data]
        return self._forms

    def orderers(self, configuration: Configuration) -> list[Identity]:
        """Return the orderers that really signed this block."""
        return signers(configuration.members, self.signed(configuration))

    def is_ordered(self, configuration: Configuration, found: Sequence[Identity]) -> bool:
        """Whether those who signed are those who may make blocks."""
        return configuration.policies.holds(BLOCK_VALIDATION, found)

    def signed(self, configuration: Configuration) -> list[Signed]:
        """Return the orderers' signatures on this block."""
        if self._signed is None or self._signed[0] is not configuration:
            self._signed = configuration, self._read_signed(configuration)
        return self._signed[1]

    def _read_signed(self, configuration: Configuration) -> list[Signed]:
        metadata, header, found = self._signature_metadata(), self.header, []
        value, is_bft = metadata.value, configuration.ordering.is_bft
        for item in metadata.signatures:
            if is_bft and item.identifier_header and not item.signature_header:
                said = item.identifier_header
                number = int(parse(common.IdentifierHeader, said).identifier)
                named = configuration.ordering.identity_of(number)
            else:
                said = item.signature_header
                named = parse(common.SignatureHeader, said).creator
            if named is not None:
                found.append(Signed(named, value + said + header, item.signature))
        return found

    def _orderers_value(self) -> tuple[int, bytes]:
        """Return what the orderers signed besides the header: a configuration block, and their own notes."""
        if self._said is None:
            found = parse(common.OrdererBlockMetadata, self._signature_metadata().value)
            self._said = found.last_config.index, found.consenter_metadata
        return self._said

    def _signature_metadata(self) -> Any:
        if self._signatures is None:
            if len(self.metadata) <= SIGNATURES:
                raise MalformedError("the block carries no signatures")
            self._signatures = parse(common.Metadata, self.metadata[SIGNATURES])
        return self._signatures


@lru_cache(maxsize=64)
def _repeated(number: int) -> bytes:
    said = common.LastConfig(index=number).SerializeToString()
    return bytes(common.Metadata(value=said).SerializeToString())


def _opened(raw: bytes) -> Opened | None:
    try:
        return open_envelope(raw)
    except InvalidError:
        return None


def _form(raw: bytes, opened: Opened | None) -> Form | InvalidError:
    try:
        return Form.read(raw, opened)
    except InvalidError as error:
        return error


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content
