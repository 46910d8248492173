"""`executor audit proof`: whether a model's files are those that its node signed, and where they come from.

1. The folder holds the files of a proof and nothing else.
2. Each statement is signed by the node that is meant: its organisation, its name, a certificate for signing.
3. `model.sig` names every file with its digest.
4. The provenance is about the model's files; with an export of the channel it is made again and compared.
5. The summary says that the channel was verified, for this provenance and this channel.
6. `model.json` holds the ensemble that the provenance names.
"""

from collections.abc import Mapping
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID

from executor.audit.errors import BundleError
from executor.audit.fabric.certificates import UntrustedError
from executor.audit.fabric.organisation import Organisation
from executor.audit.findings import Findings
from executor.audit.proof import claims
from executor.audit.proof.channel import ModelChannel
from executor.audit.proof.claims import CLAIMS, LEVEL, MODEL_SIG, PASSED, Files, Pin
from executor.audit.proof.envelope import SignedStatement, Statement
from protocol.digest import Digest
from protocol.values import dataclass

MODEL = "model.json"
FORMS = ("model.npz", "model.onnx")
SENTENCES = {
    "signer": "each statement is signed by the node, with a certificate of its organisation for signing",
    "files": "each file has the digest that was signed, and none is missing or added",
    "provenance": "the provenance is about these files and this model",
    "channel": "the provenance, made again from the verified channel, is the one signed",
    "summary": "the node says that it verified the channel behind the provenance",
    "model": "model.json holds, tree by tree, the ensemble that the provenance names",
}


@dataclass(frozen=True, slots=True)
class Held:
    """What model.json says that it holds, read and checked against its own digests."""

    process: str
    node: str
    owner: str
    digest: Digest
    result: Digest
    specification: Digest


@dataclass(frozen=True)
class Proof:
    """A folder with a model and its proof, read; nothing of it is believed yet."""

    files: Mapping[str, Digest]
    """Every file but `model.sig`."""
    signature: bytes
    claims: bytes
    held: Held

    def __post_init__(self) -> None:
        unknown = self.files.keys() - {MODEL, *FORMS, CLAIMS}
        missing = {MODEL, CLAIMS} - self.files.keys()
        if unknown or missing:
            what = f"{min(unknown)[:80]!r} is no part of it" if unknown else f"{min(missing)} is missing"
            raise BundleError("PROOF_FILES", what)

    @property
    def model_files(self) -> Files:
        """The model's own files."""
        return [(name, digest) for name, digest in sorted(self.files.items()) if name != CLAIMS]


def verify_proof(
    findings: Findings, proof: Proof, pin: Pin, organisation: Organisation, known: ModelChannel | None
) -> None:
    """Check each step of this module's list; what is not even in form raises."""
    lines = proof.claims.split(b"\n")
    if len(lines) != 3 or lines[2]:
        raise BundleError("PROOF_FORMAT", f"{CLAIMS}: it has other than two lines")
    signed = [
        (MODEL_SIG, SignedStatement.from_bytes(proof.signature, MODEL_SIG)),
        *((f"{CLAIMS}:{n}", SignedStatement.from_bytes(lines[n - 1], f"{CLAIMS}:{n}")) for n in (1, 2)),
    ]
    said = [Statement.from_bytes(item.payload, where) for where, item in signed]
    for where, item in signed:
        refusal = _refusal(item, pin, organisation)
        findings.check("signer", not refusal, refusal, where)
    expected = claims.signature(pin, sorted(proof.files.items()))
    _check_files(findings, said[0], expected)
    _check_provenance(findings, said[1], proof, pin, known)
    _check_summary(findings, said[2], proof, signed[1][1].payload, known)


def _refusal(item: SignedStatement, pin: Pin, organisation: Organisation) -> str:
    """Say why the node that is meant did not sign this; empty if it did."""
    try:
        pem = x509.load_der_x509_certificate(item.certificates[0]).public_bytes(Encoding.PEM)
        identity = organisation.identify(pem)
    except (ValueError, UntrustedError) as error:
        return f"{pin.owner} does not vouch for the signer: {str(error)[:120]}"
    if identity.refusal:
        return identity.refusal
    if not _is_for_signing(identity.certificate):
        return "its certificate is for TLS or another purpose, not for signing"
    node = identity.attributes.get("node")
    if node != pin.node:
        return f"it is signed by {identity.name[:64]}, who is not {pin.node}"
    if not identity.signed(item.signed, item.signature):
        return "its signature is not over this"
    return ""


