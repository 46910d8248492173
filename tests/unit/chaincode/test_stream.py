"""The life of a stream: registration, order, one writer, parallel transactions, loss, stop."""

import threading
import time
from contextlib import suppress

import grpc
import pytest

from chaincode.probe import Probe
from chaincode.shim import (
    ChaincodeServer,
    Context,
    Contract,
    MisuseError,
    Tls,
    evaluate,
    stream,
    submit,
    transaction,
    wire,
)
from chaincode.shim.direct import DirectStream
from chaincode.shim.server import STREAMS, THREADS
from chaincode.shim.session import Session

M = wire.Message
WAIT = 150
# Whatever proxy whoever runs the tests has.
DIRECTLY = (("grpc.enable_http_proxy", 0),)


@pytest.fixture(params=["direct", "queue"], autouse=True)
def way(request, monkeypatch):
    """Run every test on both kinds of stream: gRPC's own operations, and its public interface alone."""
    if request.param == "queue":
        monkeypatch.setattr(stream, "operations_of", lambda _: None)
    return request.param


class Threaded(Probe):
    """The probe with a thread for each transaction."""

    cooperative = False


class Held(Contract):
    """A contract whose functions the test can hold, to see what else goes on meanwhile."""

    name = "held"

    def __init__(self):
        super().__init__()
        self.entered, self.release, self.errors = threading.Semaphore(0), threading.Event(), []

    @evaluate
    def hold(self, ctx: Context, key: str) -> bytes | None:
        self.entered.release()
        assert self.release.wait(WAIT)
        return ctx.get(key)

    @evaluate
    def threads(self, ctx: Context, count: int) -> list[str]:
        """Read from several threads of one transaction at once."""
        found = []

        def read(number: int) -> None:
            self.entered.release()
            found.append(ctx.get(f"k{number}"))

        readers = [threading.Thread(target=read, args=(number,)) for number in range(count)]
        for reader in readers:
            reader.start()
        for reader in readers:
            reader.join()
        return sorted(value.decode() for value in found)

    @submit
    def read(self, ctx: Context, key: str) -> bytes | None:
        try:
            return ctx.get(key)
        except Exception as error:
            self.errors.append(error)
            raise


class Turns(Held):
    """The same with greenlets, which a test holds by leaving their requests unanswered."""

    cooperative = True


def test_locked_grpcio_has_the_operations_of_a_direct_stream(serve, way, caplog):
    server, peer = serve()
    assert peer.run("metadata").status == 200  # a peer may be registered before the server has its session
    (session,) = server._sessions
    assert type(session._stream) is {"direct": DirectStream, "queue": stream.QueueStream}[way]
    assert ("transactions cost more" in caplog.text) is (way == "queue")


def test_chaincode_registers_under_its_package_id(peer):
    assert peer.chaincode_id == "probe_1:abc"
    assert peer.types()[0] == "REGISTER"


def test_nothing_runs_before_ready(serve):
    _, address = serve(peer=False)
    with grpc.insecure_channel(address, DIRECTLY) as channel:
        early = M(type=M.TRANSACTION, txid="t", channel_id="ch").SerializeToString()
        call = channel.stream_stream("/protos.Chaincode/Connect")(iter([early]))
        assert [wire.parse(M, raw).type for raw in call] == [M.REGISTER]


def test_unknown_message_ends_the_stream_but_not_the_server(serve):
    server, peer = serve()
    peer.send(M.UNDEFINED)
    assert peer.ended.wait(WAIT)
    assert serve.connect(server.address).run("metadata").status == 200


def test_bytes_that_are_no_message_end_the_stream_but_not_the_server(serve):
    server, peer = serve()
    peer._outbox.put(b"\xff\xff\xff")
    assert peer.ended.wait(WAIT)
    assert serve.connect(server.address).run("metadata").status == 200


def test_keepalive_is_echoed(peer):
    peer.send(M.KEEPALIVE)
    assert peer.run("metadata").status == 200
    assert "KEEPALIVE" in peer.types()


def test_messages_of_one_transaction_keep_their_order(peer):
    peer.submit("put_then_get", "a", "1", tx="t")
    assert peer.types("t") == ["GET_STATE", "WRITE_BATCH_STATE", "COMPLETED"]


def test_init_is_served_like_a_transaction(peer):
    assert peer.run("put", "a", "1", kind=M.INIT).writes == {"a": b"1"}


@pytest.mark.parametrize(("contract", "count"), [(Probe, 300), (Threaded, 200)])
def test_concurrent_transactions_all_complete_with_their_own_answer(serve, contract, count):
    _, peer = serve(contract())
    peer.state.update({f"k{n}": f"v{n}".encode() for n in range(count)})
    futures = [peer.begin("get", f"k{n}", tx=f"t{n}") for n in range(count)]
    assert [future.result(WAIT).payload for future in futures] == [f"v{n}".encode() for n in range(count)]
    assert not peer.dropped


