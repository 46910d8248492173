"""Streams of events: in order, once, over peers that fall silent, until closed."""

import threading

import grpc
import pytest
from support.scripted_peers import MSPS, WAIT, announced, evaluated

from executor.ledger.gateway import ACCESS_DENIED, EventsError
from executor.ledger.gateway.messages import gateway, ledger

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


def heights(peers, *numbers):
    for peer, number in zip(peers, numbers, strict=True):
        peer.always("Evaluate", evaluated(ledger.BlockchainInfo(height=number).SerializeToString()))


@pytest.mark.parametrize("number", [16, 10**6, 2**63 - 1, 2**63, 2**64 - 1])
def test_h1_a_block_that_nobody_has_does_not_lead_a_stream_into_the_future(client, peers, number):
    """The peer lies about the height of its chain, too; the next one goes on from the last true block."""
    heights(peers, 2**64 - 1, *[6] * (len(peers) - 1))
    peers[0].then("ChaincodeEvents", then_waits(announced(4, "A"), announced(number, "lie")))
    peers[1].then("ChaincodeEvents", then_waits(announced(5, "B")))
    stream = client.contract("execution-record").events(4, WAIT)
    assert [next(stream).name, next(stream).name] == ["A", "B"]
    stream.close()
    assert asked_from(peers[1]) == [5]


def test_h1_a_stream_that_goes_back_is_lost(client, peers):
    """It could repeat what was heard without end."""
    peers[0].then("ChaincodeEvents", then_waits(announced(6, "A"), announced(6, "again")))
    peers[1].then("ChaincodeEvents", then_waits(announced(7, "B")))
    stream = client.contract("execution-record").events(4, WAIT)
    assert [next(stream).name, next(stream).name] == ["A", "B"]
    stream.close()


def test_h1_who_lies_about_blocks_is_named(client, peers, caplog):
    heights(peers, *[6] * len(peers))
    peers[0].then("ChaincodeEvents", then_waits(announced(900, "lie")))
    peers[1].then("ChaincodeEvents", then_waits(announced(5, "B")))
    stream = client.contract("execution-record").events(4, WAIT)
    next(stream)
    stream.close()
    assert "Org1MSP" in caplog.text
    assert "beyond the end of the chain" in caplog.text


def test_a_long_silence_is_no_lie(client, peers):
    """Blocks without events are left out, however many they are."""
    heights(peers, *[901] * len(peers))
    peers[0].then("ChaincodeEvents", then_waits(announced(900, "A"), announced(905, "B")))
    stream = client.contract("execution-record").events(4, WAIT)
    assert [next(stream).block, next(stream).block] == [900, 905]
    stream.close()


def test_a_block_that_nobody_can_be_asked_about_is_not_taken(client, peers):
    for peer in peers:
        peer.always("Evaluate", lambda request, context: context.abort(Status.UNAVAILABLE, "down"))
        peer.always("ChaincodeEvents", then_waits(announced(900, "A")))
    with pytest.raises(EventsError, match="cannot be asked"):
        next(client.contract("execution-record").events(4, WAIT))


def test_block_after_block_few_are_asked_for(client, peers):
    """Whether others have a block is not asked for each that has events."""
    heights(peers, *[101] * len(peers))
    peers[0].then("ChaincodeEvents", then_waits(*(announced(number, "E") for number in range(60, 90))))
    stream = client.contract("execution-record").events(4, WAIT)
    assert [next(stream).block for _ in range(30)] == [*range(60, 90)]
    stream.close()
    assert max(len(peer.asked["Evaluate"]) for peer in peers) == 3
