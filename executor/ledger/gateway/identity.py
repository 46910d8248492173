"""A Fabric identity: a certificate, its MSP and the key that signs for it."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, utils
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from .errors import IdentityError
from .messages import msp

P256_ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


@dataclass(frozen=True)
class Identity:
    """Who signs; the private key shows in no printed form."""

    msp_id: str
    certificate: bytes
    """In PEM, as the CA issued it."""
    key: ec.EllipticCurvePrivateKey = field(repr=False)

    @classmethod
    def load(cls, folder: Path, msp_id: str) -> Self:
        """Read an MSP folder: the one file in `signcerts` and the one in `keystore`."""
        try:
            certificate, key = _only_file(folder / "signcerts"), _only_file(folder / "keystore")
        except FileNotFoundError as error:
            raise IdentityError("IDENTITY_UNKNOWN", f"{folder} has no certificate or no key") from error
        except OSError as error:
            raise IdentityError("IDENTITY_UNUSABLE", f"{folder} cannot be read: {error}") from error
        return cls.from_pem(msp_id, certificate, key, str(folder))

    @classmethod
    def from_pem(cls, msp_id: str, certificate: bytes, key: bytes, where: str = "what was given") -> Self:
        """Take a certificate and its key, if they belong together; `where` names them in an error."""
        try:
            private = load_pem_private_key(key, None)
            public = x509.load_pem_x509_certificate(certificate).public_key()
        except (ValueError, TypeError) as error:
            raise IdentityError("IDENTITY_UNUSABLE", f"{where} cannot be read: {error}") from error
        if not isinstance(private, ec.EllipticCurvePrivateKey) or not isinstance(private.curve, ec.SECP256R1):
            raise IdentityError("IDENTITY_UNUSABLE", f"the key in {where} is not an ECDSA key on P-256")
        if private.public_key() != public:
            raise IdentityError("IDENTITY_UNUSABLE", f"key and certificate in {where} do not belong together")
        return cls(msp_id, certificate, private)

    @property
    def creator(self) -> bytes:
        """The identity as it stands in proposals."""
        made = msp.SerializedIdentity(mspid=self.msp_id, id_bytes=self.certificate)
        return bytes(made.SerializeToString())

    def sign(self, message: bytes) -> bytes:
        """Sign with the lower of the two values of S, the only one that Fabric takes."""
        r, s = utils.decode_dss_signature(self.key.sign(message, ec.ECDSA(hashes.SHA256())))
        return utils.encode_dss_signature(r, min(s, P256_ORDER - s))


def _only_file(folder: Path) -> bytes:
    found = sorted(folder.iterdir())
    if not found:
        raise FileNotFoundError(folder)
    if len(found) > 1:
        raise OSError(f"{folder} has {len(found)} files, and only one can be meant")
    return found[0].read_bytes()
