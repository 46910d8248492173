"""Whether exported files are a model as it was exported: by the digest that came with them, or by the ledger.

1. model.json agrees with itself, and is the model that was asked for
2. its SHA-256 is the digest of the export, where one is given; otherwise every field is what the ledger says
3. the other forms have the digests that model.json gives; where only the ledger vouches for that file, they
   are also made again from it and compared byte for byte
"""

from pathlib import Path

from executor.caller import Caller
from executor.errors import UsageError
from executor.model.content import fetch_terms
from executor.model.errors import ModelError, altered_file
from executor.model.export import form_of
from executor.model.files import MAX_BYTES, OTHER_FORMS, Exported, difference, from_json, terms_dict
from executor.user_files import UserFileError, read_file
from protocol.digest import Digest


def verified(
    file: Path, process: str, node: str | None, digest: str | None, caller: Caller | None
) -> Exported:
    """Return the content of a model.json that is the one asked for, unaltered, or raise.

    Without a node it may be the model of any node of the process.
    """
    expected = None if digest is None else Digest.parse(digest)
    raw = _read(file)
    exported = from_json(raw, str(file))
    terms = exported.model.terms
    if (terms.process, terms.node) != (process, node or terms.node):
        wanted = f"{process}/{node}" if node else f"of {process}"
        raise UsageError("MODEL_OTHER", f"{file} is the model {terms.process}/{terms.node}, not {wanted}")
    if expected is not None:
        if Digest.of(raw) != expected:
            raise altered_file(f"{file}: its digest is {Digest.of(raw)}, and {expected} was given")
        return exported
    if caller is None:
        raise AssertionError("without a digest the ledger is asked")
    with caller.ledger() as ledger:
        on_ledger = fetch_terms(ledger, process, terms.node)
    different = difference(terms_dict(terms), terms_dict(on_ledger))
    if different is not None:
        raise altered_file(f"{file}: {different} is not what the ledger says")
    return exported


def verify_forms(folder: Path, exported: Exported, *, again: bool) -> list[str]:
    """Return the names of the other forms in a folder, each of which is the model's; `again` to make them."""
    found = []
    for kind in OTHER_FORMS:
        path = folder / f"model.{kind}"
        expected = exported.forms.get(kind)
        if expected is None:
            if path.exists():
                raise altered_file(f"{path}: model.json does not name it")
            continue
        raw = _read(path, beside=True)
        if Digest.of(raw) != expected:
            raise altered_file(f"{path}: its digest is {Digest.of(raw)}, and model.json says {expected}")
        if again and form_of(kind, exported.model, exported.schema) != raw:
            raise ModelError(
                "MODEL_ALTERED", f"{path}: made again from model.json, it has other bytes", case="bytes"
            )
        found.append(path.name)
    return found


def _read(path: Path, *, beside: bool = False) -> bytes:
    try:
        return read_file(path, MAX_BYTES)
    except UserFileError as error:
        cause = f"{path}: {error.cause}"
        raise ModelError("MODEL_FILE", cause, case="missing" if beside else "path") from error
