"""Saved images written again: equal content gives equal bytes, whatever the engine left to chance."""

import gzip
import io
import json
import random
import tarfile
from pathlib import Path
from typing import Any

import pytest

from executor.errors import EngineError
from executor.image.archive import CREATED, SavedImage, rewrite, rewrite_config
from protocol.digest import Digest

FILES = {"bin/tool": b"tool", "etc/zone": b"zone", "etc/alias": b"alias", "usr/a-b": b"1", "usr/a/b": b"2"}


def layer(chance: random.Random, links: dict[str, str] | None = None) -> bytes:
    """A layer with the files in some order at some times; `links` are hard links by name."""
    packed = io.BytesIO()
    names = sorted(FILES)
    chance.shuffle(names)
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in names:
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode, entry.uid = len(FILES[name]), 0o640, 10
            entry.mtime = chance.randint(1, 10**9) + chance.random()
            entry.uname = f"user{chance.randint(1, 99)}"
            archive.addfile(entry, io.BytesIO(FILES[name]))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.mtime = tarfile.LNKTYPE, target, chance.randint(1, 10**9)
            archive.addfile(entry)
        directory = tarfile.TarInfo("empty")
        directory.type, directory.mode = tarfile.DIRTYPE, 0o1777
        archive.addfile(directory)
        shortcut = tarfile.TarInfo("shortcut")
        shortcut.type, shortcut.linkname = tarfile.SYMTYPE, "etc/zone"
        archive.addfile(shortcut)
    return packed.getvalue()


def saved(path: Path, chance: random.Random, layers: list[bytes], **settings: Any) -> Path:
    """What `docker save` writes, with some build's own history in the configuration."""
    config = {
        "architecture": "amd64",
        "os": "linux",
        "created": f"2026-01-{chance.randint(10, 28)}T00:00:00Z",
        "container": f"{chance.random()}",
        "docker_version": "20.10",
        "config": {"User": "10001", "Env": ["B=1", "A=2"], "Hostname": f"{chance.random()}", **settings},
        "history": [{"created": f"{chance.random()}", "created_by": "chance"}],
        "rootfs": {"type": "layers", "diff_ids": [str(Digest.of(raw)) for raw in layers]},
    }
    entry = {"Config": "config.json", "RepoTags": None, "Layers": [f"{n}.tar" for n in range(len(layers))]}
    content = {
        "config.json": json.dumps(config).encode(),
        **{f"{n}.tar": raw for n, raw in enumerate(layers)},
        "manifest.json": json.dumps([entry]).encode(),
    }
    with tarfile.open(path, "w") as archive:
        for name, raw in content.items():
            info = tarfile.TarInfo(name)
            info.size = len(raw)
            archive.addfile(info, io.BytesIO(raw))
    return path


def entries(path: Path, number: int = 0) -> list[tarfile.TarInfo]:
    with tarfile.open(path) as archive:
        found = SavedImage.read(archive)
        with found.layer(found.layers[number]) as opened:
            return opened.getmembers()


@pytest.mark.parametrize("seed", range(5))
def test_two_builds_of_the_same_content_get_one_id_and_the_same_bytes(tmp_path: Path, seed: int) -> None:
    ids, bytes_ = set(), set()
    for run in range(2):
        chance = random.Random(f"{seed} {run}")
        path = saved(tmp_path / "saved.tar", chance, [layer(chance)])
        ids.add(rewrite(path, tmp_path / "fixed.tar", ("name:tag",)))
        bytes_.add((tmp_path / "fixed.tar").read_bytes())
    assert len(ids) == len(bytes_) == 1


def test_other_content_gets_another_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def made() -> Digest:
        chance = random.Random(1)
        return rewrite(saved(tmp_path / "s.tar", chance, [layer(chance)]), tmp_path / "f.tar", ())

    first = made()
    monkeypatch.setitem(FILES, "bin/tool", b"evil")
    assert made() != first


@pytest.mark.parametrize("settings", [{"User": "0"}, {"Entrypoint": ["/bin/sh"]}, {"Volumes": {"/data": {}}}])
def test_other_settings_get_another_id(tmp_path: Path, settings: dict[str, Any]) -> None:
    raw = [layer(random.Random(1))]
    plain = rewrite(saved(tmp_path / "s.tar", random.Random(1), raw), tmp_path / "f.tar", ())
    assert (
        rewrite(saved(tmp_path / "s.tar", random.Random(1), raw, **settings), tmp_path / "f.tar", ()) != plain
    )


