"""An engine with containerd's image store, in memory: images by the digests of their manifests."""

import io
import json
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from docker.errors import ImageNotFound

from protocol.digest import Digest
from support.memory.launches import LIMITED

CONFIG = json.dumps({"rootfs": {"type": "layers", "diff_ids": []}}).encode()
OTHER = json.dumps({"rootfs": {"type": "layers", "diff_ids": []}, "config": {"User": "0"}}).encode()
DOCKER = "application/vnd.docker.distribution.manifest.v2+json"
OCI = "application/vnd.oci.image.manifest.v1+json"
INDEX = "application/vnd.oci.image.index.v1+json"


def manifest(config: bytes = CONFIG, kind: str = OCI) -> bytes:
    found = {
        "schemaVersion": 2,
        "mediaType": kind,
        "config": {"digest": str(Digest.of(config))},
        "layers": [],
    }
    return json.dumps(found).encode()


def index(*manifests: bytes) -> bytes:
    entries = [{"digest": str(Digest.of(raw)), "platform": {}} for raw in manifests]
    return json.dumps({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).encode()


@dataclass
class ContainerdEngine:
    """An engine that has these manifests by reference, can pull those, and answers as Docker 26 does."""

    local: dict[str, bytes] = field(default_factory=dict)
    served: dict[str, bytes] = field(default_factory=dict)
    configs: tuple[bytes, ...] = (CONFIG, OTHER)
    status: tuple[tuple[str, str], ...] = (("driver-type", "io.containerd.snapshotter.v1"),)
    version: str = "1.45"
    asked: list[str] = field(default_factory=list)

    @property
    def api(self) -> Any:
        return SimpleNamespace(
            api_version=self.version,
            inspect_image=self.inspect,
            pull=self.pull,
            images=self.list,
            tag=self.tag,
            containers=lambda **_: [],
        )

    @property
    def images(self) -> Any:
        return SimpleNamespace(get=lambda name: SimpleNamespace(save=lambda **_: self.save(name)))

    def info(self) -> dict[str, Any]:
        return {
            "ID": "one",
            "OSType": "linux",
            "SecurityOptions": ["name=seccomp,profile=builtin"],
            "DriverStatus": [list(pair) for pair in self.status],
            **dict.fromkeys(LIMITED, True),
        }

    def inspect(self, reference: str) -> dict[str, Any]:
        return {"Id": str(Digest.of(self.raw(reference))), "Os": "linux", "Architecture": "amd64"}

    def raw(self, reference: str) -> bytes:
        if reference in self.local:
            return self.local[reference]
        for raw in self.local.values():
            if str(Digest.of(raw)) == reference:
                return raw
        raise ImageNotFound("no such image")

    def pull(self, repository: str, tag: str, **_: object) -> list[dict[str, str]]:
        self.asked.append(f"pull {repository}@{tag}")
        if tag not in self.served:
            return [{"error": "manifest unknown"}]
        self.local[f"{repository}@{tag}"] = self.served[tag]
        return [{"status": "pulled"}]

    def tag(self, *words: str) -> None:
        self.asked.append(f"tag {' '.join(words)}")

    def list(self, name: str) -> list[dict[str, str]]:
        named = [raw for tag, raw in self.local.items() if tag.startswith(f"{name}:")]
        return [{"Id": str(Digest.of(raw))} for raw in named]

    def save(self, reference: str) -> Iterator[bytes]:
        raw = self.raw(reference)
        configs = {str(Digest.of(config)): config for config in self.configs}
        chosen = json.loads(raw).get("config", {}).get("digest") or next(iter(configs))
        config = configs[chosen]
        names = {
            f"blobs/sha256/{Digest.of(raw).hex}": raw,
            f"blobs/sha256/{Digest.of(config).hex}": config,
            "manifest.json": json.dumps(
                [{"Config": f"blobs/sha256/{Digest.of(config).hex}", "Layers": []}]
            ).encode(),
        }
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w:") as archive:
            for name, content in names.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(content)
                archive.addfile(entry, io.BytesIO(content))
        yield packed.getvalue()
