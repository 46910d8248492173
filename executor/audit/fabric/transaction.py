"""A transaction as it stands in a block: what a peer checks before it looks at any policy.

`Transaction.read` stops at the first thing that a peer would stop at, and says with which of Fabric's codes.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Any, Self

from executor.audit.fabric.certificates import UntrustedError
from executor.audit.fabric.configuration import Configuration
from executor.audit.fabric.identity import Identity
from executor.audit.fabric.messages import (
    MalformedError,
    chaincode,
    common,
    event,
    parse,
    proposal,
    response,
    transaction,
)
from executor.audit.fabric.policy import Signed, signers
from executor.audit.fabric.rwset import NamespaceSet, read_sets

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Verdict(IntEnum):
    """What a peer notes about a transaction: Fabric's TxValidationCode."""

    VALID = 0
    NIL_ENVELOPE = 1
    BAD_PAYLOAD = 2
    BAD_COMMON_HEADER = 3
    BAD_CREATOR_SIGNATURE = 4
    INVALID_ENDORSER_TRANSACTION = 5
    INVALID_CONFIG_TRANSACTION = 6
    UNSUPPORTED_TX_PAYLOAD = 7
    BAD_PROPOSAL_TXID = 8
    DUPLICATE_TXID = 9
    ENDORSEMENT_POLICY_FAILURE = 10
    MVCC_READ_CONFLICT = 11
    PHANTOM_READ_CONFLICT = 12
    BAD_HEADER_EXTENSION = 19
    BAD_RESPONSE_PAYLOAD = 21
    BAD_RWSET = 22
    ILLEGAL_WRITESET = 23
    INVALID_CHAINCODE = 25
    INVALID_OTHER_REASON = 255


class InvalidError(Exception):
    """A transaction that a peer notes as invalid, and why."""

    def __init__(self, verdict: Verdict, why: str) -> None:
        super().__init__(why)
        self.verdict = verdict
        self.transaction: Transaction | None = None
        """What can be read of it all the same."""


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

    @property
    def arguments(self) -> list[bytes]:
        """What the chaincode was called with, function first; empty where it cannot be read."""
        return _arguments(self.proposal)

    @classmethod
    def read(cls, raw: bytes, configuration: Configuration) -> Self:
        """Read a transaction that calls a chaincode, or raise with the verdict of a peer."""
        try:
            envelope = parse(common.Envelope, raw)
        except MalformedError as error:
            raise InvalidError(Verdict.INVALID_OTHER_REASON, str(error)) from error
        payload = _parsed(common.Payload, envelope.payload, Verdict.BAD_PAYLOAD)
        channel, signature = _headers(payload)
        creator, refusal = _creator(envelope, signature, channel.channel_id, configuration)
        try:
            found = cls._read(payload, channel, signature, creator, configuration)
        except InvalidError as error:
            raise refusal or error from error
        if refusal is not None:
            refusal.transaction = found
            raise refusal
        return found

    @classmethod
    def _read(
        cls, payload: Any, channel: Any, signature: Any, creator: Identity, configuration: Configuration
    ) -> Self:
        if channel.type != common.ENDORSER_TRANSACTION:
            raise InvalidError(Verdict.UNSUPPORTED_TX_PAYLOAD, f"it is of type {channel.type}")
        if channel.tx_id != hashlib.sha256(signature.nonce + signature.creator).hexdigest():
            raise InvalidError(Verdict.BAD_PROPOSAL_TXID, "its id is not the hash of nonce and creator")
        try:
            asked, action, answer = _action(payload)
        except MalformedError as error:
            raise InvalidError(Verdict.INVALID_ENDORSER_TRANSACTION, str(error)) from error
        name, sets = _results(channel, answer)
        endorsed = [
            Signed(item.endorser, action.proposal_response_payload + item.endorser, item.signature)
            for item in action.endorsements
        ]
        return cls(
            channel.tx_id,
            _time(channel),
            creator,
            name,
            sets,
            signers(configuration.members, endorsed),
            asked,
        )


def tx_id_of(raw: bytes) -> str:
    """Return the id in a transaction's header, whatever else is wrong with it; empty without one."""
    try:
        payload = parse(common.Payload, parse(common.Envelope, raw).payload)
        return str(parse(common.ChannelHeader, payload.header.channel_header).tx_id)
    except MalformedError:
        return ""


