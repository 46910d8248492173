"""Events read from blocks, and a stream of them that survives a lost peer."""

from collections.abc import Iterator
from typing import Any

import pytest
from fabric_protos.peer import chaincode_event_pb2

from executor.errors import LedgerError
from executor.ledger.errors import PhaseError
from executor.ledger.gateway.messages import common, proposal, response, transaction
from executor.ledger.hfc.call import encoded
from executor.ledger.hfc.events import BlockEvents, events_of

VALID, CONFLICT = transaction.VALID, transaction.MVCC_READ_CONFLICT


def envelope(name: str, kind: int = 3, chaincode: str = "image") -> bytes:
    event = chaincode_event_pb2.ChaincodeEvent(
        chaincode_id=chaincode, tx_id=f"tx-{name}", event_name=name, payload=b"\xff" + name.encode()
    )
    action = proposal.ChaincodeAction(events=event.SerializeToString() if name else b"")
    answer = response.ProposalResponsePayload(extension=action.SerializeToString())
    endorsed = transaction.ChaincodeActionPayload(
        action=transaction.ChaincodeEndorsedAction(proposal_response_payload=answer.SerializeToString())
    )
    made = transaction.Transaction(
        actions=[transaction.TransactionAction(payload=endorsed.SerializeToString())]
    )
    header = common.Header(channel_header=common.ChannelHeader(type=kind).SerializeToString())
    payload = common.Payload(header=header, data=made.SerializeToString())
    return bytes(common.Envelope(payload=payload.SerializeToString()).SerializeToString())


def block(number: int, *envelopes: bytes, verdicts: tuple[int, ...] = ()) -> bytes:
    made = common.Block(header=common.BlockHeader(number=number), data=common.BlockData(data=envelopes))
    flags = bytes(verdicts or [VALID] * len(envelopes))
    made.metadata.metadata.extend([b"", b"", flags, b"", b""])
    return bytes(made.SerializeToString())


def test_only_valid_transactions_announce() -> None:
    raw = block(7, envelope("A"), envelope("B"), envelope("C"), verdicts=(VALID, CONFLICT, VALID))
    number, found = events_of(raw)
    assert number == 7
    assert [(name, event.name, event.payload) for name, event in found] == [
        ("image", "A", b"\xffA"),
        ("image", "C", b"\xffC"),
    ]


def test_configuration_and_silent_transactions_have_no_events() -> None:
    assert events_of(block(0, envelope("A", kind=common.CONFIG), envelope(""))) == (0, [])


@pytest.mark.parametrize(
    "raw", [b"\xff", b"", block(1, b"\xff"), block(1, envelope("A"), verdicts=(VALID, VALID))]
)
def test_block_that_cannot_be_read_is_refused(raw: bytes) -> None:
    with pytest.raises(PhaseError) as raised:
        events_of(raw)
    assert (raised.value.code, raised.value.phase) == ("EVENTS_FAILED", "events")


class Source:
    """Plays a worker: each opened stream gives its blocks, and ends with an answer or an error."""

    def __init__(self, *streams: list[Any]) -> None:
        self.streams = list(streams)
        self.opened: list[tuple[int, int]] = []
        self.ended = 0

    def __call__(self, turn: int, start: int, seconds: float) -> Any:
        self.opened.append((turn, start))
        self.current = self.streams.pop(0)
        return self

    def lines(self) -> Iterator[tuple[str, Any]]:
        for item in self.current:
            if isinstance(item, Exception):
                raise item
            yield "block", encoded(item)

    def kill(self) -> None:
        self.ended += 1

    def end(self) -> None:
        self.ended += 1


def test_stream_goes_on_at_the_next_peer_without_gap_or_repetition() -> None:
    lost = PhaseError("EVENTS_FAILED", "the peer has gone", "events")
    source = Source(
        [block(4, envelope("A")), block(5, envelope("B"), envelope("C")), lost], [block(6, envelope("D"))]
    )
    stream = BlockEvents(source, 2, "image", 4, 60)
    assert [next(stream).name for _ in range(4)] == ["A", "B", "C", "D"]
    assert source.opened == [(0, 4), (1, 6)]
    stream.close()


def test_stream_fails_when_each_peer_has_failed() -> None:
    source = Source(*[[PhaseError("EVENTS_FAILED", "gone", "events")] for _ in range(3)])
    with pytest.raises(LedgerError):
        next(BlockEvents(source, 3, "image", 4, 60))
    assert [turn for turn, _ in source.opened] == [0, 1, 2]
    assert source.ended == 3


def test_other_chaincodes_are_left_out_and_a_closed_stream_ends() -> None:
    source = Source([block(4, envelope("A", chaincode="model"), envelope("B"))])
    stream = BlockEvents(source, 1, "image", 4, 60)
    assert next(stream).name == "B"
    stream.close()
    assert list(stream) == []
    assert source.ended


@pytest.mark.parametrize("number", [3, 6, 2**64 - 1])
def test_h1_a_block_that_is_not_the_next_is_a_lost_stream(number: int) -> None:
    """One that leads into the future would leave out all that comes before it."""
    source = Source([block(4, envelope("A")), block(number, envelope("lie"))], [block(5, envelope("B"))])
    stream = BlockEvents(source, 2, "image", 4, 60)
    assert [next(stream).name, next(stream).name] == ["A", "B"]
    assert source.opened == [(0, 4), (1, 5)]
    stream.close()
