"""Saved images: read them, and write them again so that equal content gives equal bytes and one image id.

An engine writes times, host names and build histories into what it builds. Rewriting a saved image keeps what
decides how it runs and what is in its files, and fixes everything else.
"""

import gzip
import hashlib
import json
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Any, cast

from docker import DockerClient

from executor.engine import asking
from executor.errors import EngineError
from executor.user_files import parse_json
from protocol.digest import Digest
from protocol.values import dataclass

EPOCH = 0
CREATED = "1970-01-01T00:00:00Z"
# What of an image's configuration decides how it runs; the rest is the build's own diary.
_RUNS = (
    "Cmd", "Entrypoint", "Env", "ExposedPorts", "Healthcheck", "Labels", "OnBuild", "Shell", "StopSignal",
    "User", "Volumes", "WorkingDir",
)  # fmt: skip
_MACHINE = ("architecture", "os", "variant", "os.version")
_BLOCK = 1 << 20
MAX_BLOB = 4 << 20
_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"


@dataclass(frozen=True)
class SavedImage:
    """One image in an open archive of `docker save`, old layout or OCI: its configuration and its layers."""

    archive: tarfile.TarFile
    config: bytes
    layers: tuple[str, ...]

    @classmethod
    def read(cls, archive: tarfile.TarFile) -> "SavedImage":
        """Find the one image of the archive."""
        try:
            (entry,) = parse_json(_content(archive, "manifest.json"))
            return cls(archive, _content(archive, entry["Config"]), tuple(entry["Layers"]))
        except (KeyError, ValueError, TypeError) as error:
            raise EngineError(
                "IMAGE_ARCHIVE",
                f"the engine saved the image in a form that is not known: {error!r}",
            ) from error

    @property
    def image_id(self) -> Digest:
        """The digest of the configuration, which is what an engine calls the image."""
        return Digest.of(self.config)

    def blob(self, digest: Digest) -> bytes:
        """Return what the archive, if it has OCI's layout, has under a digest; the bytes are not hashed."""
        name = f"blobs/sha256/{digest.hex}"
        try:
            if self.archive.getmember(name).size <= MAX_BLOB:
                return _content(self.archive, name)
        except KeyError:
            pass
        raise EngineError("IMAGE_ARCHIVE", f"the engine saved the image without its manifest {digest}")

    def diff_ids(self) -> tuple[Digest, ...]:
        """Hash every layer's files as they were saved, or as they were before they were compressed."""
        return tuple(_hashed(_decompressed(self._open(layer))) for layer in self.layers)

    def registered_diff_ids(self) -> tuple[Digest, ...]:
        """Return what the configuration says the layers' hashes are."""
        return tuple(Digest.parse(text) for text in parse_json(self.config)["rootfs"]["diff_ids"])

    @contextmanager
    def layer(self, name: str) -> Iterator[tarfile.TarFile]:
        """Open a layer, compressed or not."""
        with tarfile.open(fileobj=self._open(name), mode="r:*") as layer:
            yield layer

    def _open(self, name: str) -> IO[bytes]:
        stream = self.archive.extractfile(name)
        if stream is None:
            raise KeyError(name)
        return stream


@contextmanager
def scratch() -> Iterator[Path]:
    """Yield a directory for archives, gone afterwards; a disk that has no room for them is an EngineError."""
    try:
        with TemporaryDirectory(prefix="attestree-image-") as folder:
            yield Path(folder)
    except OSError as error:
        raise EngineError(
            "IMAGE_ARCHIVE",
            f"the image could not be kept on this disk: {error}",
            case="disk",
        ) from error


def save(client: DockerClient, image: str, path: Path) -> None:
    """Have the engine write an image into a file."""
    with asking("save the image"), path.open("wb") as stream:
        for block in client.images.get(image).save(chunk_size=_BLOCK):
            stream.write(block)


