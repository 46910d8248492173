"""The ledger through fabric-sdk-py: the optional second transport, `executor --transport hfc`.

Each call is a process of its own with one hfc Client (worker.py), one call at a time. What the Gateway client
promises holds here too: reads go to another peer where one is down, a transaction is given to the orderers
once, its verdict is read from a block, and one that others overtook is made anew.
docs/adr/0301-hfc-transport.md says why this is not the default.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Self

from executor.errors import LedgerError
from executor.ledger.errors import PhaseError
from executor.ledger.gateway.messages import ledger
from executor.ledger.hfc.call import Worker, decoded, encoded
from executor.ledger.hfc.events import BlockEvents
from executor.ledger.identities import check_organisation, load_identity
from executor.ledger.transport import Argument, ChainInfo, Receipt
from executor.network import CHANNEL, ORDERER, Network

log = logging.getLogger(__name__)

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
    channel: str = CHANNEL
    _one_at_a_time: Lock = field(default_factory=Lock, repr=False, compare=False)
    _stood_in_for: bool = field(default=False, repr=False, compare=False)

    @classmethod
    def connect(cls, network: Network, organisation: str, identity: str) -> Self:
        """Act as a user of an organisation, through its own peer where that is up."""
        check_organisation(network, organisation)
        # Nothing of it is kept: an identity that cannot be used is found now, not in another process.
        load_identity(network, organisation, identity)
        return cls(network, organisation, network.msp_folder(organisation, identity))

    def evaluate(self, chaincode: str, function: str, *arguments: Argument) -> bytes:
        """Read: run a function on the first peer that answers, the organisation's own first."""
        request = self._request("evaluate", EVALUATE_SECONDS, chaincode, function, arguments)
        with self._one_at_a_time, Worker(request) as worker:
            answer = worker.answer()
        self._say_who(answer.get("peer"))
        return decoded(answer.get("payload"))

    def submit(
        self,
        chaincode: str,
        function: str,
        *arguments: Argument,
        transient: Mapping[str, bytes] | None = None,
    ) -> Receipt:
        """Write: return once the transaction is valid in a block; one that others overtook is made anew."""
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
        """Return the height of the channel as the first peer that answers has it."""
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

    def _say_who(self, address: object) -> None:
        """Say once that another peer stands in: who trusts only the own organisation's peer wants to know."""
        own = self.network.peer_address(self.organisation)
        if address != own and not self._stood_in_for:
            self._stood_in_for = True
            log.warning("the peer at %s does not answer; the one at %s stands in", own, address)

    def _request(
        self,
        verb: str,
        seconds: float,
        chaincode: str = "",
        function: str = "",
        arguments: tuple[Argument, ...] = (),
        *,
        transient: Mapping[str, bytes] | None = None,
    ) -> dict[str, Any]:
        network = self.network
        others = [name for name in network.organisations if name != self.organisation]
        orderers = [f"127.0.0.1:{network.ports}0{i}0" for i in range(1, network.n_orderers + 1)]
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
            "orderers": [_server(network, address, ORDERER) for address in orderers],
            # The channel's endorsement policy: a majority of the organisations.
            "endorsements": len(network.organisations) // 2 + 1,
            "chaincode": chaincode,
            "function": function,
            # hfc would encode text as Latin-1.
            "arguments": [encoded(part.encode() if isinstance(part, str) else part) for part in arguments],
            "transient": {name: encoded(raw) for name, raw in (transient or {}).items()},
            "start": 0,
        }


def _server(network: Network, address: str, organisation: str) -> dict[str, str]:
    msp = "OrdererMSP" if organisation == ORDERER else network.msp_id(organisation)
    return {"address": address, "msp": msp, "tls_root": str(network.folder(organisation) / "tlsca.pem")}


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
