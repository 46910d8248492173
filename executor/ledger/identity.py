"""A Fabric identity: a certificate, its MSP and the key that signs for it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from executor.errors import UsageError
from executor.ledger.messages import msp

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_ENROL = "Enrol it again: remove its folder and run network/up.sh."


@dataclass(frozen=True)
class Identity:
    """Who signs; the private key shows in no printed form."""

    msp_id: str
    certificate: bytes
    """In PEM, as the CA issued it."""
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def load(cls, folder: Path, msp_id: str) -> Self:
        """Read an MSP folder as network/ makes it, and see that key and certificate belong together."""
        try:
            certificate = (folder / "signcerts/cert.pem").read_bytes()
            key = load_pem_private_key((folder / "keystore/key.pem").read_bytes(), None)
            public = x509.load_pem_x509_certificate(certificate).public_key()
        except FileNotFoundError as error:
            raise _unknown(folder, msp_id) from error
        except (OSError, ValueError, TypeError) as error:
            raise UsageError("IDENTITY_UNUSABLE", f"{folder} cannot be read: {error}", _ENROL) from error
        if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
            raise UsageError("IDENTITY_UNUSABLE", f"the key in {folder} is not an ECDSA key on P-256", _ENROL)
        if key.public_key() != public:
            raise UsageError(
                "IDENTITY_UNUSABLE", f"key and certificate in {folder} do not belong together", _ENROL
            )
        return cls(msp_id, certificate, key)

    @property
    def creator(self) -> bytes:
        """The identity as it stands in proposals."""
        made = msp.SerializedIdentity(mspid=self.msp_id, id_bytes=self.certificate)
        return bytes(made.SerializeToString())

    def sign(self, message: bytes) -> bytes:
        """Sign with the lower of the two values of S, the only one that Fabric takes."""
        r, s = utils.decode_dss_signature(self.key.sign(message, ec.ECDSA(hashes.SHA256())))
        return utils.encode_dss_signature(r, min(s, P256_ORDER - s))


def _unknown(folder: Path, msp_id: str) -> UsageError:
    users = folder.parent.parent
    known = sorted(path.name for path in users.iterdir()) if users.is_dir() else []
    remedy = f"Choose one of {', '.join(known)}." if known else "Bring the network up with network/up.sh."
    return UsageError("IDENTITY_UNKNOWN", f"{msp_id} has no identity {folder.parent.name!r} here", remedy)