def test_transactions_run_in_parallel(serve):
    contract = Held()
    _, peer = serve(contract)
    futures = [peer.begin("hold", "k", tx=f"t{n}") for n in range(20)]
    for _ in futures:
        assert contract.entered.acquire(timeout=WAIT)
    contract.release.set()
    assert all(future.result(WAIT).status == 200 for future in futures)


def test_threads_of_one_transaction_take_turns(serve):
    contract = Held()
    _, peer = serve(contract)
    peer.state.update({f"k{n}": f"v{n}".encode() for n in range(8)})
    first = iter([True])

    def answer(peer, message):
        if next(first, False):  # keeps the first request until all eight threads have come to theirs
            for _ in range(8):
                assert contract.entered.acquire(timeout=WAIT)
            peer.send(M.KEEPALIVE)
            assert wait_until(lambda: "KEEPALIVE" in peer.types())
        return M.RESPONSE, peer._serve(message)

    peer.script[M.GET_STATE] = answer
    running = peer.begin("threads", 8)
    assert wait_until(lambda: running.done() or peer.dropped)
    assert not peer.dropped
    assert running.result().json == [f"v{n}" for n in range(8)]


def test_cooperative_transactions_run_in_parallel(serve):
    _, peer = serve()
    held = Requests(peer)
    futures = [peer.begin("get", f"k{n}", tx=f"t{n}") for n in range(THREADS + 44)]
    assert wait_until(lambda: len(held.asked) == len(futures))
    assert not any(future.done() for future in futures)
    held.answer(b"v")
    assert all(future.result(WAIT).payload == b"v" for future in futures)


def test_cooperative_transactions_beyond_the_limit_wait(serve, monkeypatch):
    monkeypatch.setattr("chaincode.shim.server.GREENLETS", 10)
    _, peer = serve()
    held = Requests(peer)
    futures = [peer.begin("get", f"k{n}", tx=f"t{n}") for n in range(25)]
    peer.send(M.KEEPALIVE)  # its echo says that all before it has been seen to
    assert wait_until(lambda: "KEEPALIVE" in peer.types())
    assert peer.types().count("GET_STATE") == 10
    held.answer(b"v")
    assert all(future.result(WAIT).payload == b"v" for future in futures)


def test_cooperative_contract_that_calls_the_peer_from_a_thread_is_told_so(serve):
    class Wrong(Turns):
        @evaluate
        def elsewhere(self, ctx: Context) -> None:
            def read() -> None:
                with suppress(MisuseError):
                    self.read(ctx, "k")

            thread = threading.Thread(target=read)
            thread.start()
            thread.join()

    contract = Wrong()
    _, peer = serve(contract)
    assert peer.run("elsewhere").status == 200
    assert contract.errors[0].code == "MISUSE"


def test_two_peers_share_one_server(serve):
    server, first = serve()
    second = serve.connect(server.address)
    first.submit("put", "a", "1")
    assert first.run("get", "a").payload == b"1"
    assert second.run("get", "a").code == "NOT_FOUND"


def test_answer_to_no_request_is_ignored(peer):
    peer.send(M.RESPONSE, b"stray", "nobody")
    assert peer.run("metadata").status == 200


@pytest.mark.parametrize("kind", [Held, Turns])
def test_e1_lost_stream_wakes_transactions_that_wait(serve, caplog, kind):
    contract = kind()
    _, peer = serve(contract)
    asked = threading.Event()
    peer.script[M.GET_STATE] = lambda *_: asked.set()
    peer.begin("read", "k")
    assert asked.wait(WAIT)
    peer.close()
    assert wait_until(lambda: contract.errors)
    assert contract.errors[0].code == "STREAM_LOST"
    assert wait_until(lambda: "given up" in caplog.text)


def test_request_left_unanswered_ends_the_transactions_wait(serve, monkeypatch):
    monkeypatch.setattr(transaction, "ANSWER_SECONDS", 0.2)
    contract = Held()
    _, peer = serve(contract)
    peer.script[M.GET_STATE] = lambda *_: None
    peer.begin("read", "k")
    assert wait_until(lambda: contract.errors)
    assert contract.errors[0].code == "STREAM_LOST"


def test_cooperative_request_left_unanswered_ends_with_the_next_transaction(serve, monkeypatch):
    monkeypatch.setattr(transaction, "ANSWER_SECONDS", 0.0)
    contract = Turns()
    _, peer = serve(contract)
    held = Requests(peer)
    first = peer.begin("read", "k")
    assert wait_until(lambda: held.asked)
    assert peer.run("metadata").status == 200
    assert contract.errors[0].code == "STREAM_LOST"
    held.answer(b"late")
    assert peer.run("metadata").status == 200
    assert not first.done()


def test_streams_beyond_the_limit_are_refused_and_the_others_served(serve):
    server, first = serve()
    others = [serve.connect(server.address) for _ in range(STREAMS - 1)]
    surplus = grpc.insecure_channel(server.address, DIRECTLY)
    call = surplus.stream_stream("/protos.Chaincode/Connect")(iter([]))
    with pytest.raises(grpc.RpcError) as refused:
        next(call)
    assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    surplus.close()
    assert all(peer.run("metadata").status == 200 for peer in (first, *others))


