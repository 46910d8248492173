"""One call to the ledger with fabric-sdk-py (hfc): a script, in a process and an environment of its own.

call.py starts it with the Python of environment.py. It imports nothing of this project: hfc's message
definitions and those of hyperledger-fabric-protos cannot be loaded into one process.

It reads one JSON object from standard input and writes JSON objects to standard output, one per line:

    {"sent": TX_ID}        before an endorsed transaction is given to an orderer
    {"block": BASE64}      for each block that is followed
    {"answer": {...}}      the end of a call that succeeded
    {"error": {...}}       the end of one that failed: kind, cause, tx_id, details, validation, block

Only the lower half of hfc is used. Its `Client.chaincode_invoke` returns a refusal as if it were the answer,
fails with AttributeError when an orderer rejects, looks for the commit from the newest block on (so that a
later block hides it) and decodes answers as UTF-8. hfc encodes text as Latin-1, so arguments come as bytes.
"""

import asyncio
import base64
import binascii
import json
import logging
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, BinaryIO

import grpc
from hfc.fabric.client import Client
from hfc.fabric.orderer import Orderer
from hfc.fabric.peer import Peer
from hfc.fabric.transaction.tx_context import create_tx_context
from hfc.fabric.transaction.tx_proposal_request import CC_INVOKE, TXProposalRequest, create_tx_prop_req
from hfc.fabric.user import create_user
from hfc.protos.common import common_pb2, ledger_pb2
from hfc.protos.peer import proposal_pb2, proposal_response_pb2, transaction_pb2
from hfc.protos.utils import create_envelope, create_seek_info, create_seek_payload
from hfc.util import utils

OK = 200
REFUSED = 400
LAST_BLOCK = 2**63 - 1
PROBE_SECONDS = 2.0
PAUSES = (0.1, 0.2, 0.4, 0.8)
READ_PAUSES = (*PAUSES, 1.6, 3.2)
"""How long peers get to catch up with each other when they disagree."""
BEHIND_PAUSE = 0.2
"""Until a peer that has not the block yet is asked for it again: about the time of a block."""
MESSAGE_BYTES = 100 * 1024 * 1024
OPTIONS = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES),
    ("grpc.max_send_message_length", MESSAGE_BYTES),
]


class WorkerError(Exception):
    """The call came to nothing; `kind` says in which way."""

    def __init__(self, kind: str, cause: str, **more: Any) -> None:
        super().__init__(cause)
        rest = {"tx_id": "", "details": [], "validation": "", "block": 0}
        self.record: dict[str, Any] = {"kind": kind, "cause": cause} | rest | more


@dataclass(frozen=True)
class Server:
    """A peer or an orderer: where it is, whose it is, and the file that vouches for its TLS certificate."""

    address: str
    msp: str
    tls_root: str

    def said(self, what: Any) -> dict[str, str]:
        """Put down what it answered."""
        return {"address": self.address, "msp": self.msp, "message": text_of(what)}


@dataclass(frozen=True)
class WorkerRequest:
    """Everything a call needs; the private key is named by its path and read here alone."""

    verb: str
    seconds: float
    peer_seconds: float
    """How long one peer may take to answer, before another is asked or it is left out."""
    channel: str
    msp: str
    certificate: str
    key: str
    peers: list[Server]
    """The caller's own first."""
    orderers: list[Server]
    endorsements: int
    """How many peers have to endorse alike."""
    agreement: int
    """How many organisations have to say the same, where not one of `alone` does."""
    alone: list[str]
    """The organisations that are believed alone in this call."""
    chaincode: str
    function: str
    arguments: list[bytes]
    transient: dict[str, bytes]
    start: int

    @classmethod
    def read(cls, raw: bytes) -> "WorkerRequest":
        """Parse a request; it has exactly these fields, or it is refused."""
        try:
            record = json.loads(raw)
            for servers in ("peers", "orderers"):
                record[servers] = [Server(**server) for server in record[servers]]
            record["arguments"] = [base64.b64decode(text, validate=True) for text in record["arguments"]]
            transient = record["transient"].items()
            record["transient"] = {name: base64.b64decode(text, validate=True) for name, text in transient}
            made = cls(**record)
        except (KeyError, TypeError, AttributeError, binascii.Error) as error:
            raise ValueError(f"not a request: {error!r}") from error
        if made.verb not in VERBS or not made.peers or not made.seconds > 0:
            raise ValueError("not a request: an unknown verb, no peer or no time")
        return made


