"""The ledger through fabric-sdk-py: the optional second transport, `executor --transport hfc`.

Each call is a process of its own with one hfc Client (worker.py), one call at a time. What the Gateway client
promises holds here too: what matters is read from enough organisations, a transaction goes to the orderers
once, its verdict is what enough organisations' blocks say, and one that others overtook is made anew.
docs/adr/0301-hfc-transport.md says why this is not the default.
"""

from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Self

from executor.errors import LedgerError, UsageError
from executor.ledger.errors import PhaseError
from executor.ledger.gateway.messages import ledger
from executor.ledger.gateway.trust import Trust, majority
from executor.ledger.hfc.call import Worker, decoded, encoded
from executor.ledger.hfc.events import BlockEvents
from executor.ledger.identities import check_organisation, check_trust, load_identity
from executor.ledger.transport import Argument, ChainInfo, Receipt
from executor.network import CHANNEL, Network

PEER_SECONDS = 20.0
EVALUATE_SECONDS = 60.0
SUBMIT_SECONDS = 90.0
CONFLICT_ATTEMPTS = 6


@dataclass
class HfcTransport:
    """One identity on one channel; threads may share it and wait for each other."""

    network: Network
    organisation: str
    folder: Path
    """The MSP folder of the identity; its key is read by the worker alone."""
    trust: Trust = Trust()  # noqa: RUF009 - frozen
    channel: str = CHANNEL
    _one_at_a_time: Lock = field(default_factory=Lock, repr=False, compare=False)

    @classmethod
    def connect(
        cls,
        network: Network,
        organisation: str,
        identity: str,
        trust: Trust = Trust(),  # noqa: B008 - frozen
    ) -> Self:
        """Act as a user of an organisation; `trust` says whose word counts."""
        check_organisation(network, organisation)
        check_trust(network, trust)
        # Nothing of it is kept: an identity that cannot be used is found now, not in another process.
        load_identity(network, organisation, identity)
        return cls(network, organisation, network.msp_folder(organisation, identity), trust)

    def evaluate(self, chaincode: str, function: str, *arguments: Argument) -> bytes:
        """Read on the own peer's word, or on that of enough others while it does not answer."""
        believed = self.network.organisations if self.trust.peers else [self.organisation]
        return self._read(believed, chaincode, function, arguments)

    def evaluate_agreed(self, chaincode: str, function: str, *arguments: Argument) -> bytes:
        """Read what enough organisations say alike."""
        return self._read(self._alone, chaincode, function, arguments)

    @property
    def _alone(self) -> list[str]:
        """The organisations that are believed alone in what decides something."""
        return [self.organisation] if self.trust.own_peer else []

    def _read(
        self, alone: list[str], chaincode: str, function: str, arguments: tuple[Argument, ...]
    ) -> bytes:
        request = self._request("evaluate", EVALUATE_SECONDS, chaincode, function, arguments, alone=alone)
        with self._one_at_a_time, Worker(request) as worker:
            return decoded(worker.answer().get("payload"))

    def submit(
        self,
        chaincode: str,
        function: str,
        *arguments: Argument,
        transient: Mapping[str, bytes] | None = None,
        audience: Container[str] | None = None,
    ) -> Receipt:
        """Write: return once the transaction is valid in a block; one that others overtook is made anew."""
        if audience is not None:
            raise UsageError(
                "HFC_CONFIDENTIAL", "hfc would show confidential trees to every organisation's peer"
            )
        request = self._request("submit", SUBMIT_SECONDS, chaincode, function, arguments, transient=transient)
        for left in reversed(range(CONFLICT_ATTEMPTS)):
            try:
                with self._one_at_a_time, Worker(request) as worker:
                    return receipt_of(worker)
            except PhaseError as error:
                if error.code != "LEDGER_CONFLICT" or not left:
                    raise
        raise AssertionError("unreachable: the last attempt returns or raises")

    def chain_info(self) -> ChainInfo:
        """Return the height of the channel as the own peer has it, or enough others while that is down."""
        found = ledger.BlockchainInfo.FromString(self.evaluate("qscc", "GetChainInfo", self.channel))
        return ChainInfo(found.height, bytes(found.currentBlockHash))

    def block(self, number: int) -> bytes:
        """Return a block as serialized common.Block."""
        return self.evaluate("qscc", "GetBlockByNumber", self.channel, str(number))

    def events(self, chaincode: str, start: int, seconds: float) -> BlockEvents:
        """Follow a chaincode's events from block `start` on; ends after `seconds`, or when closed."""

        def open_worker(turn: int, block: int, left: float) -> Worker:
            request = self._request("follow", left) | {"start": block}
            peers = request["peers"]
            # A process that only listens shares nothing with a call, so it does not wait for one either.
            return Worker(request | {"peers": peers[turn:] + peers[:turn]})

        return BlockEvents(open_worker, len(self.network.organisations), chaincode, start, seconds)

    def close(self) -> None:
        """Nothing is kept open between calls."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _request(
        self,
        verb: str,
        seconds: float,
        chaincode: str = "",
        function: str = "",
        arguments: tuple[Argument, ...] = (),
        *,
        transient: Mapping[str, bytes] | None = None,
        alone: list[str] | None = None,
    ) -> dict[str, Any]:
        network = self.network
        others = [name for name in network.organisations if name != self.organisation]
        return {
            "verb": verb,
            "seconds": seconds,
            "peer_seconds": PEER_SECONDS,
            "channel": self.channel,
            "msp": network.msp_id(self.organisation),
            "certificate": str(self.folder / "signcerts/cert.pem"),
            "key": str(self.folder / "keystore/key.pem"),
            "peers": [
                _server(network, network.peer_address(name), name) for name in [self.organisation, *others]
            ],
            "orderers": [
                _server(network, network.orderer_address(name), owner)
                for name, owner in network.orderers.items()
            ],
            # The channel's endorsement policy: a majority of the organisations.
            "endorsements": majority(len(network.organisations)),
            "agreement": self.trust.needed(len(network.organisations)),
            "alone": [network.msp_id(name) for name in (self._alone if alone is None else alone)],
            "chaincode": chaincode,
            "function": function,
            # hfc would encode text as Latin-1.
            "arguments": [encoded(part.encode() if isinstance(part, str) else part) for part in arguments],
            "transient": {name: encoded(raw) for name, raw in (transient or {}).items()},
            "start": 0,
        }


def _server(network: Network, address: str, organisation: str) -> dict[str, str]:
    root = network.folder(organisation) / "tlsca.pem"
    return {"address": address, "msp": network.msp_id(organisation), "tls_root": str(root)}


def receipt_of(worker: Worker) -> Receipt:
    """Read the receipt of a submission; one that cannot be read says nothing about the transaction."""
    answer = worker.answer()
    tx_id, block = answer.get("tx_id"), answer.get("block")
    try:
        payload = decoded(answer.get("payload"))
    except LedgerError as error:
        raise PhaseError("COMMIT_UNKNOWN", error.cause, "commit status", worker.sent) from error
    if not isinstance(tx_id, str) or tx_id != worker.sent or type(block) is not int:
        raise PhaseError(
            "COMMIT_UNKNOWN", "the process of hfc wrote no receipt", "commit status", worker.sent
        )
    return Receipt(tx_id, block, payload)
