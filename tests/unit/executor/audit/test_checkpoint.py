"""An audit goes on from where an earlier one stood, and sees through a file or a chain that is another."""

import io
import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from support.memory.audited import PROCESS
from support.tampering import find_block, flipped

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.checkpoint import read_checkpoint
from executor.audit.errors import BundleError
from executor.audit.fabric.validation import Validator
from executor.audit.verify import verify_bundle
from executor.cli import main


@pytest.fixture(scope="session")
def height(recorder):
    return len(recorder.blocks) // 2


@pytest.fixture(scope="session")
def kept(tmp_path_factory, recorder, height):
    """The checkpoint of a run over the first half of the channel, and of one over all of it."""
    folder = tmp_path_factory.mktemp("checkpoint")
    for name, count in (("half", height), ("whole", len(recorder.blocks))):
        raw = recorder.bundle(blocks=recorder.blocks[:count])
        anchor = Anchor(parse_anchor(recorder.genesis))
        verify_bundle(io.BytesIO(raw), anchor, checkpoint=folder / name)
    return folder


@pytest.fixture
def resumed(kept, tmp_path):
    def verify(raw, file=None, **options):
        return verify_bundle(io.BytesIO(raw), Anchor(), resume=file or (kept / "half").open("rb"), **options)

    return verify


def test_a_later_run_goes_on_and_comes_to_the_same_end(resumed, kept, raw_export, tmp_path, height):
    found = resumed(raw_export, checkpoint=tmp_path / "again")
    assert found.verified
    assert found.to_dict()["from"] == height
    assert (tmp_path / "again").read_bytes() == (kept / "whole").read_bytes()
    assert any("an earlier run verified them" in sentence for sentence in found.not_proven)


def test_only_its_owner_may_read_a_checkpoint(kept):
    assert (kept / "half").stat().st_mode & 0o777 == 0o600


def test_h20_what_is_altered_after_the_checkpoint_is_found(resumed, export, height):
    number = find_block([b"", *export.blocks[height:]], b'"signature":"') + height - 1
    found = resumed(export.with_block(number, flipped(export.blocks[number], b'"signature":"', 4)).write())
    assert {failure.claim for failure in found.failures} >= {"hash chain", "creators"}


def test_h18_another_chain_than_the_one_verified_before_is_found(resumed, export, recorder, height):
    """One orderer that shows two chains, each sound in itself."""
    again = export.forged(height - 2, recorder.orderer, lambda block: block.data.data.append(b"more"))
    found = resumed(again.write())
    assert "checkpoint" in {failure.claim for failure in found.failures}
    assert not found.verified


def test_h20_another_channel_than_that_of_the_checkpoint_is_found(resumed, export):
    with pytest.raises(BundleError) as refused:
        resumed(export.with_block(0, export.blocks[1]).write())
    assert refused.value.code == "BUNDLE_FORMAT"


def test_an_export_that_ends_before_the_checkpoint_is_refused(resumed, recorder, height):
    with pytest.raises(BundleError) as refused:
        resumed(recorder.bundle(blocks=recorder.blocks[: height - 1]))
    assert refused.value.code == "CHECKPOINT_AHEAD"


def test_an_export_from_the_checkpoint_on_comes_to_the_same_end(resumed, kept, recorder, tmp_path, height):
    found = resumed(recorder.bundle(first=height, process=PROCESS), checkpoint=tmp_path / "again")
    assert found.verified
    assert (tmp_path / "again").read_bytes() == (kept / "whole").read_bytes()


def test_h18_an_export_from_the_checkpoint_on_of_another_chain_is_found(resumed, export, recorder, height):
    again = export.forged(height - 2, recorder.orderer, lambda block: block.data.data.append(b"more"))
    raw = recorder.bundle(first=height, process=PROCESS, blocks=again.blocks)
    found = resumed(raw)
    assert f"block {height}: it follows another block" in [
        f"{item.where}: {item.what}" for item in found.failures
    ]


def test_h20_an_export_that_begins_elsewhere_than_the_checkpoint_ends_is_refused(resumed, recorder, height):
    for first in (1, height - 1, height + 1):
        with pytest.raises(BundleError) as refused:
            resumed(recorder.bundle(first=first))
        assert refused.value.code == "BUNDLE_BEGINNING"
    with pytest.raises(BundleError) as refused:
        verify_bundle(io.BytesIO(recorder.bundle(first=height)), Anchor(parse_anchor(recorder.genesis)))
    assert refused.value.code == "BUNDLE_BEGINNING"


def test_h20_an_export_from_the_checkpoint_on_of_another_channel_is_found(kept, recorder, height):
    raw, file = recorder.bundle(first=height, process=PROCESS), (kept / "half").open("rb")
    found = verify_bundle(io.BytesIO(raw), Anchor(b"\1" * 32), resume=file)
    assert [failure.claim for failure in found.failures] == ["anchor"]


@given(st.data())
def test_h20_a_damaged_checkpoint_is_refused_wherever_the_damage_is(kept, data):
    raw = bytearray((kept / "half").read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    if data.draw(st.booleans()):
        raw[place] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del raw[place:]
    with pytest.raises(BundleError) as refused:
        read_checkpoint(io.BytesIO(bytes(raw)), Validator())
    assert refused.value.code == "CHECKPOINT_FORMAT"


def test_a_checkpoint_is_an_anchor_and_a_wrong_file_is_none(kept, tmp_path, raw_export):
    file = tmp_path / "channel.tar"
    file.write_bytes(raw_export)
    words = ["audit", "verify", str(file), "--json", "--from"]
    ran = CliRunner().invoke(main, [*words, str(kept / "half")])
    assert (ran.exit_code, json.loads(ran.stdout)["verified"]) == (0, True)
    ran = CliRunner().invoke(main, [*words, str(file)])
    assert (ran.exit_code, json.loads(ran.stdout)["error"]["code"]) == (14, "CHECKPOINT_FORMAT")