def rewrite(source: Path, target: Path, tags: tuple[str, ...]) -> Digest:
    """Write the image saved in `source` to `target` in its one form, and return the id it will have."""
    with (
        tarfile.open(source, "r:") as archive,
        TemporaryDirectory(dir=target.parent) as folder,
        tarfile.open(target, "w:", format=tarfile.PAX_FORMAT) as written,
    ):
        saved = SavedImage.read(archive)
        layers = []
        for number, name in enumerate(saved.layers):
            path = Path(folder, f"{number}.tar")
            with saved.layer(name) as layer:
                rewrite_layer(layer, path)
            with path.open("rb") as stream:
                layers.append((_hashed(stream), path))
        config = rewrite_config(saved.config, [digest for digest, _ in layers])
        image_id = Digest.of(config)
        _add(written, f"{image_id.hex}.json", config)
        for digest, path in layers:
            _add_file(written, f"{digest.hex}/layer.tar", path)
        entry = {
            "Config": f"{image_id.hex}.json",
            "Layers": [f"{digest.hex}/layer.tar" for digest, _ in layers],
            "RepoTags": list(tags),
        }
        _add(written, "manifest.json", json.dumps([entry]).encode())
    return image_id


def rewrite_layer(layer: tarfile.TarFile, target: Path) -> None:
    """Write a layer's entries by name, without times and owners' names, links after what they link to."""
    members = layer.getmembers()
    first = _first_names(members)
    with tarfile.open(target, "w:", format=tarfile.PAX_FORMAT) as written:
        for member in sorted(members, key=lambda member: (member.name in first, member.name)):
            entry = _bare(member)
            if member.name in first:
                entry.type, entry.linkname, entry.size = tarfile.LNKTYPE, first[member.name], 0
                written.addfile(entry)
            elif member.isreg() or member.islnk():
                holder = _holder(layer, member)
                entry.type, entry.linkname, entry.size = tarfile.REGTYPE, "", holder.size
                written.addfile(entry, layer.extractfile(holder))
            else:
                written.addfile(entry)


def rewrite_config(config: bytes, diff_ids: list[Digest]) -> bytes:
    """Return the configuration with what decides how the image runs, and nothing of how it was built."""
    found: dict[str, Any] = parse_json(config)
    runs = found.get("config") or {}
    kept = {
        **{name: found[name] for name in _MACHINE if found.get(name)},
        "config": {name: runs[name] for name in _RUNS if runs.get(name)},
        "created": CREATED,
        "history": [{"created": CREATED, "created_by": "executor image build"} for _ in diff_ids],
        "rootfs": {"type": "layers", "diff_ids": [str(digest) for digest in diff_ids]},
    }
    return json.dumps(kept, sort_keys=True, separators=(",", ":")).encode()


def _first_names(members: list[tarfile.TarInfo]) -> dict[str, str]:
    """Map the names of a file with several to the least of them: which one the engine put first is chance."""
    groups: dict[str, list[str]] = {}
    for member in members:
        if member.islnk():
            groups.setdefault(member.linkname, [member.linkname]).append(member.name)
    return {name: min(names) for names in groups.values() for name in names if name != min(names)}


def _holder(layer: tarfile.TarFile, member: tarfile.TarInfo) -> tarfile.TarInfo:
    """Follow hard links to the entry that holds the content."""
    while member.islnk():
        member = layer.getmember(member.linkname)
    return member


def _bare(member: tarfile.TarInfo) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(member.name)
    entry.type, entry.linkname = member.type, member.linkname
    entry.mode, entry.uid, entry.gid = member.mode & 0o7777, member.uid, member.gid
    entry.devmajor, entry.devminor = member.devmajor, member.devminor
    entry.mtime = EPOCH
    return entry


def _content(archive: tarfile.TarFile, name: str) -> bytes:
    stream = archive.extractfile(name)
    if stream is None:
        raise KeyError(name)
    return stream.read()


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = len(content), EPOCH
    archive.addfile(entry, BytesIO(content))


def _add_file(archive: tarfile.TarFile, name: str, path: Path) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = path.stat().st_size, EPOCH
    with path.open("rb") as stream:
        archive.addfile(entry, stream)


def _decompressed(stream: IO[bytes]) -> IO[bytes]:
    """Undo gzip where a layer has it; an engine with containerd's store keeps layers as they were pulled."""
    first = stream.read(len(_ZSTD))
    stream.seek(0)
    if first.startswith(_GZIP):
        return cast("IO[bytes]", gzip.GzipFile(fileobj=stream))
    if first == _ZSTD:
        raise EngineError("IMAGE_ARCHIVE", "a layer is compressed with zstd, which cannot be read here")
    return stream


def _hashed(stream: IO[bytes]) -> Digest:
    digest = hashlib.sha256()
    while block := stream.read(_BLOCK):
        digest.update(block)
    return Digest(digest.digest())
