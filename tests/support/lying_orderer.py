"""An orderer that hands out blocks of its own making, in a container in the place of the real one.

It runs in the chaincode's image, which has gRPC: lying_orderer.py TLS_FOLDER ANSWERS. ANSWERS is a folder
with a file for each organisation, named by its MSP id: the message that its peers get who ask for blocks.
"""

import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event
from typing import Any

import grpc

PORT = 7050


def main(tls: Path, answers: dict[bytes, bytes]) -> None:
    """Serve until the container is removed."""

    def deliver(requests: Any, context: Any) -> Iterator[bytes]:
        asked = bytes(next(requests))
        yield from (answer for msp_id, answer in answers.items() if msp_id in asked)
        gone = Event()
        context.add_callback(gone.set)
        gone.wait()

    server = grpc.server(ThreadPoolExecutor(32))
    handlers = {"Deliver": grpc.stream_stream_rpc_method_handler(deliver)}
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("orderer.AtomicBroadcast", handlers)]
    )
    pair = ((tls / "server.key").read_bytes(), (tls / "server.crt").read_bytes())
    server.add_secure_port(f"0.0.0.0:{PORT}", grpc.ssl_server_credentials([pair]))
    server.start()
    server.wait_for_termination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), {file.name.encode(): file.read_bytes() for file in Path(sys.argv[2]).iterdir()})
