"""A signed statement as auditors' tools know it: in-toto in DSSE, inside a sigstore bundle v0.3.

A bundle is one JSON object in its one form. It holds the signer's certificate and the intermediate
authorities above it; the root has to be known from elsewhere.
"""

import base64
import binascii
from collections.abc import Callable, Sequence
from typing import Any, Self

from executor.audit.errors import BundleError
from protocol import canonical
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.values import dataclass

PAYLOAD_TYPE = "application/vnd.in-toto+json"
MEDIA_TYPE = "application/vnd.dev.sigstore.bundle.v0.3+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
MAX_BYTES = 16 << 20
"""More than the provenance of a model of ten thousand trees."""
MAX_CERTIFICATES = 8


@dataclass(frozen=True, slots=True)
class Statement:
    """What is said of some files: their digests, of which kind it is, and what it says."""

    subject: tuple[tuple[str, Digest], ...]
    kind: str
    """The type of the predicate."""
    predicate: dict[str, canonical.Record]

    def to_bytes(self) -> bytes:
        """Return the payload that is signed."""
        subject: list[canonical.Record] = [
            {"name": name, "digest": {"sha256": digest.hex}} for name, digest in self.subject
        ]
        record: canonical.Record = {
            "_type": STATEMENT_TYPE,
            "subject": subject,
            "predicateType": self.kind,
            "predicate": self.predicate,
        }
        return canonical.encode(record, max_bytes=MAX_BYTES)

    @classmethod
    def from_bytes(cls, raw: bytes, where: str) -> Self:
        """Accept the one form of a statement."""
        found = _record(raw, where, {"_type", "subject", "predicateType", "predicate"})
        if found["_type"] != STATEMENT_TYPE or type(found["subject"]) is not list:
            raise _malformed(where, "it holds no in-toto statement of version 1")
        if type(found["predicateType"]) is not str or type(found["predicate"]) is not dict:
            raise _malformed(where, "its predicate is none")
        try:
            subject = tuple(
                (str(item["name"]), Digest(bytes.fromhex(item["digest"]["sha256"])))
                for item in found["subject"]
            )
        except (KeyError, TypeError, ValueError, AttestreeError) as error:
            raise _malformed(where, "its subject has no SHA-256") from error
        made = cls(subject, found["predicateType"], found["predicate"])
        if made.to_bytes() != raw:
            raise _malformed(where, "its statement is spelled otherwise")
        return made


@dataclass(frozen=True, slots=True)
class SignedStatement:
    """A statement with a signature and the certificates of whoever signed it."""

    payload: bytes
    signature: bytes
    certificates: tuple[bytes, ...]
    """In DER, the signer's first."""

    @classmethod
    def sign(
        cls, said: Statement, sign: Callable[[bytes], bytes], certificates: Sequence[bytes]
    ) -> "SignedStatement":
        """Sign a statement."""
        payload = said.to_bytes()
        return cls(payload, sign(_encoded(payload)), tuple(certificates))

    @classmethod
    def from_bytes(cls, raw: bytes, where: str) -> Self:
        """Accept the one form of a bundle; who signed it is judged later."""
        found = _record(raw, where, {"mediaType", "verificationMaterial", "dsseEnvelope"})
        try:
            envelope = found["dsseEnvelope"]
            held = found["verificationMaterial"]["x509CertificateChain"]["certificates"]
            (signature,) = envelope["signatures"]
            made = cls(
                _decoded(envelope["payload"]),
                _decoded(signature["sig"]),
                tuple(_decoded(item["rawBytes"]) for item in held[: MAX_CERTIFICATES + 1]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise _malformed(where, "it is no sigstore bundle with one signature") from error
        if not 1 <= len(made.certificates) <= MAX_CERTIFICATES or made.to_bytes() != raw:
            raise _malformed(where, "it is not in the one form of a bundle")
        return made

    def to_bytes(self) -> bytes:
        """Return the bundle."""
        chain: list[canonical.Record] = [{"rawBytes": _text(raw)} for raw in self.certificates]
        record: canonical.Record = {
            "mediaType": MEDIA_TYPE,
            "verificationMaterial": {"x509CertificateChain": {"certificates": chain}, "tlogEntries": []},
            "dsseEnvelope": {
                "payload": _text(self.payload),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"keyid": "", "sig": _text(self.signature)}],
            },
        }
        return canonical.encode(record, max_bytes=2 * MAX_BYTES)

    @property
    def signed(self) -> bytes:
        """What the signature is over."""
        return _encoded(self.payload)


def _encoded(payload: bytes) -> bytes:
    """Return DSSE's encoding of type and payload, so that neither can be taken for the other."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)


def _record(raw: bytes, where: str, names: set[str]) -> dict[str, Any]:
    try:
        found = canonical.decode(raw, max_bytes=2 * MAX_BYTES)
    except AttestreeError as error:
        raise _malformed(where, error.cause) from error
    if not isinstance(found, dict) or found.keys() != names:
        raise _malformed(where, "it has other fields")
    return found


def _text(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def _decoded(text: Any) -> bytes:
    if type(text) is not str:
        raise TypeError("base64 is text")
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ValueError("it is no base64") from error


def _malformed(where: str, cause: str) -> BundleError:
    return BundleError("PROOF_FORMAT", f"{where}: {cause}")
