"""`executor audit`: check afterwards what happened, here or on a machine that has none of this."""

import json
import sys
from pathlib import Path
from typing import NoReturn

import click

from executor.audit import errors as _errors  # noqa: F401 - defines the codes that are raised here
from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.errors import BundleError
from executor.audit.fabric.configuration import RootSet
from executor.audit.files import read_roots, read_statement, verify_file, write_text
from executor.audit.proof.command import proof
from executor.audit.subject_commands import COMMANDS, end_unless
from executor.audit.text import show_verification
from executor.audit.watch_command import watch
from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import exit_code, json_option, message, reported, to_dict
from executor.output import answer
from protocol.errors import AttestreeError


@click.group()
def audit() -> None:
    """Check what happened on the ledger, by nobody's word."""


for command in (*COMMANDS, proof, watch):
    audit.add_command(command)


@audit.command("export")
@click.option("--process", required=True, help="The process that the export is about.")
@click.option(
    "--from-height",
    "first",
    type=click.IntRange(min=0),
    default=0,
    help="Leave out the blocks before it, for somebody with a checkpoint of just this height. [default: 0]",
)
@click.argument("out", type=click.Path(dir_okay=False, path_type=Path))
@caller_options("auditor")
@json_option
@reported
def export(process: str, first: int, out: Path, caller: Caller, as_json: bool) -> None:
    """Write every block of the channel to one file, with the configuration and the certificates.

    Hand the hash of the first block (`genesis`) to whoever verifies the file, by another way than the file.
    """
    from executor.audit.export import export_channel  # noqa: PLC0415 - verifying needs no ledger

    with caller.ledger() as ledger:
        ledger.orchestration.get(process)
        made = export_channel(ledger.transport, process, out, first=first)
    shown = {"file": str(made.file), "genesis": made.genesis, "blocks": made.blocks, "bytes": made.bytes}
    text = f"{made.blocks} blocks in {made.file}\ngenesis {made.genesis}"
    answer(shown, lambda: text, as_json=as_json)


@audit.command("verify")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--genesis", metavar="SHA256", help="The hash of its first block, known from elsewhere.")
@click.option(
    "--roots",
    type=click.Path(file_okay=False, path_type=Path),
    help="A directory with each organisation's root certificates as MSPID-N.pem, known from elsewhere.",
)
@click.option(
    "--statements",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="What an organisation says of its peer (`executor audit attest`); can be given often.",
)
@click.option(
    "--from",
    "resume",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Go on from a checkpoint that an earlier run of yours wrote; it is an anchor, too.",
)
@click.option(
    "--checkpoint",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write where this run stands, if every claim holds, for a later one to go on from.",
)
@json_option
def verify(  # noqa: PLR0917
    file: Path,
    genesis: str | None,
    roots: Path | None,
    statements: tuple[Path, ...],
    resume: Path | None,
    checkpoint: Path | None,
    as_json: bool,
) -> None:
    """Check an export without a network, a peer or an engine; exit 0 only if every claim holds.

    The anchor must come from outside the file: whoever made the file could have made a whole channel.
    """
    try:
        said = [read_statement(path) for path in statements]
        anchor = Anchor() if resume and not (genesis or roots) else anchor_of(genesis, roots)
        found = verify_file(file, anchor, said=said, resume=resume, checkpoint=checkpoint)
    except AttestreeError as error:
        _end_unread(error, as_json)
    answer(found.to_dict(), lambda: show_verification(found), as_json=as_json, indent=2)
    end_unless(found.verified, len(found.failures) + len(found.verdicts[1]))


@audit.command("attest")
@click.option(
    "--out", type=click.Path(dir_okay=False, path_type=Path), help="Where to write it. [default: printed]"
)
@caller_options("auditor")
@reported
def attest(out: Path | None, caller: Caller) -> None:
    """Sign how far the organisation's peer is, with the hashes of its last block and of its state.

    Others compare it with their exports: `executor audit verify --statements FILE`.
    """
    from executor.audit.export import make_statement  # noqa: PLC0415 - verifying needs no ledger

    raw = make_statement(caller).to_bytes()
    if out is None:
        click.echo(raw.decode())
    else:
        write_text(out, f"{raw.decode()}\n")


def anchor_of(genesis: str | None, roots: Path | None) -> Anchor:
    """Read what is known from outside the export; refuse to verify without it."""
    if genesis is None and roots is None:
        raise UsageError("AUDIT_ANCHOR", "an export cannot vouch for itself")
    known = None if genesis is None else parse_anchor(genesis)
    return Anchor(known, None if roots is None else RootSet.of(read_roots(roots)))


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
