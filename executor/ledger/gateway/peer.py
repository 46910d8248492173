"""A connection to one peer's Gateway service, and what its errors say."""

import logging
import time
from dataclasses import dataclass, field
from threading import Semaphore
from typing import Any, cast

import grpc
from google.protobuf import any_pb2, empty_pb2
from google.protobuf.message import DecodeError
from google.protobuf.unknown_fields import UnknownFieldSet

from .errors import PeerDetail
from .messages import gateway, gateway_service

log = logging.getLogger(__name__)

MESSAGE_LIMIT = 100 << 20
CONCURRENT_CALLS = 500
"""How many calls at a time a peer's Gateway service admits, streams of events included."""

OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_LIMIT),
    ("grpc.max_send_message_length", MESSAGE_LIMIT),
    # A peer closes connections that ask more often than once a minute whether it is there.
    ("grpc.keepalive_time_ms", 90_000),
    ("grpc.keepalive_timeout_ms", 15_000),
    # An attempt to connect takes at most so long, and a peer that comes back is found again so soon.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 2_000),
    ("grpc.initial_reconnect_backoff_ms", 200),
    # gRPC would take even an address on this host to the proxy that an environment variable names.
    ("grpc.enable_http_proxy", 0),
]
REST_SECONDS = 30.0
"""How long a peer that did not answer is asked after the others."""
_STATUS_DETAILS = "grpc-status-details-bin"
_DETAILS_FIELD = 3
_LENGTH_DELIMITED = 2


@dataclass(frozen=True, slots=True)
class Peer:
    """Where a peer listens, whose it is, and the authority that its TLS certificate must come from."""

    address: str
    msp: str
    tls_ca: bytes = field(repr=False)


class Link:
    """One peer's Gateway service; safe to use from several threads."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.permits = Semaphore(CONCURRENT_CALLS)
        self.height = 0
        """The highest chain that this peer has told of."""
        self._rests_until = 0.0
        self._blamed = False
        self._channel = grpc.secure_channel(
            peer.address, grpc.ssl_channel_credentials(peer.tls_ca), options=OPTIONS
        )
        self.stub: Any = gateway_service.GatewayStub(self._channel)

    def call(self, method: str, request: Any, seconds: float) -> Any:
        """Call a method that has one answer, within a deadline."""
        with self.permits:
            return getattr(self.stub, method)(request, timeout=seconds)

    def begin(self, method: str, request: Any, seconds: float) -> Any:
        """Begin a call that has one answer; returns its grpc.Future, to be waited for or cancelled."""
        self.permits.acquire()  # given back by whatever ends the call
        try:
            future = getattr(self.stub, method).future(request, timeout=seconds)
        except BaseException:
            self.permits.release()
            raise
        future.add_done_callback(lambda _: self.permits.release())
        return future

    @property
    def rests(self) -> bool:
        """Whether it did not answer a moment ago, so that others are asked first."""
        return time.monotonic() < self._rests_until

    def answered(self) -> None:
        """Take note that it is there."""
        self._rests_until, self._blamed = 0.0, False

    def blame(self, why: str) -> None:
        """Ask it after the others for a while, and say once why it was left out."""
        self._rests_until = time.monotonic() + REST_SECONDS
        if not self._blamed:
            self._blamed = True
            log.warning("the peer of %s (%s) is left out: %s", self.peer.msp, self.peer.address, why)

    def close(self) -> None:
        """End the connection and what still runs on it."""
        self._channel.close()

    def said(self, error: grpc.RpcError) -> list[PeerDetail]:
        """What this peer, and those it asked in turn, said about a call that failed."""
        found = peer_details(error)
        return found or [PeerDetail(self.peer.address, self.peer.msp, message_of(error))]


def status_of(error: grpc.RpcError) -> grpc.StatusCode:
    """The gRPC status of a failed call."""
    return cast("grpc.Call", error).code() or grpc.StatusCode.UNKNOWN


def message_of(error: grpc.RpcError) -> str:
    """The text of a failed call."""
    return cast("grpc.Call", error).details() or status_of(error).name


def peer_details(error: grpc.RpcError) -> list[PeerDetail]:
    """Read the details that the Gateway service attaches: one per peer or orderer it asked in vain."""
    metadata = cast("grpc.Call", error).trailing_metadata() or ()
    raws = [value for name, value in metadata if name == _STATUS_DETAILS]
    try:
        found = [
            gateway.ErrorDetail.FromString(content)
            for raw in raws
            for content in _contents(raw if isinstance(raw, bytes) else raw.encode())
        ]
    except DecodeError:
        return []
    return [PeerDetail(detail.address, detail.msp_id, detail.message) for detail in found]


def _contents(raw: bytes) -> list[bytes]:
    """Open a google.rpc.Status, whose module is not among the dependencies: field 3 repeats an Any."""
    fields: Any = UnknownFieldSet(empty_pb2.Empty.FromString(raw))
    packed = [
        one.data
        for one in fields
        if one.field_number == _DETAILS_FIELD and one.wire_type == _LENGTH_DELIMITED
    ]
    return [any_pb2.Any.FromString(data).value for data in packed]
