"""Streams of events: in order, once, over peers that fall silent, until closed."""

import threading

import grpc
import pytest
from support.scripted_peers import MSPS, WAIT, announced

from executor.ledger.gateway import ACCESS_DENIED, EventsError
from executor.ledger.gateway.messages import gateway

Status = grpc.StatusCode


def asked_from(peer):
    requests = [
        gateway.ChaincodeEventsRequest.FromString(one.request) for one in peer.asked["ChaincodeEvents"]
    ]
    return [request.start_position.specified.number for request in requests]


def then_fails(*answers, status=Status.UNAVAILABLE):
    def step(request, context):
        yield from answers
        context.abort(status, "gone")

    return step


def then_waits(*answers):
    def step(request, context):
        yield from answers
        over = threading.Event()
        context.add_callback(over.set)
        over.wait(WAIT)

    return step


def test_events_come_in_order_from_a_block_on(client, peers):
    peers[0].then("ChaincodeEvents", then_waits(announced(4, "A", "B"), announced(6, "C")))
    stream = client.contract("execution-record").events(3, WAIT)
    event = next(stream)
    assert (event.block, event.name, event.tx_id, event.payload) == (4, "A", "A-4", b"{}")
    assert [(one.block, one.name) for one in (next(stream), next(stream))] == [(4, "B"), (6, "C")]
    stream.close()
    assert list(stream) == []
    assert asked_from(peers[0]) == [3]


def test_e11_a_lost_stream_goes_on_at_another_peer_without_gap_or_repetition(client, peers):
    peers[0].then("ChaincodeEvents", then_fails(announced(4, "A"), announced(5, "B")))
    peers[1].then("ChaincodeEvents", then_fails(announced(6, "C"), status=Status.ABORTED))
    peers[0].then("ChaincodeEvents", then_waits(announced(9, "D")))
    stream = client.contract("execution-record").events(4, WAIT)
    found = [next(stream) for _ in range(4)]
    stream.close()
    assert [(event.block, event.name) for event in found] == [(4, "A"), (5, "B"), (6, "C"), (9, "D")]
    assert (asked_from(peers[0]), asked_from(peers[1])) == ([4, 7], [6])


def test_a_stream_that_a_peer_ends_is_a_lost_one(client, peers):
    peers[0].then("ChaincodeEvents", lambda request, context: iter([announced(4, "A")]))
    peers[1].then("ChaincodeEvents", then_waits(announced(5, "B")))
    stream = client.contract("execution-record").events(4, WAIT)
    assert [next(stream).name, next(stream).name] == ["A", "B"]
    stream.close()


def test_e11_without_any_peer_the_stream_fails_with_what_each_said(client, peers):
    for peer in peers:
        peer.always("ChaincodeEvents", then_fails())
    with pytest.raises(EventsError) as raised:
        next(client.contract("execution-record").events(4, WAIT))
    assert raised.value.code == "EVENTS_FAILED"
    assert [detail.msp for detail in raised.value.details] == list(MSPS)


def test_a_stream_ends_in_time(client, peers):
    """A peer that sends nothing is not waited for longer, and its silence is no failure."""
    for peer in peers:
        peer.always("ChaincodeEvents", then_waits())
    assert list(client.contract("execution-record").events(4, 0.2)) == []


def test_closing_a_stream_releases_the_thread_that_reads_it(client, peers):
    opened = threading.Event()

    def step(request, context):
        opened.set()
        yield from then_waits()(request, context)

    peers[0].then("ChaincodeEvents", step)
    stream = client.contract("execution-record").events(4, WAIT)
    found = []
    reader = threading.Thread(target=lambda: found.extend(stream))
    reader.start()
    assert opened.wait(WAIT)
    stream.close()
    reader.join(WAIT)
    assert not reader.is_alive()
    assert found == []


def test_c16_events_are_refused_to_whom_the_channel_does_not_admit(client, peers):
    peers[0].then("ChaincodeEvents", then_fails(status=Status.PERMISSION_DENIED))
    with pytest.raises(EventsError) as raised:
        next(client.contract("execution-record").events(4, WAIT))
    assert raised.value.refusal.code == ACCESS_DENIED
    assert asked_from(peers[1]) == []


def test_streams_give_their_permits_back(client, peers):
    before = client._links[0].permits._value
    for _ in range(3):
        peers[0].then("ChaincodeEvents", then_waits(announced(4, "A")))
        stream = client.contract("execution-record").events(4, WAIT)
        next(stream)
        stream.close()
        assert list(stream) == []
    assert client._links[0].permits._value == before


def test_a_peer_with_too_many_open_streams_is_passed_over(client, peers):
    permits = client._links[0].permits
    while permits.acquire(blocking=False):
        pass
    peers[1].then("ChaincodeEvents", then_waits(announced(4, "A")))
    stream = client.contract("execution-record").events(4, WAIT)
    assert next(stream).name == "A"
    stream.close()
    assert asked_from(peers[0]) == []
