"""A transaction as it stands in a block: what a peer checks before it looks at any policy."""

import hashlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Self

from executor.audit.fabric.certificates import UntrustedError
from executor.audit.fabric.configuration import Configuration
from executor.audit.fabric.form import Form, InvalidError, Signed, Verdict, parsed, signature_header
from executor.audit.fabric.identity import Identity
from executor.audit.fabric.messages import MalformedError, chaincode, common, parse, proposal, transaction
from executor.audit.fabric.policy import signers
from executor.audit.fabric.rwset import NamespaceSet


@dataclass(slots=True)
class Transaction:
    """A transaction of a chaincode whose form and creator are in order."""

    tx_id: str
    time: datetime | None
    creator: Identity
    chaincode: str
    sets: list[NamespaceSet]
    endorsers: list[Identity] = field(repr=False)
    """Who endorsed it with a valid signature."""
    proposal: bytes = field(default=b"", repr=False)
    """What the client asked for, as the endorsers saw it."""
    endorsed_by: tuple[str, ...] = ()
    """The organisations of those endorsers whom the chaincode's policy asks for, once it is satisfied."""

    @property
    def arguments(self) -> list[bytes]:
        """What the chaincode was called with, function first; empty where it cannot be read."""
        return _arguments(self.proposal)

    @classmethod
    def of(cls, form: Form, configuration: Configuration) -> Self:
        """Accept a transaction that a member made, or raise with the verdict of a peer."""
        creator = _creator(form.created.identity, form.channel, configuration)
        refusal = _refusal(creator, form.created)
        if form.fault is not None:
            raise refusal or form.fault from form.fault
        endorsers = signers(configuration.members, form.endorsed)
        found = cls(form.tx_id, form.time, creator, form.chaincode, form.sets, endorsers, form.proposal)
        if refusal is not None:
            refusal.transaction = found
            raise refusal
        return found


def tx_id_of(raw: bytes) -> str:
    """Return the id under which peers keep a transaction, whatever else is wrong with it; empty without one.

    It is the id in its header, or the one that its header should have had if there is none.
    """
    try:
        payload = parse(common.Payload, parse(common.Envelope, raw).payload)
        if not payload.HasField("header"):
            return ""
        header = payload.header
        said = str(parse(common.ChannelHeader, header.channel_header).tx_id)
        if said:
            return said
        signature = parse(common.SignatureHeader, header.signature_header)
        return hashlib.sha256(signature.nonce + signature.creator).hexdigest()
    except MalformedError:
        return ""


def check_config_creator(envelope: Any, configuration: Configuration) -> None:
    """Return if a configuration transaction is signed by a member, as peers ask of it; raise otherwise."""
    payload = parsed(common.Payload, envelope.payload, Verdict.BAD_PAYLOAD)
    channel = parsed(common.ChannelHeader, payload.header.channel_header, Verdict.BAD_COMMON_HEADER)
    creator = signature_header(payload, channel).creator
    signed = Signed(creator, envelope.payload, envelope.signature)
    refusal = _refusal(_creator(creator, channel.channel_id, configuration), signed)
    if refusal is not None:
        raise refusal


def _creator(named: bytes, channel: str, configuration: Configuration) -> Identity:
    """Return the member that a transaction says it is from."""
    wrong = Verdict.BAD_CREATOR_SIGNATURE
    if channel != configuration.channel:
        raise InvalidError(wrong, f"it is for channel {channel[:64]!r}")
    try:
        return configuration.members.identify(named)
    except UntrustedError as error:
        raise InvalidError(wrong, f"its creator is nobody: {error}") from error


def _refusal(creator: Identity, created: Signed) -> InvalidError | None:
    """Return why a transaction does not count as its creator's; None if it does."""
    wrong = Verdict.BAD_CREATOR_SIGNATURE
    if creator.refusal:
        return InvalidError(wrong, f"its creator {creator.name[:64]} is refused: {creator.refusal}")
    if not creator.signed(created.message, created.signature):
        name = f"{creator.name[:64]} of {creator.organisation.msp_id}"
        return InvalidError(wrong, f"{name} did not sign it")
    return None


def arguments_of(raw: bytes) -> list[bytes]:
    """Return what a chaincode was called with, function first; empty where it cannot be read."""
    try:
        payload = parse(common.Payload, parse(common.Envelope, raw).payload)
        actions = parse(transaction.Transaction, payload.data).actions
        found = parse(transaction.ChaincodeActionPayload, actions[0].payload)
    except (MalformedError, IndexError):
        return []
    return _arguments(found.chaincode_proposal_payload)


def _arguments(raw: bytes) -> list[bytes]:
    try:
        call = parse(proposal.ChaincodeProposalPayload, raw).input
        return list(parse(chaincode.ChaincodeInvocationSpec, call).chaincode_spec.input.args)
    except MalformedError:
        return []