def test_e1_peer_that_comes_back_is_served_again(serve):
    server, peer = serve()
    peer.close()
    assert serve.connect(server.address).submit("put", "a", "1").status == 200


def test_graceful_stop_lets_running_transactions_finish(serve):
    contract = Held()
    server, peer = serve(contract)
    peer.state["k"] = b"v"
    running = peer.begin("hold", "k", tx="running")
    assert contract.entered.acquire(timeout=WAIT)
    finished = []
    stopping = threading.Thread(target=lambda: finished.append(server.stop(WAIT)))
    stopping.start()
    (session,) = server._sessions
    assert wait_until(lambda: session._stopping)
    refused = peer.run("hold", "k")
    assert (refused.status, refused.code) == (503, "UNAVAILABLE")
    contract.release.set()
    assert running.result(WAIT).payload == b"v"
    stopping.join(WAIT)
    assert finished == [True]
    assert peer.ended.wait(WAIT)


def test_graceful_stop_lets_cooperative_transactions_finish(serve):
    server, peer = serve()
    held = Requests(peer)
    running = peer.begin("get", "k")
    assert wait_until(lambda: held.asked)
    finished = []
    stopping = threading.Thread(target=lambda: finished.append(server.stop(WAIT)))
    stopping.start()
    assert wait_until(lambda: peer.run("metadata").status == 503)
    held.answer(b"v")
    assert running.result(WAIT).payload == b"v"
    stopping.join(WAIT)
    assert finished == [True]
    assert peer.ended.wait(WAIT)


def test_second_call_of_a_transaction_may_come_before_the_first_has_been_cleared_away(serve, monkeypatch):
    cleared = threading.Event()
    monkeypatch.setattr(Session, "_log", lambda *_: cleared.wait(WAIT))
    _, peer = serve(Threaded())
    assert peer.run("put", "a", "1", tx="t").status == 200
    assert peer.run("put", "b", "2", tx="t").status == 200
    cleared.set()
    assert peer.run("put", "c", "3", tx="t").status == 200


def test_stop_reports_transactions_it_had_to_abandon(serve):
    contract = Held()
    server, peer = serve(contract)
    peer.begin("hold", "k")
    assert contract.entered.acquire(timeout=WAIT)
    assert server.stop(0.1) is False
    contract.release.set()


def test_stop_abandons_a_cooperative_transaction_and_tells_it(serve):
    contract = Turns()
    server, peer = serve(contract)
    held = Requests(peer)
    peer.begin("read", "k")
    assert wait_until(lambda: held.asked)
    assert server.stop(0.1) is False
    assert wait_until(lambda: contract.errors)
    assert contract.errors[0].code == "STREAM_LOST"


def test_two_servers_on_one_port_are_refused(serve):
    _server, address = serve(peer=False)
    with pytest.raises(MisuseError, match="cannot listen"):
        ChaincodeServer(Held(), "x:1", address, None).start()


def test_e8_peer_without_client_certificate_is_refused(serve, authority):
    _, address = serve_tls(serve, authority)
    peer = serve.connect(address, grpc.ssl_channel_credentials(authority.pem))
    assert peer.ended.wait(WAIT)
    assert not peer.ready.is_set()


def test_e8_peer_with_a_certificate_of_another_root_is_refused(serve, authority):
    stranger = type(authority)("stranger")
    _, address = serve_tls(serve, authority)
    peer = serve.connect(address, grpc.ssl_channel_credentials(authority.pem, *stranger.issue("peer")))
    assert peer.ended.wait(WAIT)
    assert not peer.ready.is_set()


def test_peer_with_a_trusted_client_certificate_is_served(serve, authority):
    _, address = serve_tls(serve, authority)
    peer = serve.connect(address, grpc.ssl_channel_credentials(authority.pem, *authority.issue("peer")))
    assert peer.ready.wait(WAIT)
    assert peer.submit("put", "a", "1").status == 200


def test_tls_without_client_roots_is_refused(authority):
    with pytest.raises(MisuseError, match="roots"):
        Tls(*authority.issue("server"), b"").credentials()


def test_tls_key_is_not_in_the_repr(authority):
    assert "PRIVATE" not in repr(Tls(*authority.issue("server"), authority.pem))


class Requests:
    """Reads that the peer leaves unanswered until the test lets it go on."""

    def __init__(self, peer):
        self.asked, self._go, self._value = [], threading.Event(), None
        peer.script[M.GET_STATE] = self._hold
        peer.at_close.append(self._go.set)

    def answer(self, value):
        self._value = value
        self._go.set()

    def _hold(self, _peer, message):
        self.asked.append(message)
        self._go.wait(WAIT)
        return None if self._value is None else (M.RESPONSE, self._value)


def serve_tls(serve, authority):
    return serve(peer=False, tls=Tls(*authority.issue("server"), authority.pem))


def wait_until(condition, seconds=WAIT):
    """Poll a condition that no event announces."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.01)
    return True
