"""An export has one form; every other is refused by name, whatever the bytes, and nothing is unpacked."""

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.memory.audited import audited
from support.tampering import Export

from executor.audit.bundle import MANIFEST, RECORD, Manifest, _header, block_name, read_members
from executor.audit.chain import Anchor
from executor.audit.errors import BundleError
from executor.audit.verify import verify_bundle
from protocol.errors import AttestreeError

RAW = audited().recorder.bundle()
STARTS = [sum(RECORD + len(c) + -len(c) % RECORD for _, c in Export.read(RAW).members[:n]) for n in range(4)]


def refused(raw):
    with pytest.raises(BundleError) as refusal:
        verify_bundle(io.BytesIO(raw), Anchor(b"\0" * 32))
    return refusal.value.code


def test_the_same_channel_is_exported_to_the_same_bytes():
    assert Export.read(RAW).write() == RAW == audited().recorder.bundle()


def test_other_programs_read_it():
    with tarfile.open(fileobj=io.BytesIO(RAW)) as found:
        assert found.getnames() == [name for name, _ in Export.read(RAW).members]


@pytest.mark.parametrize("size", [0, 1, 511, 512, 700, 5000, len(RAW) - 1, len(RAW) - 512])
def test_h20_a_truncated_export_is_refused(size):
    assert refused(RAW[:size]) == "BUNDLE_TRUNCATED"


def test_h20_what_follows_the_end_is_refused():
    assert refused(RAW + b"\0") == "BUNDLE_FORMAT"
    assert refused(RAW[:-1] + b"\1") == "BUNDLE_FORMAT"


@pytest.mark.parametrize("first", [b"no block", b"", audited().recorder.blocks[1]])
def test_h20_an_export_whose_first_block_is_none_is_refused(first):
    """Whatever follows is judged by it."""
    recorder = audited().recorder
    assert refused(recorder.bundle(blocks=[first, *recorder.blocks[1:]])) == "BUNDLE_FORMAT"


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "/etc/passwd", "blocks/../x", "blocks/1.block", "extra", "blocks/000000000é.block"],
)
def test_h20_a_member_that_points_elsewhere_is_refused(name):
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as made:
        made.addfile(tarfile.TarInfo(name))
    assert refused(file.getvalue()) == "BUNDLE_MEMBER"


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_h20_a_member_that_is_no_plain_file_is_refused(kind):
    info = tarfile.TarInfo(MANIFEST)
    info.type, info.linkname = kind, "/etc/passwd"
    assert refused(info.tobuf(tarfile.USTAR_FORMAT) + bytes(1024)) == "BUNDLE_FORMAT"


def test_h20_a_huge_member_is_refused_before_it_is_read():
    assert refused(_header(block_name(0), 8**11 - 1)) == "BUNDLE_SIZE"


@pytest.mark.parametrize(
    "manifest",
    [
        b"{}",
        b"[]",
        b"\xff",
        b"[" * 5000,
        b'{"a":' * 3000,
        Manifest("c", "p", 1, "g").to_bytes().replace(b":1,", b":01,"),
    ],
)
def test_h20_a_manifest_in_another_form_is_refused(manifest):
    assert refused(Export([(MANIFEST, manifest), *Export.read(RAW).members[1:]]).write()) == "BUNDLE_FORMAT"


@pytest.mark.parametrize("first", [b"0", b"-1", b"1", b"2", b"true", b'"1"'])
def test_h20_a_first_block_that_is_none_is_refused(first):
    raw = Manifest("c", "p", 1, "g").to_bytes().replace(b'"format"', b'"first":' + first + b',"format"')
    with pytest.raises(BundleError) as refused:
        Manifest.from_bytes(raw)
    assert refused.value.code == "BUNDLE_FORMAT"


def test_h20_a_later_version_is_refused():
    raw = Manifest("c", "p", 1, "g").to_bytes().replace(b'"version":1', b'"version":2')
    assert refused(Export([(MANIFEST, raw)]).write()) == "BUNDLE_VERSION"


def test_h20_a_missing_a_repeated_and_a_reordered_block_are_refused():
    members = Export.read(RAW).members
    assert refused(Export([*members[:5], *members[6:]]).write()) == "BUNDLE_BLOCKS"
    assert refused(Export([*members[:5], members[4], *members[5:]]).write()) == "BUNDLE_BLOCKS"
    assert refused(Export([*members[:5], members[6], members[5], *members[7:]]).write()) == "BUNDLE_BLOCKS"
    assert refused(Export(members[:9]).write()) == "BUNDLE_BLOCKS"


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=3000))
def test_arbitrary_bytes_are_refused_by_a_code(raw):
    with pytest.raises(AttestreeError):
        verify_bundle(io.BytesIO(raw), Anchor(b"\0" * 32))


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(STARTS), st.integers(0, RECORD - 1), st.integers(0, 7))
def test_h20_every_bit_of_a_header_has_a_meaning(start, place, bit):
    raw = bytearray(RAW[: STARTS[-1] + 1024])
    raw[start + place] ^= 1 << bit
    with pytest.raises(AttestreeError):
        list(read_members(io.BytesIO(raw)))


@settings(max_examples=60, deadline=None)
@given(st.binary(min_size=1, max_size=400))
def test_arbitrary_bytes_in_place_of_the_first_block_are_refused_by_a_code(raw):
    members = Export.read(RAW).members
    with pytest.raises(AttestreeError):
        verify_bundle(io.BytesIO(Export([members[0], (block_name(0), raw)]).write()), Anchor(b"\0" * 32))
