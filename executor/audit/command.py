"""`executor audit`: check afterwards what happened, here or on a machine that has none of this."""

import json
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from executor.audit import errors as _errors  # noqa: F401 - defines the codes that are raised here
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.errors import AuditError, BundleError
from executor.audit.fabric.configuration import RootSet
from executor.audit.fabric.identity import fingerprint
from executor.audit.text import show_verification
from executor.audit.verify import Verification, verify_bundle
from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import exit_code, json_option, message, reported, to_dict
from executor.output import answer
from executor.user_files import UserFileError, open_file
from protocol.errors import AttestreeError


@click.group()
def audit() -> None:
    """Check what happened on the ledger, by nobody's word."""


@audit.command("export")
@click.option("--process", required=True, help="The process that the export is about.")
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@caller_options("auditor")
@json_option
@reported
def export(process: str, out: Path, caller: Caller, as_json: bool) -> None:
    """Write every block of the channel to one file, with the configuration and the certificates.

    Hand the hash of the first block (`genesis`) to whoever verifies the file, by another way than the file.
    """
    from executor.audit.export import export_channel  # noqa: PLC0415 - verifying needs no ledger

    with caller.ledger() as ledger:
        ledger.orchestration.get(process)
        made = export_channel(ledger.transport, process, out)
    shown = {"file": str(made.file), "genesis": made.genesis, "blocks": made.blocks, "bytes": made.bytes}
    text = f"{made.blocks} blocks in {made.file}\ngenesis {made.genesis}"
    answer(shown, lambda: text, as_json=as_json)


@audit.command("verify")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--genesis", metavar="SHA256", help="The hash of its first block, known from elsewhere.")
@click.option(
    "--roots",
    type=click.Path(file_okay=False, path_type=Path),
    help="A directory with the organisations' root certificates, known from elsewhere.",
)
@json_option
def verify(file: Path, genesis: str | None, roots: Path | None, as_json: bool) -> None:
    """Check an export without a network, a peer or an engine; exit 0 only if every claim holds.

    The anchor must come from outside the file: whoever made the file could have made a whole channel.
    """
    try:
        found = verify_file(file, anchor_of(genesis, roots))
    except AttestreeError as error:
        _end_unread(error, as_json)
    answer(found.to_dict(), lambda: show_verification(found), as_json=as_json, indent=2)
    if not found.verified:
        count = len(found.failures)
        refusal = AuditError("AUDIT_FAILED", f"{count} of the claims do not hold somewhere")
        click.echo(message(refusal), err=True)
        sys.exit(exit_code(refusal))


def verify_file(file: Path, anchor: Anchor, observers: Any = ()) -> Verification:
    """Check the export in a file."""
    try:
        with open_file(file) as opened:
            return verify_bundle(opened, anchor, observers)
    except UserFileError as error:
        raise UsageError("AUDIT_FILE", f"{file} cannot be read: {error.cause}") from error


def anchor_of(genesis: str | None, roots: Path | None) -> Anchor:
    """Read what is known from outside the export; refuse to verify without it."""
    if genesis is None and roots is None:
        raise UsageError("AUDIT_ANCHOR", "an export cannot vouch for itself")
    known = None if genesis is None else parse_anchor(genesis)
    return Anchor(known, None if roots is None else _read_roots(roots))


def _read_roots(folder: Path) -> RootSet:
    from cryptography import x509  # noqa: PLC0415

    found: set[bytes] = set()
    try:
        for path in sorted(folder.rglob("*.pem")):
            found.update(map(fingerprint, x509.load_pem_x509_certificates(path.read_bytes())))
    except (OSError, ValueError) as error:
        raise UsageError("AUDIT_ROOTS", f"{folder} cannot be read: {error}") from error
    if not found:
        raise UsageError("AUDIT_ROOTS", f"{folder} holds no certificates in files called *.pem")
    return RootSet(frozenset(found))


def _end_unread(error: AttestreeError, as_json: bool) -> NoReturn:
    """End with an export that was not judged, in the form of one that was."""
    if not as_json:
        click.echo(message(error), err=True)
    else:
        where = "the file" if isinstance(error, BundleError) else "the command"
        failures = [{"claim": "export", "what": f"{error.code}: {error.cause}", "where": where}]
        shown = {"verified": False, "claims": [], "not_proven": [], "failures": failures}
        click.echo(json.dumps({**shown, "error": to_dict(error)}))
    sys.exit(exit_code(error))