def check_config_creator(envelope: Any, configuration: Configuration) -> None:
    """Return if a configuration transaction is signed by a member, as peers ask of it; raise otherwise."""
    payload = _parsed(common.Payload, envelope.payload, Verdict.BAD_PAYLOAD)
    channel, signature = _headers(payload)
    _, refusal = _creator(envelope, signature, channel.channel_id, configuration)
    if refusal is not None:
        raise refusal


def _headers(payload: Any) -> tuple[Any, Any]:
    channel = _parsed(common.ChannelHeader, payload.header.channel_header, Verdict.BAD_COMMON_HEADER)
    signature = _parsed(common.SignatureHeader, payload.header.signature_header, Verdict.BAD_COMMON_HEADER)
    known = (common.ENDORSER_TRANSACTION, common.CONFIG_UPDATE, common.CONFIG)
    if channel.type not in known or channel.epoch or not signature.nonce or not signature.creator:
        raise InvalidError(Verdict.BAD_COMMON_HEADER, "its header lacks nonce or creator, or is of no kind")
    return channel, signature


def _creator(
    envelope: Any, header: Any, channel: str, configuration: Configuration
) -> tuple[Identity, InvalidError | None]:
    """Return who a transaction says that it is from, and why that does not count if it does not."""
    wrong = Verdict.BAD_CREATOR_SIGNATURE
    if channel != configuration.channel:
        raise InvalidError(wrong, f"it is for channel {channel[:64]!r}")
    try:
        creator = configuration.members.identify(header.creator)
    except UntrustedError as error:
        raise InvalidError(wrong, f"its creator is nobody: {error}") from error
    if creator.refusal:
        return creator, InvalidError(wrong, f"its creator {creator.name[:64]} is refused: {creator.refusal}")
    if not creator.signed(envelope.payload, envelope.signature):
        name = f"{creator.name[:64]} of {creator.organisation.msp_id}"
        return creator, InvalidError(wrong, f"{name} did not sign it")
    return creator, None


def _action(payload: Any) -> tuple[bytes, Any, Any]:
    """Return what was asked for, its endorsements, and what was endorsed, bound to the proposal."""
    actions = parse(transaction.Transaction, payload.data).actions
    if len(actions) != 1:
        raise MalformedError(f"it has {len(actions)} actions, not one")
    inner = parse(common.SignatureHeader, actions[0].header)
    if not inner.nonce or not inner.creator:
        raise MalformedError("its action names no creator")
    found = parse(transaction.ChaincodeActionPayload, actions[0].payload)
    answer = parse(response.ProposalResponsePayload, found.action.proposal_response_payload)
    bound = hashlib.sha256(
        payload.header.channel_header + actions[0].header + found.chaincode_proposal_payload
    )
    if bound.digest() != answer.proposal_hash:
        raise MalformedError("what was endorsed is another proposal")
    return found.chaincode_proposal_payload, found.action, answer


def _results(channel: Any, answer: Any) -> tuple[str, list[NamespaceSet]]:
    extension = _parsed(proposal.ChaincodeHeaderExtension, channel.extension, Verdict.BAD_HEADER_EXTENSION)
    done = _parsed(proposal.ChaincodeAction, answer.extension, Verdict.BAD_RESPONSE_PAYLOAD)
    try:
        sets = read_sets(done.results)
    except MalformedError as error:
        raise InvalidError(Verdict.BAD_RWSET, str(error)) from error
    if not extension.HasField("chaincode_id") or not done.HasField("chaincode_id"):
        raise InvalidError(Verdict.INVALID_OTHER_REASON, "it names no chaincode")
    name = extension.chaincode_id.name
    if not name or name != done.chaincode_id.name or not done.chaincode_id.version:
        raise InvalidError(Verdict.INVALID_CHAINCODE, "its header and its endorsement name two chaincodes")
    if done.events:
        happened = _parsed(event.ChaincodeEvent, done.events, Verdict.INVALID_OTHER_REASON)
        if happened.chaincode_id != name:
            raise InvalidError(Verdict.INVALID_OTHER_REASON, "its event is another chaincode's")
    names = [found.name for found in sets]
    if len(set(names)) != len(names):
        raise InvalidError(Verdict.ILLEGAL_WRITESET, "it names a chaincode twice")
    return str(name), sets


def _parsed(kind: Any, raw: bytes, verdict: Verdict) -> Any:
    try:
        return parse(kind, raw)
    except MalformedError as error:
        raise InvalidError(verdict, str(error)) from error


def _time(channel: Any) -> datetime | None:
    stamp = channel.timestamp
    try:
        return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
    except OverflowError:
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
