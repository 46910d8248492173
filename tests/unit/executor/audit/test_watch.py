"""A stream of blocks, judged as they come: a good one to its end, an altered one to its first violation."""

from dataclasses import dataclass, field

import pytest
from support.tampering import find_block, flipped

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.errors import AuditError, BundleError
from executor.audit.watch import Watch, follow, live_blocks
from executor.errors import LedgerError
from executor.exits import exit_code
from executor.ledger.errors import PhaseError
from executor.ledger.transport import ChainInfo


@pytest.fixture
def watch(recorder):
    return Watch(Anchor(parse_anchor(recorder.genesis)))


def test_a_good_stream_is_verified_block_by_block_and_the_next_watch_goes_on(watch, recorder, tmp_path):
    told, half = [], len(recorder.blocks) // 2
    follow(watch, iter(recorder.blocks[:half]), told.append)
    assert [judged.number for judged in told] == list(range(half))
    assert not any(judged.failures for judged in told)
    assert sum(judged.signatures for judged in told) > half
    watch.keep(tmp_path / "checkpoint")
    with (tmp_path / "checkpoint").open("rb") as file:
        later = Watch(Anchor(), file)
    follow(later, iter(recorder.blocks[half:]), told.append)
    assert told[-1].to_dict()["verified"] is True
    assert later.chain.height == len(recorder.blocks)


def test_h20_an_altered_block_ends_the_watch_at_once_with_exit_code_11(watch, recorder):
    blocks, told = list(recorder.blocks), []
    number = find_block(blocks, b"\0estimator\0")
    blocks[number] = flipped(blocks[number], b'"tree":"', 40)
    with pytest.raises(AuditError) as ended:
        follow(watch, iter(blocks), told.append)
    assert (ended.value.code, exit_code(ended.value)) == ("AUDIT_VIOLATION", 11)
    assert ended.value.cause.startswith(f"block {number}: hash chain: ")
    assert told[-1].number == number


@pytest.mark.parametrize(
    "part", [b"estimator", b"-----BEGIN CERTIFICATE", b'"tx":"', b"Org2MSP", b"0\x44\x02 "]
)
def test_h20_blocks_judged_one_by_one_and_many_ahead_have_the_same_faults(watch, recorder, part):
    blocks = list(recorder.blocks)
    for number in range(9, len(blocks), 7):
        if part in blocks[number]:
            blocks[number] = flipped(blocks[number], part, len(part))
    for raw in blocks:
        watch.take(raw)
    ahead = Watch(watch.chain.anchor)
    for block in ahead.chain.take_ahead(blocks, ahead._replay.foresee):
        for committed in block:
            ahead._replay.take(committed)
    assert watch.findings.failures
    assert ahead.findings.failures == watch.findings.failures
    assert ahead.findings.checked == watch.findings.checked


def test_h18_another_chain_than_that_of_the_checkpoint_ends_the_watch(watch, recorder, tmp_path):
    follow(watch, iter(recorder.blocks[:9]), lambda judged: None)
    watch.keep(tmp_path / "checkpoint")
    with (tmp_path / "checkpoint").open("rb") as file:
        later = Watch(Anchor(), file)
    with pytest.raises(AuditError) as ended:
        follow(later, iter(recorder.blocks[10:]), lambda judged: None)
    assert ended.value.cause.startswith("block 9: hash chain: ")
    with (tmp_path / "checkpoint").open("rb") as file, pytest.raises(BundleError):
        Watch(Anchor(b"\1" * 32), file)


def test_h18_another_channel_ends_the_watch_at_its_first_block(recorder):
    with pytest.raises(AuditError) as ended:
        follow(Watch(Anchor(b"\1" * 32)), iter(recorder.blocks), lambda judged: None)
    assert ended.value.cause.startswith("block 0: anchor: ")


def test_h20_bytes_that_are_no_block_end_the_watch(watch):
    with pytest.raises(AuditError):
        follow(watch, iter([b"\xff\xff"]), lambda judged: None)


@dataclass
class GrowingChannel:
    """A peer whose chain grows with every question, and that is away now and then."""

    blocks: list[bytes]
    asked: int = 0
    refusal: Exception = field(default_factory=lambda: PhaseError("LEDGER_UNREACHABLE", "nobody answers"))

    def chain_info(self):
        self.asked += 1
        if self.asked % 3 == 0:
            raise self.refusal
        return ChainInfo(min(self.asked, len(self.blocks)), b"")

    def block(self, number):
        return self.blocks[number]


def test_blocks_are_followed_as_they_come_until_it_is_over(recorder):
    channel, pauses = GrowingChannel(recorder.blocks[:5]), []
    found = list(live_blocks(channel, 0, lambda: len(pauses) == 9, pauses.append))
    assert found == recorder.blocks[:5]


def test_a_refusal_that_does_not_pass_ends_the_watch(recorder):
    channel = GrowingChannel(recorder.blocks, refusal=LedgerError("LEDGER_BLOCK", "it cannot be read"))
    with pytest.raises(LedgerError):
        list(live_blocks(channel, 0, lambda: False, lambda seconds: None))