def test_contents_modes_and_owners_stay_and_times_go(tmp_path: Path) -> None:
    chance = random.Random(1)
    rewrite(saved(tmp_path / "saved.tar", chance, [layer(chance)]), tmp_path / "fixed.tar", ())
    found = {entry.name: entry for entry in entries(tmp_path / "fixed.tar")}
    assert set(found) == {*FILES, "empty", "shortcut"}
    assert all(entry.mtime == 0 and entry.uname == "" for entry in found.values())
    assert (found["bin/tool"].mode, found["bin/tool"].uid) == (0o640, 10)
    assert found["empty"].mode == 0o1777
    assert found["shortcut"].linkname == "etc/zone"
    with tarfile.open(tmp_path / "fixed.tar") as archive:
        image = SavedImage.read(archive)
        with image.layer(image.layers[0]) as opened:
            for name, content in FILES.items():
                stream = opened.extractfile(name)
                assert stream is not None
                assert stream.read() == content


def test_which_name_of_a_linked_file_came_first_is_no_matter(tmp_path: Path) -> None:
    """The same two names of one file: once as a link from b to a, once from a to b."""
    ids = set()
    for first, second in (("etc/aa", "etc/zz"), ("etc/zz", "etc/aa")):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            entry = tarfile.TarInfo(first)
            entry.size = 4
            archive.addfile(entry, io.BytesIO(b"both"))
            link = tarfile.TarInfo(second)
            link.type, link.linkname = tarfile.LNKTYPE, first
            archive.addfile(link)
        path = saved(tmp_path / "saved.tar", random.Random(1), [packed.getvalue()])
        ids.add(rewrite(path, tmp_path / "fixed.tar", ()))
        held, linked = entries(tmp_path / "fixed.tar")
        assert (held.name, held.size, held.isreg()) == ("etc/aa", 4, True)
        assert (linked.name, linked.linkname, linked.islnk()) == ("etc/zz", "etc/aa", True)
    assert len(ids) == 1


def test_links_follow_what_they_link_to_even_along_a_chain(tmp_path: Path) -> None:
    chance = random.Random(3)
    links = {"aaa": "usr/a/b", "bbb": "aaa"}
    rewrite(saved(tmp_path / "saved.tar", chance, [layer(chance, links)]), tmp_path / "fixed.tar", ())
    seen: set[str] = set()
    for entry in entries(tmp_path / "fixed.tar"):
        assert not entry.islnk() or entry.linkname in seen
        seen.add(entry.name)
    with tarfile.open(tmp_path / "fixed.tar") as archive:
        image = SavedImage.read(archive)
        with image.layer(image.layers[0]) as opened:
            for name in ("aaa", "bbb", "usr/a/b"):
                stream = opened.extractfile(name)
                assert stream is not None
                assert stream.read() == b"2"


def test_the_written_image_is_consistent_in_itself(tmp_path: Path) -> None:
    chance = random.Random(1)
    path = saved(tmp_path / "saved.tar", chance, [layer(chance), layer(chance)])
    image_id = rewrite(path, tmp_path / "fixed.tar", ())
    with tarfile.open(tmp_path / "fixed.tar") as archive:
        image = SavedImage.read(archive)
        assert image.image_id == image_id
        assert image.diff_ids() == image.registered_diff_ids()


def test_a_compressed_layer_is_the_same_layer(tmp_path: Path) -> None:
    raw = layer(random.Random(1))
    plain = rewrite(saved(tmp_path / "s.tar", random.Random(1), [raw]), tmp_path / "f.tar", ())
    packed = saved(tmp_path / "s.tar", random.Random(1), [gzip.compress(raw)])
    assert rewrite(packed, tmp_path / "f.tar", ()) == plain


def test_configuration_keeps_what_decides_how_it_runs() -> None:
    config = {
        "architecture": "arm64",
        "os": "linux",
        "variant": "v8",
        "created": "now",
        "config": {
            "Env": ["B=1", "A=2"],
            "User": "10001",
            "Hostname": "abc",
            "Image": "sha256:1",
            "Cmd": None,
        },
        "container_config": {},
    }
    kept = json.loads(rewrite_config(json.dumps(config).encode(), [Digest(bytes(32))]))
    assert kept["config"] == {"Env": ["B=1", "A=2"], "User": "10001"}
    assert (kept["architecture"], kept["variant"], kept["created"]) == ("arm64", "v8", CREATED)
    assert set(kept) == {"architecture", "config", "created", "history", "os", "rootfs", "variant"}


def test_an_archive_of_another_form_is_refused(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "saved.tar", "w") as archive:
        archive.addfile(tarfile.TarInfo("index.json"))
    with pytest.raises(EngineError) as caught:
        rewrite(tmp_path / "saved.tar", tmp_path / "fixed.tar", ())
    assert caught.value.code == "IMAGE_ARCHIVE"
