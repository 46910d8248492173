"""Ed25519 signatures that name their purpose (docs/formats/signatures-v1.md).

What is signed is a preamble, the length and text of a domain tag, and a SHA-256. A signature made for one
purpose is therefore worthless for another, and no two pairs of domain and message share the signed bytes.
"""

import re
from dataclasses import dataclass
from typing import NoReturn, Self

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from protocol.digest import Digest
from protocol.ed25519 import SIZE, check_public_key
from protocol.errors import SignatureError

PREAMBLE = b"attestree signature v1\0"
PREFIX = "ed25519:"
SIGNATURE_SIZE = 64

_DOMAIN = re.compile(r"[a-z0-9]+(?:[/-][a-z0-9]+)*")
_MAX_DOMAIN = 64
_KEY_TEXT = re.compile(r"ed25519:([0-9a-f]{64})")


@dataclass(frozen=True, order=True, slots=True, repr=False)
class VerifyKey:
    """A public key that was checked to be able to prove something."""

    raw: bytes

    def __post_init__(self) -> None:
        if type(self.raw) is not bytes:
            raise SignatureError("KEY_LENGTH", f"a public key is bytes, not {type(self.raw).__name__}")
        check_public_key(self.raw)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read the one spelling, `ed25519:` and 64 lower-case hex digits."""
        match = _KEY_TEXT.fullmatch(text) if isinstance(text, str) else None
        if match is None:
            raise SignatureError("KEY_TEXT", f"{str(text)[:80]!r} is not a public key")
        return cls(bytes.fromhex(match[1]))

    def __str__(self) -> str:
        return PREFIX + self.raw.hex()

    def __repr__(self) -> str:
        return f"VerifyKey({self})"


class SigningKey:
    """A private key; it signs, gives its seed away only when told to, and is never printed."""

    __slots__ = ("_key", "_seed", "verify_key")

    def __init__(self, seed: bytes) -> None:
        """Take 32 random bytes from the caller, as this package has no randomness."""
        if type(seed) is not bytes or len(seed) != SIZE:
            raise SignatureError("KEY_LENGTH", f"a private key is made from {SIZE} bytes")
        self._seed = seed
        self._key = Ed25519PrivateKey.from_private_bytes(seed)
        self.verify_key = VerifyKey(self._key.public_key().public_bytes_raw())

    def reveal_seed(self) -> bytes:
        """Return the secret, for handing the key to the one task it was made for."""
        return self._seed

    def sign_raw(self, message: bytes) -> bytes:
        """Sign bytes as they are; everything but `sign` wants `sign`."""
        return self._key.sign(message)

    def __repr__(self) -> str:
        return f"SigningKey(secret of {self.verify_key})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a private key is neither copied nor pickled")


def sign(key: SigningKey, domain: str, message: Digest | bytes) -> bytes:
    """Sign a message, or the message whose digest is given, for one purpose."""
    return key.sign_raw(signed_bytes(domain, message))


def verify(key: VerifyKey, domain: str, message: Digest | bytes, signature: bytes) -> None:
    """Return if the key signed this message for this purpose; raise `SignatureError` otherwise."""
    if not isinstance(key, VerifyKey):
        raise SignatureError("SIGNATURE_INPUT", f"{type(key).__name__} is not a VerifyKey")
    if type(signature) is not bytes or len(signature) != SIGNATURE_SIZE:
        raise SignatureError("SIGNATURE_INPUT", f"a signature is {SIGNATURE_SIZE} bytes")
    expected = signed_bytes(domain, message)
    try:
        Ed25519PublicKey.from_public_bytes(key.raw).verify(signature, expected)
    except InvalidSignature as error:
        raise SignatureError("SIGNATURE_INVALID", f"not signed by {key} as {domain}") from error


def signed_bytes(domain: str, message: Digest | bytes) -> bytes:
    """Return what is signed; bytes are hashed first, so a message and its digest are the same statement."""
    if type(domain) is not str or len(domain) > _MAX_DOMAIN or not _DOMAIN.fullmatch(domain):
        raise SignatureError("SIGNATURE_DOMAIN", f"{str(domain)[:80]!r} is not a domain tag")
    if type(message) is bytes:
        message = Digest.of(message)
    if not isinstance(message, Digest):
        raise SignatureError("SIGNATURE_INPUT", f"{type(message).__name__} is neither bytes nor a digest")
    return b"".join((PREAMBLE, bytes([len(domain)]), domain.encode(), message.raw))
