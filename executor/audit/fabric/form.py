"""The form of a transaction: what can be read of it before anybody asks who its members are.

`Form.read` stops at the first thing that a peer would stop at, and says with which of Fabric's codes.
"""

import hashlib
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from executor.audit.fabric.messages import (
    MalformedError,
    common,
    event,
    parse,
    proposal,
    response,
    transaction,
)
from executor.audit.fabric.rwset import NamespaceSet, read_sets

if TYPE_CHECKING:
    from executor.audit.fabric.transaction import Transaction

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_KNOWN = (common.ENDORSER_TRANSACTION, common.CONFIG_UPDATE, common.CONFIG)


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
        self.dispatched = False
        """Whether a peer finds it only after it has looked for the id in earlier blocks."""
        self.others: frozenset[Verdict] = frozenset()
        """What another peer may note with equal right: it judges chaincodes in no order, up to a fault."""
        self.transaction: Transaction | None = None
        """What can be read of it all the same."""


class Signed(NamedTuple):
    """One signature as it stands in a block: who is said to have signed what."""

    identity: bytes
    message: bytes
    signature: bytes


class Opened(NamedTuple):
    """A transaction's envelope, its payload and the header that says which kind of transaction it is."""

    envelope: Any
    payload: Any
    channel: Any


@dataclass(slots=True)
class Form:
    """A transaction whose headers are in order, and what it calls and changes unless that has a fault."""

    created: Signed = field(repr=False)
    """By whom, and over what."""
    channel: str
    tx_id: str
    time: datetime | None
    chaincode: str = ""
    sets: list[NamespaceSet] = field(default_factory=list)
    endorsed: list[Signed] = field(default_factory=list, repr=False)
    """By whom it is said to be endorsed."""
    proposal: bytes = field(default=b"", repr=False)
    """What the client asked for, as the endorsers saw it."""
    fault: InvalidError | None = None
    """Why a peer reads no further, if its creator is who it should be."""

    @classmethod
    def read(cls, raw: bytes, opened: Opened | None = None) -> Self:
        """Read a transaction, opened or not, or raise with the verdict of a peer on its headers."""
        envelope, payload, channel = opened or open_envelope(raw)
        signature = signature_header(payload, channel)
        created = Signed(signature.creator, envelope.payload, envelope.signature)
        found = cls(created, channel.channel_id, channel.tx_id, _time(channel))
        try:
            found._read_call(payload, channel, signature)
        except InvalidError as error:
            found.fault = error
        return found

    def _read_call(self, payload: Any, channel: Any, signature: Any) -> None:
        if channel.type != common.ENDORSER_TRANSACTION:
            raise InvalidError(Verdict.UNSUPPORTED_TX_PAYLOAD, f"it is of type {channel.type}")
        if self.tx_id != hashlib.sha256(signature.nonce + signature.creator).hexdigest():
            raise InvalidError(Verdict.BAD_PROPOSAL_TXID, "its id is not the hash of nonce and creator")
        try:
            self.proposal, action, answered, answer = _action(payload)
        except MalformedError as error:
            raise InvalidError(Verdict.INVALID_ENDORSER_TRANSACTION, str(error)) from error
        try:
            self.chaincode, self.sets = _results(channel, answer)
        except InvalidError as error:
            error.dispatched = True
            raise
        for item in action.endorsements:
            endorser = item.endorser
            self.endorsed.append(Signed(endorser, answered + endorser, item.signature))


def open_envelope(raw: bytes) -> Opened:
    """Open a transaction as far as every kind has the same form, or raise with the verdict of a peer."""
    envelope = parsed(common.Envelope, raw, Verdict.INVALID_OTHER_REASON)
    payload = parsed(common.Payload, envelope.payload, Verdict.BAD_PAYLOAD)
    channel = parsed(common.ChannelHeader, payload.header.channel_header, Verdict.BAD_COMMON_HEADER)
    return Opened(envelope, payload, channel)


def signature_header(payload: Any, channel: Any) -> Any:
    """Return the header that names the creator, or raise if either header is not as a peer asks."""
    signature = parsed(common.SignatureHeader, payload.header.signature_header, Verdict.BAD_COMMON_HEADER)
    if channel.type not in _KNOWN or channel.epoch or not signature.nonce or not signature.creator:
        raise InvalidError(Verdict.BAD_COMMON_HEADER, "its header lacks nonce or creator, or is of no kind")
    return signature


def parsed(kind: Any, raw: bytes, verdict: Verdict) -> Any:
    """Decode a message, or raise with the verdict of a peer that cannot."""
    try:
        return parse(kind, raw)
    except MalformedError as error:
        raise InvalidError(verdict, str(error)) from error


def _action(payload: Any) -> tuple[bytes, Any, bytes, Any]:
    """Return what was asked for, its endorsements, and what was endorsed, bound to the proposal."""
    actions = parse(transaction.Transaction, payload.data).actions
    if len(actions) != 1:
        raise MalformedError(f"it has {len(actions)} actions, not one")
    first, headers = actions[0], payload.header
    header = first.header
    if header != headers.signature_header:  # which has both, or nobody would have come here
        inner = parse(common.SignatureHeader, header)
        if not inner.nonce or not inner.creator:
            raise MalformedError("its action names no creator")
    found = parse(transaction.ChaincodeActionPayload, first.payload)
    asked, action = found.chaincode_proposal_payload, found.action
    if not asked:  # its hash would be that of the headers alone, which peers do not compute
        raise MalformedError("its action holds no proposal")
    answered = action.proposal_response_payload
    answer = parse(response.ProposalResponsePayload, answered)
    bound = hashlib.sha256(headers.channel_header + header + asked)
    if bound.digest() != answer.proposal_hash:
        raise MalformedError("what was endorsed is another proposal")
    return asked, action, answered, answer


def _results(channel: Any, answer: Any) -> tuple[str, list[NamespaceSet]]:
    called = _called(channel.extension)
    if not answer.extension:
        raise InvalidError(Verdict.BAD_RESPONSE_PAYLOAD, "what was endorsed holds no results")
    done = parsed(proposal.ChaincodeAction, answer.extension, Verdict.BAD_RESPONSE_PAYLOAD)
    try:
        sets = read_sets(done.results)
    except MalformedError as error:
        raise InvalidError(Verdict.BAD_RWSET, str(error)) from error
    if called is None or not done.HasField("chaincode_id"):
        raise InvalidError(Verdict.INVALID_OTHER_REASON, "it names no chaincode")
    name, ran = called, done.chaincode_id
    if not name or name != ran.name or not ran.version:
        raise InvalidError(Verdict.INVALID_CHAINCODE, "its header and its endorsement name two chaincodes")
    events = done.events
    if events:
        happened = parsed(event.ChaincodeEvent, events, Verdict.INVALID_OTHER_REASON)
        if happened.chaincode_id != name:
            raise InvalidError(Verdict.INVALID_OTHER_REASON, "its event is another chaincode's")
    if len({found.name for found in sets}) != len(sets):
        raise InvalidError(Verdict.ILLEGAL_WRITESET, "it names a chaincode twice")
    return name, sets


@lru_cache(maxsize=64)
def _called(extension: bytes) -> str | None:
    """Return the chaincode that a header's extension names; the few there are come again and again."""
    found = parsed(proposal.ChaincodeHeaderExtension, extension, Verdict.BAD_HEADER_EXTENSION)
    return str(found.chaincode_id.name) if found.HasField("chaincode_id") else None


def _time(channel: Any) -> datetime | None:
    stamp = channel.timestamp
    try:
        return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
    except OverflowError:
        return None
