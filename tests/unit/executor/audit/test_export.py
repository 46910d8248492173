"""An export holds what a peer serves, from the first block or from a checkpoint's height on."""

from types import SimpleNamespace

import pytest
from support.memory.audited import PROCESS, audited

from executor.audit.export import export_channel
from executor.errors import LedgerError, UsageError


class Peer:
    """Serves the blocks of a channel that was recorded."""

    def __init__(self, blocks):
        self.block = blocks.__getitem__
        self.chain_info = lambda: SimpleNamespace(height=len(blocks))


@pytest.fixture
def write(tmp_path):
    recorder = audited().recorder

    def made(**options):
        file = tmp_path / "channel.tar"
        found = export_channel(Peer(recorder.blocks), PROCESS, file, **options)
        assert found.genesis == recorder.genesis
        assert found.bytes == file.stat().st_size
        return found.blocks, file.read_bytes()

    return made


@pytest.mark.parametrize("first", [0, 1, 20, 45])
def test_an_export_has_one_form_wherever_it_begins(write, recorder, first):
    blocks = len(recorder.blocks) - first
    assert write(first=first) == (blocks, recorder.bundle(process=PROCESS, first=first))


def test_an_export_ends_at_the_height_that_is_asked_for(write, recorder):
    assert write(height=20) == (20, recorder.bundle(process=PROCESS, blocks=recorder.blocks[:20]))


def test_an_export_beyond_the_end_of_the_channel_is_refused_and_leaves_nothing(write, recorder, tmp_path):
    with pytest.raises(UsageError) as refused:
        write(first=len(recorder.blocks))
    assert refused.value.code == "AUDIT_HEIGHT"
    assert list(tmp_path.iterdir()) == []


def test_h20_a_peer_whose_last_block_names_no_configuration_is_refused(recorder, tmp_path):
    last = [*recorder.blocks]
    for number in range(1, len(last) - 1):
        last[number] = recorder.blocks[1]
    with pytest.raises(LedgerError) as refused:
        export_channel(Peer(last), PROCESS, tmp_path / "channel.tar")
    assert refused.value.code == "LEDGER_BLOCK"
