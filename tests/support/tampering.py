"""Ways to alter an export, each as somebody might who has some of the keys and not the others."""

import hashlib
import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from executor.audit.bundle import BundleWriter, read_members
from executor.audit.fabric import messages as m
from executor.audit.fabric.block import Block
from executor.ledger.gateway.identity import Identity

BLOCKS = "blocks/"


@dataclass
class Export:
    """The members of an export, to alter and to write again."""

    members: list[tuple[str, bytes]]

    @classmethod
    def read(cls, raw: bytes) -> "Export":
        return cls(list(read_members(io.BytesIO(raw))))

    def write(self) -> bytes:
        file = io.BytesIO()
        writer = BundleWriter(file)
        for name, content in self.members:
            writer.add(name, content)
        writer.close()
        return file.getvalue()

    @property
    def blocks(self) -> list[bytes]:
        return [content for name, content in self.members if name.startswith(BLOCKS)]

    def with_block(self, number: int, raw: bytes) -> "Export":
        """The export with another block in one place."""
        name = f"{BLOCKS}{number:010d}.block"
        return Export([(found, raw if found == name else content) for found, content in self.members])

    def edited(self, number: int, edit: Callable[[Any], None]) -> "Export":
        """The export with one block changed."""
        block = m.common.Block.FromString(self.blocks[number])
        edit(block)
        return self.with_block(number, block.SerializeToString())

    def forged(self, number: int, orderer: Identity, edit: Callable[[Any], None]) -> "Export":
        """The export with one block changed, and every hash and orderer's signature made to fit again."""
        made, last = self, b""
        for place, raw in enumerate(self.blocks):
            block = m.common.Block.FromString(raw)
            if place == number:
                edit(block)
            if place >= number:
                sign_block(block, last, orderer)
                made = made.with_block(place, block.SerializeToString())
            last = Block.from_bytes(block.SerializeToString()).hash
        return made


def sign_block(block: Any, previous: bytes, orderer: Identity) -> None:
    """Give a block the hashes and the signature that one orderer would give it."""
    block.header.previous_hash = previous
    block.header.data_hash = hashlib.sha256(b"".join(block.data.data)).digest()
    metadata = m.common.Metadata.FromString(block.metadata.metadata[0])
    header = m.common.SignatureHeader(creator=orderer.creator, nonce=b"forged").SerializeToString()
    signed = metadata.value + header + Block.from_bytes(block.SerializeToString()).header
    del metadata.signatures[:]
    metadata.signatures.add(signature_header=header, signature=orderer.sign(signed))
    block.metadata.metadata[0] = metadata.SerializeToString()


class OpenedTransaction:
    """A transaction of a block, taken apart so that one piece can be changed."""

    def __init__(self, raw: bytes) -> None:
        self.envelope = m.common.Envelope.FromString(raw)
        self.payload = m.common.Payload.FromString(self.envelope.payload)
        self.tx = m.transaction.Transaction.FromString(self.payload.data)
        self.action = m.transaction.ChaincodeActionPayload.FromString(self.tx.actions[0].payload)

    @property
    def creator(self) -> bytes:
        return bytes(m.common.SignatureHeader.FromString(self.payload.header.signature_header).creator)

    @property
    def endorsements(self) -> Any:
        return self.action.action.endorsements

    def close(self, creator: Identity | None = None) -> bytes:
        """Put it together again; signed again where the creator's key is at hand."""
        self.tx.actions[0].payload = self.action.SerializeToString()
        self.payload.data = self.tx.SerializeToString()
        self.envelope.payload = self.payload.SerializeToString()
        if creator is not None:
            self.envelope.signature = creator.sign(self.envelope.payload)
        return bytes(self.envelope.SerializeToString())


def find_block(blocks: list[bytes], *words: bytes) -> int:
    """The first block after the configuration that holds all of some words."""
    return next(number for number, raw in enumerate(blocks) if number and all(word in raw for word in words))


def flipped(raw: bytes, before: bytes, distance: int = 0) -> bytes:
    """The bytes with one bit changed, so far behind a word."""
    place = raw.index(before) + len(before) + distance
    return raw[:place] + bytes([raw[place] ^ 1]) + raw[place + 1 :]
