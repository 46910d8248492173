"""Compare every copy of an image within reach with the ledger: in the engine and in the registry.

1  what the engine has under the version's tags and digest has the ledger's id
2  (deep) the files the engine keeps are those that the id stands for
3  the registry serves, by digest, a manifest that leads to the ledger's id
4  the registry's tag leads to the same manifest
"""

import tarfile
from dataclasses import dataclass, field
from typing import Any

from docker import DockerClient

from executor.engine import asking
from executor.errors import EngineError, IntegrityError
from executor.image.archive import SavedImage, save, scratch
from executor.image.comparison import evidence_of
from executor.image.local import LocalImage, LocalImages
from executor.image.manifest import Platform
from executor.image.reference import split_repository
from executor.image.registry import ImageRegistry
from protocol.agreement.image import Image
from protocol.digest import Digest
from protocol.ledger.images import ImageRecord


@dataclass(frozen=True)
class CopyFinding:
    """One copy, and whether it is the ledger's; `equal` is None where there is no copy to compare."""

    where: str
    equal: bool | None
    found: str

    def to_dict(self) -> dict[str, Any]:
        """Return it as --json prints it."""
        return {"where": self.where, "equal": self.equal, "found": self.found}


@dataclass
class Verification:
    """What was found for one version on the ledger."""

    record: ImageRecord
    findings: list[CopyFinding] = field(default_factory=list)
    index_digest: Digest | None = None
    platform_digest: Digest | None = None

    @property
    def registered(self) -> Image:
        """The version as the ledger has it."""
        return self.record.image

    @property
    def ok(self) -> bool:
        """At least one copy is the ledger's, and none is another."""
        equal = [finding.equal for finding in self.findings]
        return True in equal and False not in equal

    def add(self, where: str, found: Digest | None, expected: Digest | None = None) -> None:
        """Note a copy and compare it."""
        equal = None if found is None or expected is None else found == expected
        self.findings.append(CopyFinding(where, equal, "not there" if found is None else str(found)))

    def problem(self) -> EngineError | IntegrityError | None:
        """Return None if the image can be relied on, and otherwise the error to end with."""
        if self.ok:
            return None
        different = [finding for finding in self.findings if finding.equal is False]
        if not different:
            return EngineError(
                "IMAGE_UNAVAILABLE",
                f"no copy of {self.registered.name}:{self.registered.version} is within reach",
                case="no copy",
            )
        found = {finding.where: finding.found for finding in different}
        expected = f"image {self.registered.image_id}, manifest {self.registered.manifest_digest}"
        return IntegrityError(
            "IMAGE_MISMATCH",
            "; ".join(f"{where}: {what}" for where, what in found.items()) + f"; the ledger has {expected}",
            evidence={**evidence_of(self.registered), "expected": str(self.registered.image_id), **found},
        )

    def to_dict(self) -> dict[str, Any]:
        """Return what `executor image verify --json` prints."""
        return {
            "ok": self.ok,
            "image": f"{self.registered.name}:{self.registered.version}",
            "status": self.record.status.value,
            "image_id": str(self.registered.image_id),
            "manifest_digest": str(self.registered.manifest_digest),
            "index_digest": str(self.index_digest) if self.index_digest else None,
            "platform_digest": str(self.platform_digest) if self.platform_digest else None,
            "findings": [finding.to_dict() for finding in self.findings],
        }


def verify(
    client: DockerClient, record: ImageRecord, registry: ImageRegistry, deep: bool = False
) -> Verification:
    """Look at every copy; nothing is pulled."""
    made = Verification(record)
    equal = _engine(LocalImages(client), made)
    if deep and equal is not None:
        _files(client, made, equal)
    _registry(client, made, registry)
    return made


def _engine(images: LocalImages, made: Verification) -> LocalImage | None:
    """Compare what the engine has under each name of the image; return the ledger's, if it has that."""
    equal = None
    registered = made.registered
    references = {
        "engine, by id": str(images.name_of(registered)),
        "engine, by manifest": registered.by_digest,
        "engine, registry's tag": f"{registered.repository}:{registered.version}",
        "engine, tag": f"{registered.name}:{registered.version}",
    }
    for where, reference in references.items():
        found = images.find(reference)
        made.add(where, found.image_id if found else None, registered.image_id)
        if found is not None and found.image_id == registered.image_id:
            equal = found
    return equal


def _files(client: DockerClient, made: Verification, local: LocalImage) -> None:
    """Hash what the engine keeps: an id names content only as long as nobody wrote below the engine."""
    with scratch() as folder:
        path = folder / "saved.tar"
        try:
            save(client, str(local.called), path)
        except EngineError as error:
            if error.code != "ENGINE_FAILED":
                raise
            # It has the image and cannot give its files back: they have changed, or are gone, or cannot be
            # read. Which of these it was is not decided by its words; it is not the ledger's copy.
            made.findings.append(CopyFinding("engine, files", False, error.cause))
            return
        with tarfile.open(path, "r:") as archive:
            saved = SavedImage.read(archive)
            made.add("engine, configuration", saved.image_id, made.registered.image_id)
            for number, (found, expected) in enumerate(
                zip(saved.diff_ids(), saved.registered_diff_ids(), strict=True), 1
            ):
                made.add(f"engine, files of layer {number}", found, expected)


def _registry(client: DockerClient, made: Verification, registry: ImageRegistry) -> None:
    registered = made.registered
    _, name = split_repository(registered.repository)
    with asking("say its platform"):
        about = client.version()
    platform = Platform(about["Os"], about["Arch"])
    try:
        served = registry.served(name, str(registered.manifest_digest), platform)
        tagged = registry.served(name, registered.version, platform)
    except EngineError as error:
        made.findings.append(CopyFinding("registry", None, error.cause))
        return
    made.add("registry, by manifest", served.image_id if served else None, registered.image_id)
    if tagged is None:
        made.add("registry, tag", None)
    else:
        same = registered.manifest_digest in (tagged.manifest, tagged.image)
        made.findings.append(CopyFinding("registry, tag", same, str(tagged.manifest)))
    if served is not None:
        made.platform_digest = served.image
        made.index_digest = served.index or (
            tagged.index if tagged and tagged.image == served.image else None
        )
