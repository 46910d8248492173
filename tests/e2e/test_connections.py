"""Connections inside the network: nobody is cut off for asking whether the other side is still there."""

import contextlib
import threading
from functools import partial

import grpc

from executor.network import Network

PINGS = [
    ("grpc.keepalive_time_ms", 4_000),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.http2.max_pings_without_data", 0),
    ("grpc.enable_http_proxy", 0),
]
"""More often than the Gateways of peers, which ask one another and the orderers every ten seconds."""

SECONDS = 18
"""The third ping that comes too soon ends a connection; so long there are four."""


def test_who_asks_as_often_as_a_peer_s_gateway_is_cut_off_by_no_peer_and_no_orderer() -> None:
    network = Network.load()
    reached = {name: (name, network.peer_address(name)) for name in network.organisations}
    reached |= {name: (owner, network.orderer_address(name)) for name, owner in network.orderers.items()}
    lost: list[str] = []
    cut_off = threading.Event()

    def note(name: str, state: grpc.ChannelConnectivity) -> None:
        if state is not grpc.ChannelConnectivity.READY:
            lost.append(f"{name} is {state.name}")
            cut_off.set()

    with contextlib.ExitStack() as channels:
        for name, (owner, address) in reached.items():
            authority = (network.folder(owner) / "tlsca.pem").read_bytes()
            credentials = grpc.ssl_channel_credentials(authority)
            channel = channels.enter_context(grpc.secure_channel(address, credentials, options=PINGS))
            grpc.channel_ready_future(channel).result(timeout=150)
            channel.subscribe(partial(note, name))  # first called with READY
        cut_off.wait(SECONDS)
        assert lost == []
