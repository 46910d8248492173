"""How a node proves its model: say what the verified channel says, sign, and check the result."""

from collections.abc import Callable
from dataclasses import field
from datetime import datetime
from pathlib import Path

from executor.audit.errors import AuditError
from executor.audit.fabric.certificates import UntrustedError, der
from executor.audit.fabric.identity import Identity
from executor.audit.fabric.organisation import Organisation
from executor.audit.findings import Findings
from executor.audit.proof import claims
from executor.audit.proof.channel import ModelChannel
from executor.audit.proof.claims import CLAIMS, Pin
from executor.audit.proof.envelope import SignedStatement, Statement
from executor.audit.proof.folder import hash_files, held_by
from executor.audit.proof.verify import SENTENCES, Proof, verify_proof
from executor.model.files import Exported
from protocol.digest import Digest
from protocol.values import dataclass


@dataclass(frozen=True)
class Signer:
    """Whose certificate and key sign."""

    certificate: bytes
    """In PEM."""
    sign: Callable[[bytes], bytes] = field(repr=False)


@dataclass(frozen=True)
class Made:
    """The two files of a proof, and the channel that they rest on."""

    claims: bytes
    signature: bytes
    genesis: Digest


def make_proof(  # noqa: PLR0917
    folder: Path, model: Exported, pin: Pin, signer: Signer, known: ModelChannel, now: datetime
) -> Made:
    """Sign what a verified channel says of a model; raise unless the proof would be accepted."""
    seal = _Seal(signer, _identify(known.organisation, signer))
    files = [(name, digest) for name, digest in sorted(hash_files(folder).items()) if name != CLAIMS]
    origin = seal.statement(claims.provenance(pin, files, known.origin, known.seen))
    summary = seal.statement(claims.summary(pin, files, known.seen, origin.payload, now))
    lines = b"".join(item.to_bytes() + b"\n" for item in (origin, summary))
    whole = sorted([*files, (CLAIMS, Digest.of(lines))])
    signature = seal.statement(claims.signature(pin, whole)).to_bytes()
    findings = Findings(SENTENCES)
    proof = Proof(dict(whole), signature, lines, held_by(model))
    verify_proof(findings, proof, pin, known.organisation, known)
    if not findings.verified:
        first = findings.failures[0]
        raise AuditError("PROOF_REFUSED", f"{first.where}: {first.what}")
    return Made(lines, signature, known.seen.genesis)


@dataclass(frozen=True)
class _Seal:
    signer: Signer
    identity: Identity

    def statement(self, said: Statement) -> SignedStatement:
        """Sign a statement, with the certificates up to the root and without it."""
        certificates = [self.identity.certificate, *self.identity.chain[:-1]]
        return SignedStatement.sign(said, self.signer.sign, [der(found) for found in certificates])


def _identify(organisation: Organisation, signer: Signer) -> Identity:
    try:
        return organisation.identify(signer.certificate)
    except UntrustedError as error:
        raise AuditError(
            "PROOF_REFUSED", f"{organisation.msp_id} does not vouch for the signer: {error}"
        ) from error
