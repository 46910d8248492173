"""How far an audit came, in one file of the auditor's own, so that the next one goes on from there.

    attestree-checkpoint 1      the first line
    one line of JSON            height, hashes, counts, and the channel
    fields                      each with its length before it: the configuration in force, the ids of all
                                transactions, who wrote each, and the state key by key
    32 bytes                    SHA-256 of all of this

What it says is believed, because it was verified when it was written: keep it like a key of your own. The
digest finds a file that was damaged, and a run prints it, to be compared with the one of the run before.
"""

import hashlib
import os
import struct
from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import IO, Any, Self

from executor.audit.errors import BundleError
from executor.audit.fabric.state import Key, Update, Version
from executor.audit.fabric.validation import Validator
from protocol import canonical
from protocol.digest import Digest
from protocol.errors import AttestreeError
from protocol.values import dataclass

MAGIC = b"attestree-checkpoint 1\n"
MAX_HEADER = 1 << 16
MAX_FIELD = 200 << 20
"""As the largest block of an export."""
MAX_COUNT = 10**9
_DIGEST = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class Marks:
    """Where an audit stood: what the chain has to show at this height."""

    channel: str
    genesis: str
    height: int
    block_hash: str
    commit_hash: str
    config_block: int
    ids: int = 0
    authors: int = 0
    entries: int = 0
    state: str = ""
    """SHA-256 over every key with its version, its policy and its value: equal states have equal ones."""

    @classmethod
    def from_bytes(cls, raw: bytes) -> Self:
        """Accept the one form of the header."""
        try:
            found: Any = canonical.decode(raw, max_bytes=MAX_HEADER)
        except AttestreeError as error:
            raise _malformed(error.cause) from error
        texts = {"channel", "genesis", "block_hash", "commit_hash", "state"}
        if not isinstance(found, dict) or found.keys() != set(cls.__slots__):
            raise _malformed("its header has other fields")
        for name, value in found.items():
            if name in texts:
                if type(value) is not str or len(value) > 256:
                    raise _malformed(f"{name} is no text")
            elif type(value) is not int or not 0 <= value <= MAX_COUNT:
                raise _malformed(f"{name} is no number")
        for name in texts - {"channel"}:
            if len(found[name]) != 64 or set(found[name]) - set("0123456789abcdef"):
                raise _malformed(f"{name} is no hash")
        if found["height"] < 1:
            raise _malformed("it is of no height")
        return cls(**found)

    def to_bytes(self) -> bytes:
        """Return the one form."""
        return canonical.encode(asdict(self))


@dataclass(frozen=True)
class Resumed:
    """What was read from a checkpoint, besides the state that it filled."""

    marks: Marks
    configuration: bytes
    authors: dict[str, bytes]
    digest: Digest
    """Of the whole file."""


class _Digested:
    """A file whose every byte is hashed as it passes."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> bytes:
        return self._hash.digest()

    def write(self, raw: bytes) -> None:
        self._hash.update(raw)
        self._file.write(raw)

    def exactly(self, size: int) -> bytes:
        raw = self._file.read(size)
        if len(raw) != size:
            raise _malformed(f"it ends {size - len(raw)} bytes too early")
        self._hash.update(raw)
        return raw

    def line(self, most: int) -> bytes:
        raw = self._file.readline(most)
        if not raw.endswith(b"\n"):
            raise _malformed("a line of it is too long, or missing")
        self._hash.update(raw)
        return raw

    def put(self, *fields: bytes) -> None:
        for field in fields:
            self.write(struct.pack(">I", len(field)) + field)

    def field(self) -> bytes:
        (size,) = struct.unpack(">I", self.exactly(4))
        if size > MAX_FIELD:
            raise _malformed(f"a field of it has {size} bytes")
        return self.exactly(size)


def write_checkpoint(
    path: Path, marks: Marks, configuration: bytes, validator: Validator, authors: dict[str, bytes]
) -> Digest:
    """Write a checkpoint whole or not at all, for its owner's eyes; returns the digest of the file."""
    marks = replace(
        marks,
        ids=len(validator.ids),
        authors=len(authors),
        entries=len(validator.state),
        state=state_digest(validator),
    )
    unfinished = path.with_name(path.name + ".part")
    try:
        descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            out = _Digested(file)
            out.write(MAGIC + marks.to_bytes() + b"\n")
            out.put(configuration, *sorted(validator.ids))
            for tx, author in sorted(authors.items()):
                out.put(tx.encode(), author)
            for entry in _entries(validator):
                out.put(*entry)
            end = out.digest
            out.write(end)
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)
    return Digest(out.digest)


def state_digest(validator: Validator) -> str:
    """Return the digest of a state: equal states have equal ones."""
    digest = hashlib.sha256()
    for entry in _entries(validator):
        for field in entry:
            digest.update(struct.pack(">I", len(field)) + field)
    return digest.hexdigest()


def read_checkpoint(file: IO[bytes], validator: Validator) -> Resumed:
    """Read a checkpoint into an empty validator; what is damaged or of another form raises."""
    found = _Digested(file)
    if found.line(len(MAGIC)) != MAGIC:
        raise _malformed("it is no checkpoint of this version")
    marks = Marks.from_bytes(found.line(MAX_HEADER).removesuffix(b"\n"))
    configuration = found.field()
    ids = {found.field() for _ in range(marks.ids)}
    authors = {_text(found.field()): found.field() for _ in range(marks.authors)}
    for _ in range(marks.entries):
        key, update = _entry([found.field() for _ in range(7)])
        validator.state.apply({key: update})
    expected = found.digest
    if found.exactly(_DIGEST) != expected or file.read(1):
        raise _malformed("its digest is another one: it was damaged or altered")
    if (len(ids), len(authors), len(validator.state)) != (marks.ids, marks.authors, marks.entries):
        raise _malformed("it holds something twice")
    validator.resume(ids, bytes.fromhex(marks.commit_hash))
    if state_digest(validator) != marks.state:
        raise _malformed("its state is another one than its header says")
    return Resumed(marks, configuration, authors, Digest(found.digest))


def _entries(validator: Validator) -> Iterator[tuple[bytes, ...]]:
    for key, entry, value in validator.state.items():
        name, kind = (key.name.encode(), b"t") if isinstance(key.name, str) else (key.name, b"h")
        metadata = b"" if entry.metadata is None else b"m" + entry.metadata
        version = struct.pack(">QQ", *entry.version)
        yield key.namespace.encode(), key.collection.encode(), kind, name, version, metadata, value


def _entry(fields: list[bytes]) -> tuple[Key, Update]:
    namespace, collection, kind, raw, version, metadata, value = fields
    if kind not in (b"t", b"h") or len(version) != 16 or metadata[:1] not in (b"", b"m"):
        raise _malformed("an entry of its state has another form")
    name = _text(raw) if kind == b"t" else raw
    update = Update(Version(*struct.unpack(">QQ", version)), value, metadata[1:] if metadata else None)
    return Key(_text(namespace), _text(collection), name), update


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise _malformed("a name in it is no text") from error


def _malformed(cause: str) -> BundleError:
    return BundleError("CHECKPOINT_FORMAT", cause)
