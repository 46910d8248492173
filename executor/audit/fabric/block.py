"""A block as the orderers made it: its header, its link to the one before, and their signatures."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from executor.audit.fabric.configuration import BLOCK_VALIDATION, Configuration
from executor.audit.fabric.identity import Identity
from executor.audit.fabric.messages import MalformedError, common, parse
from executor.audit.fabric.policy import Signed, signers
from executor.audit.fabric.view import View

SIGNATURES, FLAGS, COMMIT_HASH = 0, 2, 4
"""The places of the block's metadata."""


@dataclass(frozen=True)
class Block:
    """One block, decoded."""

    number: int
    previous: bytes
    data_hash: bytes
    data: tuple[bytes, ...]
    metadata: tuple[bytes, ...]

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Decode a block."""
        found = parse(common.Block, raw)
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

    @cached_property
    def header(self) -> bytes:
        """The header as it is hashed and signed: number and both hashes in ASN.1."""
        number = self.number.to_bytes(self.number.bit_length() // 8 + 1, "big")
        fields = _der(2, number) + _der(4, self.previous) + _der(4, self.data_hash)
        return _der(0x30, fields)

    @cached_property
    def hash(self) -> bytes:
        """SHA-256 of the header: what the next block names, and what pins a channel for block 0."""
        return hashlib.sha256(self.header).digest()

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
        return bytes(parse(common.Metadata, raw).value)

    @property
    def last_config(self) -> int:
        """The number of the configuration block in force, as the orderers signed it."""
        return int(self._said.last_config.index)

    @property
    def view(self) -> View:
        """The place in the order that a quorum of orderers signed."""
        return View.from_bytes(self._said.consenter_metadata)

    def config_envelope(self) -> Any | None:
        """Return the configuration transaction if this is a configuration block."""
        return self._config_envelope

    @cached_property
    def _config_envelope(self) -> Any | None:
        if len(self.data) != 1:
            return None
        try:
            envelope = parse(common.Envelope, self.data[0])
            payload = parse(common.Payload, envelope.payload)
            kind = parse(common.ChannelHeader, payload.header.channel_header).type
        except MalformedError:
            return None
        return envelope if kind == common.CONFIG else None

    def orderers(self, configuration: Configuration) -> list[Identity]:
        """Return the orderers that really signed this block."""
        return signers(configuration.members, self._signed(configuration))

    def is_ordered(self, configuration: Configuration, found: Sequence[Identity]) -> bool:
        """Whether those who signed are those who may make blocks."""
        return configuration.policies.holds(BLOCK_VALIDATION, found)

    def _signed(self, configuration: Configuration) -> list[Signed]:
        metadata, header, found = self._signatures, self.header, []
        for item in metadata.signatures:
            by_number = item.identifier_header and not item.signature_header
            if configuration.ordering.is_bft and by_number:
                said = item.identifier_header
                number = int(parse(common.IdentifierHeader, said).identifier)
                named = configuration.ordering.identity_of(number)
            else:
                said = item.signature_header
                named = parse(common.SignatureHeader, said).creator
            if named is not None:
                found.append(Signed(named, metadata.value + said + header, item.signature))
        return found

    @cached_property
    def _said(self) -> Any:
        return parse(common.OrdererBlockMetadata, self._signatures.value)

    @cached_property
    def _signatures(self) -> Any:
        if len(self.metadata) <= SIGNATURES:
            raise MalformedError("the block carries no signatures")
        return parse(common.Metadata, self.metadata[SIGNATURES])


def _der(tag: int, content: bytes) -> bytes:
    size = len(content)
    if size < 0x80:
        return bytes((tag, size)) + content
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + content
