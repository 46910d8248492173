"""`executor audit export`: every block of the channel as one file, for somebody who trusts none of us."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from executor.audit.bundle import MANIFEST, BundleWriter, Manifest, block_name
from executor.audit.fabric.block import Block
from executor.audit.fabric.configuration import Configuration
from executor.audit.fabric.messages import MalformedError
from executor.audit.statements import Statement
from executor.audit.verify import copies_of, first_configuration
from executor.caller import Caller
from executor.errors import LedgerError, UsageError
from executor.ledger.identities import load_identity
from executor.ledger.transport import Transport
from executor.network import CHANNEL
from protocol.values import dataclass


@dataclass(frozen=True)
class Exported:
    """What was written, and the anchor to hand on by another way."""

    file: Path
    genesis: str
    blocks: int
    bytes: int


def export_channel(
    transport: Transport, process: str, out: Path, height: int | None = None, first: int = 0
) -> Exported:
    """Write the channel from its first block on, or from a later one; nothing is left where it fails."""
    total = transport.chain_info().height if height is None else height
    if first >= total:
        raise UsageError("AUDIT_HEIGHT", f"the channel has {total} blocks, and none from {first} on")
    unfinished = out.with_name(out.name + ".part")
    try:
        with unfinished.open("wb") as file:
            genesis = _write(transport, process, BundleWriter(file), total, first)
            size = file.tell()
        unfinished.replace(out)
    except MalformedError as error:
        raise LedgerError("LEDGER_BLOCK", f"the peer's block cannot be read: {error}") from error
    except OSError as error:
        raise UsageError("AUDIT_FILE", f"{out} cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    return Exported(out, genesis, total - first, size)


def make_statement(caller: Caller) -> Statement:
    """Say how far the organisation's own peer is, signed by the caller; no other peer can stand in for it."""
    signer = load_identity(caller.network, caller.organisation, caller.identity)
    with closing(caller.own_peer()) as peer:
        height = peer.chain_info().height
        raw = peer.block(height - 1)
    try:
        block = Block.from_bytes(raw)
        commit_hash = block.commit_hash
    except MalformedError as error:
        raise LedgerError("LEDGER_BLOCK", f"the peer's block cannot be read: {error}") from error
    said = Statement(
        CHANNEL,
        caller.network.msp_id(caller.organisation),
        height,
        block.hash.hex(),
        commit_hash.hex(),
        signer.certificate.decode(),
    )
    return replace(said, signature=signer.sign(said.signed).hex())


def _write(transport: Transport, process: str, writer: BundleWriter, total: int, first: int) -> str:
    block, configuration = first_configuration(transport.block(0))
    genesis = f"sha256:{block.hash.hex()}"
    writer.add(MANIFEST, Manifest(configuration.channel, process, total, genesis, first).to_bytes())
    for number in range(first, total):
        raw = transport.block(number)
        writer.add(block_name(number), raw)
        block = Block.from_bytes(raw)
    if block.number and block.last_config:
        envelope = Block.from_bytes(transport.block(block.last_config)).config_envelope()
        if envelope is None:
            raise MalformedError("a block names another one as configuration that holds none")
        configuration = Configuration.from_envelope(envelope)
    for name, content in copies_of(configuration):
        writer.add(name, content)
    writer.close()
    return genesis
