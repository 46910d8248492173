"""What a signed proposal says beside the arguments: creator, addressed chaincode, transient data, time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any

from . import wire
from .identity import Creator

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Proposal:
    """The parts of a proposal that contracts read; the peer has verified its signature."""

    creator_bytes: bytes
    transient: Mapping[str, bytes]
    time: datetime
    chaincode: str

    @classmethod
    def from_signed(cls, signed: Any) -> "Proposal":
        """Unwrap a SignedProposal: proposal, header, channel and signature header, payload."""
        proposal = wire.parse(wire.proposal.Proposal, signed.proposal_bytes)
        header = wire.parse(wire.common.Header, proposal.header)
        channel = wire.parse(wire.common.ChannelHeader, header.channel_header)
        signature = wire.parse(wire.common.SignatureHeader, header.signature_header)
        payload = wire.parse(wire.proposal.ChaincodeProposalPayload, proposal.payload)
        # The peer runs what the header's extension names, and validates the transaction by it.
        extension = wire.parse(wire.proposal.ChaincodeHeaderExtension, channel.extension)
        return cls(
            signature.creator,
            dict(payload.TransientMap),
            to_datetime(channel.timestamp),
            str(extension.chaincode_id.name),
        )

    @cached_property
    def creator(self) -> Creator:
        """Who signed the proposal."""
        return Creator.from_bytes(self.creator_bytes)


def to_datetime(timestamp: Any) -> datetime:
    """Convert a protobuf timestamp; nanoseconds beyond the microsecond are cut, equally on every peer."""
    try:
        return EPOCH + timedelta(seconds=timestamp.seconds, microseconds=timestamp.nanos // 1000)
    except OverflowError as error:
        raise wire.FormatError("the timestamp is outside the calendar") from error
