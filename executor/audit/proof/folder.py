"""A folder with a model and its proof: read within bounds, hashed file by file."""

import hashlib
from pathlib import Path

from executor.audit.errors import BundleError
from executor.audit.proof.claims import CLAIMS, MODEL_SIG
from executor.audit.proof.envelope import MAX_BYTES
from executor.audit.proof.verify import FORMS, MODEL, Held, Proof
from executor.model.files import Exported, from_json
from executor.user_files import UserFileError, open_file, read_file
from protocol.digest import Digest

MAX_MODEL = 1 << 30
MAX_SIGNED = 2 * MAX_BYTES
PARTS = (MODEL, *FORMS, CLAIMS, MODEL_SIG)
_CHUNK = 1 << 20


def read_model(folder: Path) -> Exported:
    """Read model.json, whose trees have to give the digests that it states."""
    return from_json(_read(folder / MODEL, MAX_MODEL), str(folder / MODEL))


def held_by(exported: Exported) -> Held:
    """Say which model an exported one is."""
    terms = exported.model.terms
    return Held(
        terms.process, terms.node, terms.owner, terms.digest, terms.result, terms.specification_digest
    )


def read_proof(folder: Path) -> Proof:
    """Read a model with its proof; what has no form raises."""
    held = held_by(read_model(folder))
    signature, claims = (_read(folder / name, MAX_SIGNED) for name in (MODEL_SIG, CLAIMS))
    return Proof(hash_files(folder), signature, claims, held)


def hash_files(folder: Path) -> dict[str, Digest]:
    """Return the digest of every file of a folder but `model.sig`; anything else in it is refused."""
    try:
        names = sorted(path.name for path in folder.iterdir())
    except OSError as error:
        raise BundleError("PROOF_FILES", f"{folder} cannot be read: {error.strerror}") from error
    for name in names:
        if name not in PARTS or (folder / name).is_symlink():
            raise BundleError("PROOF_FILES", f"{name[:80]!r} in {folder} is no file of a model or its proof")
    return {name: _hash(folder / name) for name in names if name != MODEL_SIG}


def _hash(path: Path) -> Digest:
    digest, size = hashlib.sha256(), 0
    try:
        with open_file(path) as file:
            while chunk := file.read(_CHUNK):
                size += len(chunk)
                if size > MAX_MODEL:
                    raise BundleError("PROOF_FILES", f"{path} has more than {MAX_MODEL} bytes")
                digest.update(chunk)
    except UserFileError as error:
        raise BundleError("PROOF_FILES", f"{path}: {error.cause}") from error
    except OSError as error:
        raise BundleError("PROOF_FILES", f"{path} cannot be read: {error.strerror}") from error
    return Digest(digest.digest())


def _read(path: Path, most: int) -> bytes:
    try:
        return read_file(path, most)
    except UserFileError as error:
        raise BundleError("PROOF_FILES", f"{path}: {error.cause}") from error
