"""What organisations say of their own peers, and whether they all say the same.

A statement is one JSON object: how far a peer is, the hash of its last block and its commit hash, signed by a
member of the organisation. Two that differ at one height show a peer with another state, or an orderer that
shows two chains; an export is compared with all of them.
"""

from collections.abc import Iterable
from typing import Any, Self

from executor.audit.errors import BundleError
from executor.audit.fabric.certificates import UntrustedError
from executor.audit.fabric.configuration import Configuration
from executor.audit.fabric.messages import identities
from executor.audit.findings import Findings
from protocol import canonical
from protocol.errors import AttestreeError
from protocol.values import dataclass

FORMAT, VERSION = "attestree-statement", 1
MAX_BYTES = 1 << 16
SENTENCES = {
    "statements": "each organisation that made a statement has the same blocks and the same state",
}


@dataclass(frozen=True, slots=True)
class Statement:
    """What one organisation says of its peer."""

    channel: str
    organisation: str
    height: int
    block_hash: str
    commit_hash: str
    certificate: str
    """Of the member who signed, in PEM."""
    signature: str = ""
    """In hex, over all the rest."""

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Accept the one form of a statement; who signed it is judged later."""
        try:
            found: Any = canonical.decode(raw.strip(), max_bytes=MAX_BYTES)
        except AttestreeError as error:
            raise BundleError("STATEMENT_FORMAT", error.cause) from error
        names = {"format", "version", *cls.__slots__}
        if not isinstance(found, dict) or found.keys() != names or found["format"] != FORMAT:
            raise BundleError("STATEMENT_FORMAT", "it has other fields than a statement")
        if found.pop("version") != VERSION:
            raise BundleError("STATEMENT_FORMAT", "it is of another version")
        del found["format"]
        if type(found["height"]) is not int or not all(
            type(value) is str for name, value in found.items() if name != "height"
        ):
            raise BundleError("STATEMENT_FORMAT", "a field of it is of another type")
        return cls(**found)

    def to_bytes(self) -> bytes:
        """Return the one form."""
        return canonical.encode(self._fields())

    @property
    def signed(self) -> bytes:
        """What the signature is over."""
        fields = self._fields()
        del fields["signature"]
        return canonical.encode(fields)

    def _fields(self) -> dict[str, canonical.Record]:
        values: dict[str, canonical.Record] = {name: getattr(self, name) for name in self.__slots__}
        return {"format": FORMAT, "version": VERSION, **values}

    def refusal(self, configuration: Configuration) -> str:
        """Say why nobody of the organisation said this; empty if somebody did."""
        if self.channel != configuration.channel:
            return f"it is about channel {self.channel[:64]!r}"
        serialized = identities.SerializedIdentity(
            mspid=self.organisation, id_bytes=self.certificate.encode()
        ).SerializeToString()
        try:
            identity = configuration.members.identify(serialized)
            signature = bytes.fromhex(self.signature)
        except (UntrustedError, ValueError) as error:
            return str(error)
        if identity.refusal:
            return identity.refusal
        return "" if identity.signed(self.signed, signature) else "its signature is not over this"


@dataclass(frozen=True, slots=True)
class Seen:
    """The hashes of a chain at one height, as they were computed here."""

    block_hash: str
    commit_hash: str | None
    """None where an earlier run computed it."""


def compare(
    findings: Findings,
    configuration: Configuration,
    said: Iterable[Statement],
    seen: dict[int, Seen],
    height: int,
) -> list[str]:
    """Compare statements with the chain of an export, and with each other beyond its end.

    Those that no block of the export could be compared with are returned in words: nothing holds for them.
    """
    beyond: dict[int, Statement] = {}
    not_compared: list[str] = []
    for statement in said:
        where = f"{statement.organisation} at height {statement.height}"
        refusal = statement.refusal(configuration)
        if refusal:
            what = f"nobody of {statement.organisation} said so: {refusal}"
            findings.fail("statements", what, where)
            continue
        known = seen.get(statement.height)
        if known is None:
            other = beyond.setdefault(statement.height, statement)
            if (other.block_hash, other.commit_hash) != (statement.block_hash, statement.commit_hash):
                what = f"{other.organisation} and {statement.organisation} have two chains or two states"
                findings.fail("statements", what, where)
            not_compared.append(
                f"That {statement.organisation} has the same chain: its statement is of height"
                f" {statement.height}, the blocks at hand are of {height}, and it was not compared with them."
            )
            continue
        findings.count("statements")
        chain = statement.block_hash == known.block_hash
        findings.check("statements", chain, f"{statement.organisation} has another chain", where)
        state = known.commit_hash in (None, statement.commit_hash)
        what = f"the peer of {statement.organisation} has another state"
        findings.check("statements", state or not chain, what, where)
    return not_compared
