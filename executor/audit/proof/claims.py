"""What a proof says of a model's files: a signature, SLSA provenance, and a summary of the audit."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import PackageNotFoundError, version

from executor.audit.proof.envelope import Statement
from executor.audit.proof.origin import Origin
from executor.audit.verify import SENTENCES, Verification
from protocol import canonical
from protocol.digest import Digest
from protocol.values import dataclass

SIGNATURE = "https://model_signing/signature/v1.0"
PROVENANCE = "https://slsa.dev/provenance/v1"
SUMMARY = "https://slsa.dev/verification_summary/v1"
BUILD_TYPE = "urn:attestree:federated-model:v1"
POLICY = "urn:attestree:audit:v1"
PASSED = "PASSED"
LEVEL = "ATTESTREE_CHANNEL_VERIFIED"
MODEL_SIG, CLAIMS = "model.sig", "claims.jsonl"

Files = Sequence[tuple[str, Digest]]
"""The names of files with their digests, in order."""


@dataclass(frozen=True, slots=True)
class Pin:
    """Whose model it is: not only a chain to a root, but this organisation and this node."""

    process: str
    node: str
    owner: str
    """The MSP id."""

    @property
    def builder(self) -> str:
        """Who made the model, and who says so."""
        return f"urn:attestree:node:{self.owner}:{self.node}"


@dataclass(frozen=True, slots=True)
class ChannelSeen:
    """The channel that a claim rests on, as far as it was verified."""

    channel: str
    genesis: Digest
    height: int
    block_hash: str
    commit_hash: str

    @classmethod
    def of(cls, found: Verification) -> "ChannelSeen":
        """Take it from an export that was verified."""
        chain = found.chain
        return cls(
            chain.configuration.channel,
            Digest(chain.genesis),
            chain.height,
            chain.last_hash.hex(),
            chain.validator.commit_hash.hex(),
        )

    def to_dict(self) -> dict[str, canonical.Record]:
        """Return it as in-toto describes a resource."""
        seen: dict[str, canonical.Record] = {
            "height": str(self.height),
            "block_hash": self.block_hash,
            "commit_hash": self.commit_hash,
        }
        uri = f"urn:attestree:channel:{self.channel}"
        return {"uri": uri, "digest": {"sha256": self.genesis.hex}, "annotations": seen}


def signature(pin: Pin, files: Files) -> Statement:
    """Return the statement that `model_signing verify` compares with a folder, file by file."""
    resources: list[canonical.Record] = [
        {"name": name, "algorithm": "sha256", "digest": digest.hex} for name, digest in files
    ]
    root = Digest(hashlib.sha256(b"".join(digest.raw for _, digest in files)).digest())
    serialization: dict[str, canonical.Record] = {
        "method": "files",
        "hash_type": "sha256",
        "allow_symlinks": False,
        "ignore_paths": [MODEL_SIG],
    }
    predicate: dict[str, canonical.Record] = {"serialization": serialization, "resources": resources}
    return Statement(((f"{pin.process}-{pin.node}", root),), SIGNATURE, predicate)


def provenance(pin: Pin, files: Files, origin: Origin, seen: ChannelSeen) -> Statement:
    """Return what the model was made from, and by whom, as SLSA writes it."""
    record = origin.record
    dependencies: list[canonical.Record] = [found.to_dict() for found in origin.dependencies]
    predicate: dict[str, canonical.Record] = {
        "buildDefinition": {
            "buildType": BUILD_TYPE,
            "externalParameters": {
                "process": pin.process,
                "node": pin.node,
                "owner": pin.owner,
                "specification": str(origin.specification),
            },
            "internalParameters": {
                "channel": seen.channel,
                "genesis": str(seen.genesis),
                "block": origin.block,
            },
            "resolvedDependencies": dependencies,
        },
        "runDetails": {
            "builder": {"id": pin.builder},
            "metadata": {
                "invocationId": record.published.tx,
                "startedOn": origin.started,
                "finishedOn": record.published.time,
            },
            "byproducts": [
                {"name": "ensemble", "digest": {"sha256": record.digest.hex}},
                {"name": "result", "digest": {"sha256": record.result.hex}},
            ],
        },
    }
    return Statement(tuple(files), PROVENANCE, predicate)


def summary(pin: Pin, files: Files, seen: ChannelSeen, provenance_payload: bytes, now: datetime) -> Statement:
    """Return that the channel was verified up to a height, as a verification summary writes it."""
    inputs: list[canonical.Record] = [
        {"uri": f"urn:attestree:{CLAIMS}", "digest": {"sha256": Digest.of(provenance_payload).hex}},
        seen.to_dict(),
    ]
    predicate: dict[str, canonical.Record] = {
        "verifier": {"id": pin.builder, "version": {"attestree": _version()}},
        "timeVerified": now.strftime("%Y-%m-%dT%H:%M:%SZ"),
        "resourceUri": f"urn:attestree:model:{pin.process}/{pin.node}",
        "policy": {"uri": POLICY, "digest": {"sha256": canonical.digest(dict(SENTENCES)).hex}},
        "inputAttestations": inputs,
        "verificationResult": PASSED,
        "verifiedLevels": [LEVEL],
    }
    return Statement(tuple(files), SUMMARY, predicate)


def _version() -> str:
    try:
        return version("attestree")
    except PackageNotFoundError:
        return "unknown"
