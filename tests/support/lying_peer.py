"""A hostile organisation's peer: it has the organisation's certificates and keys, and answers as it likes.

What it is not told to lie about goes to the organisation's real peer, and that one's answer comes back.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import grpc

from executor.ledger.gateway import Identity, Peer
from executor.ledger.gateway.messages import common, gateway, gateway_service, proposal, response, transaction
from executor.ledger.gateway.peer import OPTIONS, Link
from executor.ledger.identities import peers_of
from executor.network import Network

Answer = Callable[[Any, Any], Any]
SECONDS = 150


class LyingPeer(gateway_service.GatewayServicer):  # type: ignore[misc] # generated without types
    """An organisation's Gateway service, with lies by method; keeps what it was asked."""

    def __init__(self, network: Network, organisation: str) -> None:
        self.network = network
        self.organisation = organisation
        self.real = peers_of(network, organisation)[0]
        self.lies: dict[str, Answer] = {}
        self.asked: dict[str, list[Any]] = defaultdict(list)
        self._link = Link(self.real)

    def lie(self, method: str, answer: Answer) -> None:
        self.lies[method] = answer

    def honest(self, method: str, request: Any) -> Any:
        """What the organisation's real peer answers."""
        return self._link.call(method, request, SECONDS)

    @property
    def signer(self) -> Identity:
        """The real peer's own signing identity."""
        return Identity.load(self.network.folder(self.organisation) / "peer/msp", self.real.msp)

    def close(self) -> None:
        self._link.close()

    def _answer(self, method: str, request: Any, context: Any) -> Any:
        self.asked[method].append(request)
        lie = self.lies.get(method)
        try:
            return self.honest(method, request) if lie is None else lie(request, context)
        except grpc.RpcError as error:
            context.set_trailing_metadata(error.trailing_metadata() or ())  # type: ignore[attr-defined]
            context.abort(error.code(), error.details())  # type: ignore[attr-defined]

    def Evaluate(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer("Evaluate", request, context)

    def Endorse(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer("Endorse", request, context)

    def Submit(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer("Submit", request, context)

    def CommitStatus(self, request: Any, context: Any) -> Any:  # noqa: N802
        return self._answer("CommitStatus", request, context)


@contextmanager
def lying_peer(network: Network, organisation: str) -> Iterator[tuple[LyingPeer, Peer]]:
    """Serve a hostile peer with the TLS certificate of the organisation's own; yields it and where it is."""
    tls = network.folder(organisation) / "peer/tls"
    pair = ((tls / "server.key").read_bytes(), (tls / "server.crt").read_bytes())
    server = grpc.server(ThreadPoolExecutor(16), options=OPTIONS)
    peer = LyingPeer(network, organisation)
    gateway_service.add_GatewayServicer_to_server(peer, server)
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    server.start()
    try:
        yield peer, replace(peer.real, address=f"127.0.0.1:{port}")
    finally:
        server.stop(None)
        peer.close()


def evaluated(payload: bytes) -> Answer:
    """Answer every read with these bytes."""
    return lambda request, context: gateway.EvaluateResponse(result={"status": 200, "payload": payload})


def valid(block: int) -> Answer:
    """Report every transaction as committed in that block."""
    return lambda request, context: gateway.CommitStatusResponse(result=transaction.VALID, block_number=block)


def swallowed(request: Any, context: Any) -> Any:
    """Say that the orderers have it, and give it to none."""
    return gateway.SubmitResponse()


def endorsed(alter: Callable[[Any], None]) -> Callable[[LyingPeer], Answer]:
    """Alter the ChaincodeEndorsedAction that the real peer made."""

    def lie(peer: LyingPeer) -> Answer:
        def answer(request: Any, context: Any) -> Any:
            found = peer.honest("Endorse", request)
            payload = common.Payload.FromString(found.prepared_transaction.payload)
            content = transaction.Transaction.FromString(payload.data)
            action = transaction.ChaincodeActionPayload.FromString(content.actions[0].payload)
            alter(action.action)
            content.actions[0].payload = action.SerializeToString()
            payload.data = content.SerializeToString()
            found.prepared_transaction.payload = payload.SerializeToString()
            return found

        return answer

    return lie


def signed_by(identity: Identity, payload: bytes) -> Any:
    """An endorsement of a result by an identity."""
    creator = identity.creator
    return transaction.ChaincodeEndorsedAction(
        endorsements=[{"endorser": creator, "signature": identity.sign(payload + creator)}]
    ).endorsements[0]


def with_answer(payload: bytes, answer: bytes) -> bytes:
    """The same result with another answer of the chaincode."""
    found = response.ProposalResponsePayload.FromString(payload)
    action = proposal.ChaincodeAction.FromString(found.extension)
    action.response.payload = answer
    found.extension = action.SerializeToString()
    return bytes(found.SerializeToString())