def _is_for_signing(certificate: x509.Certificate) -> bool:
    """Whether a certificate is one for signatures: TLS certificates name purposes of their own."""
    extensions = certificate.extensions
    try:
        purposes = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
        if ExtendedKeyUsageOID.CODE_SIGNING not in purposes:
            return False
    except x509.ExtensionNotFound:
        pass
    try:
        return bool(extensions.get_extension_for_class(x509.KeyUsage).value.digital_signature)
    except x509.ExtensionNotFound:
        return True


def _check_files(findings: Findings, said: Statement, expected: Statement) -> None:
    same_kind = (said.kind, said.predicate.get("serialization")) == (
        expected.kind,
        expected.predicate["serialization"],
    )
    findings.check("files", same_kind, "it is not the signature of a folder of files", MODEL_SIG)
    signed, found = _digests(said), _digests(expected)
    for name in sorted(signed.keys() | found.keys()):
        what = "it is missing" if name not in found else "it was not signed"
        if name in signed and name in found:
            what = f"its digest is sha256:{found[name]}, and sha256:{signed[name][:64]} was signed"
        findings.check("files", signed.get(name) == found.get(name), what, name[:80])
    if signed == found:
        findings.check("files", said == expected, "it is another statement about the same files", MODEL_SIG)


def _digests(said: Statement) -> dict[str, str]:
    resources: Any = said.predicate.get("resources")
    try:
        return {str(item["name"]): str(item["digest"]) for item in resources}
    except (KeyError, TypeError) as error:
        raise BundleError("PROOF_FORMAT", f"{MODEL_SIG}: it lists no files") from error


def _check_provenance(
    findings: Findings, said: Statement, proof: Proof, pin: Pin, known: ModelChannel | None
) -> None:
    where, held = f"{CLAIMS}:1", proof.held
    kind = said.kind == claims.PROVENANCE
    findings.check("provenance", kind, "it is no SLSA provenance of version 1", where)
    about = said.subject == tuple(proof.model_files)
    findings.check("provenance", about, "it is about other files", where)
    stated = _path(said.predicate, "buildDefinition", "externalParameters")
    wanted = {
        "process": pin.process,
        "node": pin.node,
        "owner": pin.owner,
        "specification": str(held.specification),
    }
    findings.check("provenance", stated == wanted, "it is about another model", where)
    mine = (held.process, held.node, held.owner) == (pin.process, pin.node, pin.owner)
    findings.check("model", mine, f"it is the model {held.process}/{held.node} of {held.owner}", MODEL)
    products: Any = _path(said.predicate, "runDetails", "byproducts")
    named = [
        {"name": "ensemble", "digest": {"sha256": held.digest.hex}},
        {"name": "result", "digest": {"sha256": held.result.hex}},
    ]
    findings.check("model", products == named, "it is another ensemble than the provenance names", MODEL)
    if known is not None:
        again = claims.provenance(pin, proof.model_files, known.origin, known.seen)
        findings.check("channel", said == again, "the channel says something else of this model", where)


def _check_summary(
    findings: Findings, said: Statement, proof: Proof, payload: bytes, known: ModelChannel | None
) -> None:
    where, predicate = f"{CLAIMS}:2", said.predicate
    about = said.kind == claims.SUMMARY and said.subject == tuple(proof.model_files)
    findings.check("summary", about, "it is no verification summary of these files", where)
    passed = predicate.get("verificationResult") == PASSED and predicate.get("verifiedLevels") == [LEVEL]
    findings.check("summary", passed, "it does not say that the channel was verified", where)
    inputs: Any = predicate.get("inputAttestations")
    try:
        rests_on, channel = (item["digest"]["sha256"] for item in inputs)
    except (KeyError, TypeError, ValueError) as error:
        raise BundleError("PROOF_FORMAT", f"{where}: it names no inputs") from error
    findings.check("summary", rests_on == Digest.of(payload).hex, "it rests on another provenance", where)
    if known is not None:
        findings.check("summary", channel == known.seen.genesis.hex, "it is about another channel", where)


def _path(record: Any, *names: str) -> Any:
    for name in names:
        record = record.get(name) if isinstance(record, dict) else None
    return record
