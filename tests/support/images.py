"""Images of a few bytes, a registry of one's own to break, and whoever else can push."""

import fcntl
import io
import json
import ssl
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from docker import DockerClient
from docker.errors import ImageNotFound
from docker.models.containers import Container

from executor.image.registry import ImageRegistry
from executor.network import Network
from protocol.agreement.image import Image
from protocol.digest import Digest
from support.network import PROJECT, ROOT, until

MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
INDEX = "application/vnd.oci.image.index.v1+json"
TYPES = {
    "docker": (
        MANIFEST,
        "application/vnd.docker.container.image.v1+json",
        "application/vnd.docker.image.rootfs.diff.tar.gzip",
    ),
    "oci": (
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.oci.image.config.v1+json",
        "application/vnd.oci.image.layer.v1.tar+gzip",
    ),
}
"""The media types of a manifest, its configuration and its layers."""
CONFIG = b"""version: 0.1
log: { level: error, accesslog: { disabled: true } }
storage: { filesystem: { rootdirectory: /tmp }, delete: { enabled: true } }
http: { addr: ":5000" }
"""


@contextmanager
def one_at_a_time(what: str) -> Iterator[None]:
    """Keep the other processes of a test run out while one makes what all of them use."""
    with (Network.load().state / f"{what}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def pack(**files: bytes) -> bytes:
    """A tar archive of these files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return packed.getvalue()


def tiny_image(client: DockerClient, content: str, tag: str) -> Digest:
    """Import an image with one file and tag it; returns its id."""
    repository, _, version = tag.rpartition(":")
    client.api.import_image_from_data(
        pack(content=content.encode()), repository=repository, tag=version, changes=['CMD ["/content"]']
    )
    return Digest.parse(str(client.images.get(tag).id))


def push(client: DockerClient, image: Digest, repository: str, tag: str) -> Digest:
    """Push an image as anybody can; returns the digest of its manifest."""
    client.api.tag(str(image), repository, tag)
    events = list(client.api.push(repository, tag=tag, stream=True, decode=True))
    assert not any("error" in event for event in events), events
    return Digest.parse(next(event["aux"]["Digest"] for event in events if "Digest" in event.get("aux", {})))


def forget(client: DockerClient, repository: str) -> None:
    """Remove every tag and digest of a repository from the engine, and images with no other name."""
    for image in client.images.list(name=repository):
        for name in [*image.tags, *image.attrs["RepoDigests"]]:
            if name.startswith((f"{repository}:", f"{repository}@")):
                # With a repository's last tag go its digests.
                with suppress(ImageNotFound):
                    client.api.remove_image(name)


def has(client: DockerClient, image: Digest) -> bool:
    """Whether the engine has the image."""
    try:
        client.images.get(str(image))
    except ImageNotFound:
        return False
    return True


def registered(image_id: Digest, manifest: Digest, repository: str) -> Image:
    """A record as the ledger would have it."""
    return Image("test/image", "1", manifest, image_id, repository)


@dataclass(frozen=True)
class OwnRegistry:
    """A registry of the test's own, without TLS on loopback; it allows deletion and can be stopped."""

    container: Container
    host: str

    def request(self, method: str, path: str, body: bytes = b"", kind: str = MANIFEST) -> bytes:
        """Speak to it as a client does."""
        return _request(HTTPConnection(self.host, timeout=150), method, path, body, kind)

    def answers(self) -> bool:
        try:
            return self.request("GET", "/v2/") is not None
        except OSError:
            time.sleep(0.1)  # until it is asked again
            return False


def request(
    registry: ImageRegistry, method: str, path: str, body: bytes = b"", kind: str = MANIFEST
) -> bytes:
    """Speak to the network's registry as a client does."""
    context = ssl.create_default_context(cafile=registry.authority)
    connection = HTTPSConnection(registry.host, timeout=150, context=context)
    return _request(connection, method, path, body, kind)


def _request(connection: HTTPConnection, method: str, path: str, body: bytes, kind: str) -> bytes:
    """Return the body of a success; anything else fails the test."""
    with closing(connection):
        connection.request(method, path, body or None, {"Content-Type": kind, "Accept": kind})
        answer = connection.getresponse()
        said = answer.read()
    assert answer.status < 300, (answer.status, said)
    return said


@contextmanager
def own_registry(client: DockerClient) -> Iterator[OwnRegistry]:
    """Start a registry from the network's image; it is gone afterwards."""
    settings = dict(
        line.split("=", 1)
        for line in (ROOT / "network/state" / PROJECT / "compose.env").read_text().splitlines()
    )
    container = client.containers.create(
        settings["REGISTRY_IMAGE"],
        ["registry", "serve", "/registry.yml"],
        ports={"5000/tcp": ("127.0.0.1", None)},
        # An engine may be run without its default bridge.
        network=f"{PROJECT}_default",
        labels={"attestree.test": PROJECT},
    )
    try:
        container.put_archive("/", pack(**{"registry.yml": CONFIG}))
        container.start()
        container.reload()
        port = container.ports["5000/tcp"][0]["HostPort"]
        registry = OwnRegistry(container, f"127.0.0.1:{port}")
        until(150, "the test's registry", registry.answers)
        yield registry
    finally:
        container.remove(force=True, v=True)


@contextmanager
def relabelled(registry: OwnRegistry, kind: str) -> Iterator[str]:
    """Serve what a registry serves, but say of every manifest that it is of another type; yields the host."""

    class Relabelling(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            with closing(HTTPConnection(registry.host, timeout=150)) as behind:
                behind.request(self.command, self.path, headers={"Accept": self.headers["Accept"] or "*/*"})
                answer = behind.getresponse()
                body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                if name.lower() in ("content-type", "content-length", "docker-content-digest"):
                    lie = name.lower() == "content-type" and "/manifests/" in self.path
                    self.send_header(name, kind if lie else value)
            self.end_headers()
            self.wfile.write(body)

        do_HEAD = do_GET  # noqa: N815

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Relabelling) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def as_type(maker: str, raw: bytes) -> tuple[bytes, str]:
    """Write a manifest with the media types of `docker` or of `oci`; returns it with its own type."""
    manifest, config, layer = TYPES[maker]
    found = json.loads(raw) | {"mediaType": manifest}
    found["config"]["mediaType"] = config
    for part in found["layers"]:
        part["mediaType"] = layer
    return json.dumps(found).encode(), manifest


def index_of(entries: list[dict[str, Any]]) -> bytes:
    """A multi-platform index, as buildx writes it."""
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()


def entry(raw: bytes, architecture: str) -> dict[str, Any]:
    """One line of an index: this manifest for that processor."""
    platform = {"os": "linux", "architecture": architecture}
    return {"mediaType": MANIFEST, "digest": str(Digest.of(raw)), "size": len(raw), "platform": platform}
