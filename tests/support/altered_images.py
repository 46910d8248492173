"""Images that are not what they are taken for: made from the learner's, pushed, registered under lies."""

import io
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from docker import DockerClient

from executor.image.registry import ImageRegistry
from executor.network import Network
from protocol.digest import Digest
from support.channel import unique
from support.images import push
from support.launching import ledger


@contextmanager
def derived(
    client: DockerClient, image: Digest, files: Mapping[str, bytes], changes: list[str] | None = None
) -> Iterator[Digest]:
    """An image with other files and settings on top; it is gone from the engine afterwards."""
    base = client.api.create_container(str(image))
    try:
        client.api.put_archive(base["Id"], "/", _packed(files))
        made = client.api.commit(base["Id"], changes=changes or [])["Id"]
    finally:
        client.api.remove_container(base["Id"], v=True)
    try:
        yield Digest.parse(made)
    finally:
        client.api.remove_image(made, force=True)


def _packed(files: Mapping[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def registered(client: DockerClient, name: str, served: Digest, claimed: Digest) -> str:
    """Push one image and register it under the id of another, as a liar would; returns NAME:VERSION."""
    version, host = unique("1"), ImageRegistry.of_network(Network.load()).host
    manifest = push(client, served, f"{host}/{name}", version)
    ledger("org1", "data-scientist").images.register(name, version, manifest, claimed, f"{host}/{name}")
    return f"{name}:{version}"