class Memory:
    """Where hfc may keep a user: it writes private keys into its store, so the store is not a file."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    def get_value(self, key: str) -> str | None:
        """Return what hfc stored."""
        return self._values.get(key)

    def set_value(self, key: str, value: str) -> None:
        """Keep it for as long as the call takes."""
        self._values[key] = value


class Call:
    """One call: a new hfc Client, used once, because waits on a shared one mix up their results."""

    def __init__(self, request: WorkerRequest, output: BinaryIO) -> None:
        self.request = request
        self.output = output
        self.sent = ""
        self.user = create_user(
            "caller", request.msp, Memory(), request.msp, request.key, request.certificate
        )
        self.channel = Client().new_channel(request.channel)
        self.peers = [Peer(peer.msp, peer.address, peer.tls_root, opts=OPTIONS) for peer in request.peers]

    async def perform(self) -> None:
        """Do what was asked, within its time, and write how it ended."""
        try:
            async with asyncio.timeout(self.request.seconds):
                self.write({"answer": await VERBS[self.request.verb](self)})
        except TimeoutError:
            if self.request.verb == "follow":
                self.write({"answer": {}})
                return
            cause = f"no answer within {self.request.seconds:g} s"
            self.write({"error": WorkerError("timeout", cause, tx_id=self.sent).record})
        except WorkerError as error:
            self.write({"error": error.record})

    async def evaluate(self) -> dict[str, Any]:
        """Read at a peer that is believed alone, or else what enough organisations answer alike."""
        request = self.request
        payload = await self._read(request.alone, request.chaincode, request.function, request.arguments)
        return {"payload": encoded(payload)}

    async def submit(self) -> dict[str, Any]:
        """Have a call endorsed, see that enough peers agree, order it, and wait for its verdict."""
        request = self.request
        info = await self._read([request.msp], "qscc", "GetChainInfo", [request.channel.encode()])
        height = int(ledger_pb2.BlockchainInfo.FromString(info).height)
        context, transaction = await self._endorse()
        await self._order(transaction, context)
        block = await self._verdict(height)
        raw = transaction.responses[0].payload
        response = proposal_response_pb2.ProposalResponsePayload.FromString(raw)
        payload = proposal_pb2.ChaincodeAction.FromString(response.extension).response.payload
        return {"tx_id": context.tx_id, "block": block, "payload": encoded(payload)}

    async def follow(self) -> dict[str, Any]:
        """Write each block from the first one asked for on, until the time is over."""
        try:
            async with aclosing(self._blocks(self.peers[0], self.request.start, filtered=False)) as blocks:
                async for found in blocks:
                    self.write({"block": encoded(found.block.SerializeToString())})
        except grpc.RpcError as error:
            raise WorkerError(
                "stream", text_of(error), details=[self.request.peers[0].said(error)]
            ) from error
        raise WorkerError("stream", "the peer ended the stream of blocks")

    def write(self, record: dict[str, Any]) -> None:
        """Write one line, at once."""
        self.output.write(json.dumps(record).encode() + b"\n")
        self.output.flush()

    def _context(
        self, chaincode: str, function: str, arguments: list[bytes], transient: dict[str, bytes]
    ) -> Any:
        proposal = create_tx_prop_req(
            CC_INVOKE, cc_name=chaincode, fcn=function, args=arguments, transient_map=transient
        )
        return create_tx_context(self.user, self.user.cryptoSuite, proposal)

    async def _read(self, alone: list[str], chaincode: str, function: str, arguments: list[bytes]) -> bytes:
        """Return the answer of a peer that is believed alone, or what enough others agree on."""
        tried = {}
        for server, peer in zip(self.request.peers, self.peers, strict=True):
            if server.msp in alone:
                (found,) = await self._answers([peer], chaincode, function, arguments)
                if not isinstance(found, TimeoutError | grpc.RpcError) or kind_of(found) == "failed":
                    return self._word({server: found}, 1)
                tried[server] = found
        rest = [pair for pair in zip(self.request.peers, self.peers, strict=True) if pair[0] not in tried]
        for pause in (*READ_PAUSES, None):
            answers = await self._answers([peer for _, peer in rest], chaincode, function, arguments)
            said = tried | dict(zip([server for server, _ in rest], answers, strict=True))
            try:
                return self._word(said, self.request.agreement, own_lags=pause is not None)
            except WorkerError as error:
                if pause is None or error.record["kind"] != "disagree":
                    raise
                await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")

    async def _answers(
        self, peers: list[Any], chaincode: str, function: str, arguments: list[bytes]
    ) -> list[Any]:
        """Ask peers side by side; returns what each answered, or how it failed."""
        if not peers:
            return []
        context = self._context(chaincode, function, arguments, {})
        pending, _, _ = self.channel.send_tx_proposal(context, peers)
        answers = await asyncio.gather(*map(self._patiently, pending), return_exceptions=True)
        for found in answers:
            if isinstance(found, BaseException) and not isinstance(found, grpc.RpcError | TimeoutError):
                raise found
        return answers

    def _word(self, said: dict[Server, Any], needed: int, *, own_lags: bool = False) -> bytes:
        """Return the answer that enough organisations gave; what enough refuse is refused.

        While the own peer may only lag, or be ahead of the others, nothing is said against its word.
        """
        alike: dict[tuple[str, Any], list[Server]] = {}
        details = []
        for server, found in said.items():
            if isinstance(found, grpc.RpcError | TimeoutError):
                details.append(server.said(found))
                if kind_of(found) == "failed":
                    alike.setdefault(("failed", text_of(found)), []).append(server)
            elif accepted(found.response.status):
                payload = bytes(found.response.payload)
                details.append(server.said(f"{len(payload)} bytes, sha256:{sha256(payload).hexdigest()}"))
                alike.setdefault(("answered", payload), []).append(server)
            else:
                details.append(server.said(found.response.message))
                alike.setdefault(("refused", found.response.message), []).append(server)
        (kind, word), voters = max(
            alike.items(),
            key=lambda item: (
                own_lags and any(server.msp == self.request.msp for server in item[1]),
                len(item[1]),
            ),
            default=(("", b""), []),
        )
        if len(voters) >= needed and kind == "answered":
            return bytes(word)
        if len(voters) >= needed:
            alike_in = {server.msp for server in voters}
            said_so = [detail for detail in details if detail["msp"] in alike_in]
            raise WorkerError(kind, str(word), details=said_so)
        if len(alike) > 1:
            raise WorkerError("disagree", "too few organisations agree on the answer", details=details)
        raise WorkerError("unreachable", f"{len(voters)} of {needed} organisations answer", details=details)

    async def _patiently(self, pending: Awaitable[Any]) -> Any:
        return await asyncio.wait_for(pending, self.request.peer_seconds)

    async def _endorse(self) -> tuple[Any, Any]:
        """Have all peers endorse, again while only others than the own object: they may be a block behind."""
        request = self.request
        for pause in (*PAUSES, None):
            context = self._context(request.chaincode, request.function, request.arguments, request.transient)
            pending, proposal, header = self.channel.send_tx_proposal(context, self.peers)
            waiting = [self._patiently(one) for one in pending]
            responses = await asyncio.gather(*waiting, return_exceptions=True)
            try:
                agreed = self._agreed(responses, context.tx_id)
            except WorkerError as error:
                if pause is None or request.msp in {said["msp"] for said in error.record["details"]}:
                    raise
                await asyncio.sleep(pause)
            else:
                return context, utils.build_tx_req((agreed, proposal, header))
        raise AssertionError("the last attempt returns or raises")

    def _agreed(self, responses: list[Any], tx_id: str) -> list[Any]:
        """Return the endorsements that are alike to the byte, if there are as many as the policy wants."""
        alike: dict[bytes, list[Any]] = {}
        details, kinds = [], {"mismatch"}
        for peer, found in zip(self.request.peers, responses, strict=True):
            if isinstance(found, grpc.RpcError | TimeoutError):
                kinds.add(kind_of(found))
                details.append(peer.said(found))
            elif isinstance(found, BaseException):
                raise found
            elif not accepted(found.response.status):
                kinds.add("refused")
                details.append(peer.said(found.response.message))
            else:
                alike.setdefault(bytes(found.payload), []).append(found)
        best = max(alike.values(), key=len, default=[])
        if len(best) >= self.request.endorsements:
            return best
        # What one peer refuses says more than that another one cannot be reached.
        kind = next(kind for kind in ("refused", "failed", "unreachable", "mismatch") if kind in kinds)
        cause = f"{len(best)} of {len(responses)} peers endorsed alike, {self.request.endorsements} have to"
        raise WorkerError(kind, cause, tx_id=tx_id, details=details)

    async def _order(self, transaction: Any, context: Any) -> None:
        """Give the transaction to the first orderer that listens; it is never given twice."""
        server = await self._listening()
        orderer = Orderer(server.address, server.address, server.tls_root, opts=OPTIONS)
        self.sent = context.tx_id
        self.write({"sent": self.sent})
        try:
            async with asyncio.timeout(self.request.peer_seconds):
                async for found in utils.send_transaction({server.address: orderer}, transaction, context):
                    if found.status != OK:
                        cause = f"{common_pb2.Status.Name(found.status)}: {found.info}"
                        raise WorkerError("rejected", cause, tx_id=self.sent, details=[server.said(cause)])
        except (grpc.RpcError, TimeoutError) as error:
            # It may have arrived: what became of it is for the peers to say.
            logging.warning("orderer %s: %s", server.address, text_of(error))

    async def _listening(self) -> Server:
        details = []
        for server in self.request.orderers:
            host, _, port = server.address.rpartition(":")
            try:
                async with asyncio.timeout(PROBE_SECONDS):
                    _, writer = await asyncio.open_connection(host, int(port))
            except (OSError, TimeoutError) as error:
                details.append(server.said(error))
            else:
                writer.close()
                return server
        raise WorkerError("no-orderer", "no orderer can be reached", details=details)

    async def _verdict(self, height: int) -> int:
        """Return the block that enough organisations have the transaction in, if it is valid there."""
        tasks = {
            asyncio.ensure_future(self._find(peer, height)): server
            for server, peer in zip(self.request.peers, self.peers, strict=True)
        }
        waiting = set(tasks)
        reports: dict[tuple[int, int], list[str]] = {}
        details = []
        try:
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in done:
                    server = tasks[task]
                    try:
                        report = task.result()
                    except (grpc.RpcError, WorkerError) as error:
                        details.append(server.said(error))
                        continue
                    details.append(server.said(f"{_verdict_name(report[0])} in block {report[1]}"))
                    believed = reports.setdefault(report, [])
                    believed.append(server.msp)
                    if len(believed) >= self.request.agreement or server.msp in self.request.alone:
                        return self._valid_block(*report)
        finally:
            for task in waiting:
                task.cancel()
        kind = "disagree" if len(reports) > 1 else "unknown"
        cause = "too few organisations agree on what became of it"
        raise WorkerError(kind, cause, tx_id=self.sent, details=details)

    def _valid_block(self, code: int, block: int) -> int:
        verdict = _verdict_name(code)
        if verdict != "VALID":
            raise WorkerError("invalid", verdict, tx_id=self.sent, validation=verdict, block=block)
        return block

    async def _find(self, peer: Any, height: int) -> tuple[int, int]:
        """Follow the blocks from before the transaction until one has it."""
        async with aclosing(self._blocks(peer, height, filtered=True)) as blocks:
            async for found in blocks:
                for transaction in found.filtered_block.filtered_transactions:
                    if transaction.txid == self.sent:
                        return int(transaction.tx_validation_code), int(found.filtered_block.number)
        raise WorkerError("stream", "the peer ended the stream of blocks")

    async def _blocks(self, peer: Any, start: int, *, filtered: bool) -> AsyncGenerator[Any, None]:
        """Yield blocks from one on; a peer that has not come so far yet is asked again until it has."""
        is_behind = True
        while is_behind:
            is_behind = False
            stream = peer.delivery(self._seek(start), filtered=filtered)
            try:
                async for found in stream:
                    if found.WhichOneof("Type") != "status":
                        yield found
                        continue
                    status = common_pb2.Status.Name(found.status)
                    if status != "NOT_FOUND":
                        raise WorkerError("stream", f"the peer ended the stream: {status}", tx_id=self.sent)
                    is_behind = True
            finally:
                # Or the thread that waits for the next block keeps the process.
                stream.cancel()
            if is_behind:
                await asyncio.sleep(BEHIND_PAUSE)

    def _seek(self, start: int) -> Any:
        """Sign a request for all blocks from one on."""
        context = create_tx_context(self.user, self.user.cryptoSuite, TXProposalRequest())
        seek = common_pb2.HeaderType.Value("DELIVER_SEEK_INFO")
        now = utils.current_timestamp()
        channel = utils.build_channel_header(seek, context.tx_id, self.request.channel, now)
        header = utils.build_header(context.identity, channel, context.nonce)
        payload = create_seek_payload(header, create_seek_info(start, LAST_BLOCK))
        return create_envelope(context.sign(payload), payload)


VERBS: dict[str, Callable[[Call], Coroutine[Any, Any, dict[str, Any]]]] = {
    "evaluate": Call.evaluate,
    "submit": Call.submit,
    "follow": Call.follow,
}


def _verdict_name(code: int) -> str:
    return str(transaction_pb2.TxValidationCode.Name(code))


def accepted(status: int) -> bool:
    """Whether a peer takes a chaincode's status for success."""
    return OK <= status < REFUSED


def encoded(raw: bytes) -> str:
    """Write bytes as text for JSON."""
    return base64.b64encode(raw).decode()


def kind_of(error: grpc.RpcError | TimeoutError) -> str:
    """Tell a peer that is not there, or does not answer, from one that failed."""
    if isinstance(error, TimeoutError) or error.code() is grpc.StatusCode.UNAVAILABLE:
        return "unreachable"
    return "failed"


def text_of(what: Any) -> str:
    """Say what a server said, or what became of the call."""
    if isinstance(what, grpc.RpcError):
        return f"{what.code().name}: {what.details()}"
    if isinstance(what, TimeoutError):
        return "no answer in time"
    return str(what) or type(what).__name__


async def serve(raw: bytes, output: BinaryIO) -> None:
    """Serve one call; hfc ties its connections to the running loop."""
    await Call(WorkerRequest.read(raw), output).perform()


if __name__ == "__main__":
    # Standard output is for answers alone; hfc prints there at times.
    answers, sys.stdout = sys.stdout.buffer, sys.stderr
    # hfc writes each proposal into its log, transient data included, unless it is kept from it.
    logging.disable(logging.INFO)
    asyncio.run(serve(sys.stdin.buffer.read(), answers))
