"""`executor audit proof`: check a model's files against the proof that came with them."""

from pathlib import Path
from typing import Any

import click

from executor.audit.bundle import parse_anchor
from executor.audit.chain import Anchor
from executor.audit.fabric.organisation import Organisation
from executor.audit.files import read_roots_of
from executor.audit.findings import Findings
from executor.audit.proof.channel import ModelChannel, read_channel
from executor.audit.proof.claims import Pin
from executor.audit.proof.verify import SENTENCES, verify_proof
from executor.audit.subject_commands import end_unless
from executor.audit.text import show_claim, show_failure
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.output import answer
from protocol.errors import IdentifierError
from protocol.identifiers import parse_node, parse_organisation, parse_process

NOT_PROVEN = (
    "That a task really ran in its container: whoever holds the node's key can sign trees made elsewhere.",
    "That the data are true: a commitment binds a node to its rows and says nothing of where they come from.",
)
ROOTS_ALONE = (
    "That the channel says what the provenance says: roots alone were given, so it is the node's word. Give"
    " --file with an export of the channel and --genesis.",
    "That the node's certificate was not revoked: revocation lists are in the channel's configuration.",
)


@click.command("proof")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--model", "name", required=True, metavar="PROCESS/NODE", help="Which model it has to be.")
@click.option("--owner", required=True, metavar="MSPID", help="Whose it has to be, such as Org1MSP.")
@click.option(
    "--roots",
    type=click.Path(path_type=Path),
    help="The owner's root certificates: a file in PEM, or a directory with MSPID-N.pem.",
)
@click.option(
    "--file", "file", type=click.Path(dir_okay=False, path_type=Path), help="An export of the channel."
)
@click.option("--genesis", metavar="SHA256", help="The first block's hash, known from elsewhere.")
@json_option
@reported
def proof(  # noqa: PLR0917
    folder: Path,
    name: str,
    owner: str,
    roots: Path | None,
    file: Path | None,
    genesis: str | None,
    as_json: bool,
) -> None:
    """Check that FOLDER holds the model that its node signed, and that the channel says where it comes from.

    Without an export of the channel (--file and --genesis), the owner's roots tell who signed and no more.
    """
    from executor.audit.proof.folder import read_proof  # noqa: PLC0415 - needs numpy

    pin = parse_pin(name, owner)
    if (file is None) != (genesis is None) or (file is None and roots is None):
        raise UsageError("AUDIT_ANCHOR", "a proof cannot vouch for itself", case="proof")
    found = read_proof(folder)
    findings = Findings(SENTENCES)
    known: ModelChannel | None = None
    if file is not None and genesis is not None:
        known = read_channel(file, Anchor(parse_anchor(genesis)), pin)
        organisation = known.organisation
    else:
        organisation = Organisation.of_roots(pin.owner, read_roots_of(pin.owner, roots or folder))
    verify_proof(findings, found, pin, organisation, known)
    shown = _to_dict(pin, findings, known)
    answer(shown, lambda: _text(pin, findings, known), as_json=as_json, indent=2)
    end_unless(findings.verified, len(findings.failures), "proof")


def parse_pin(name: str, owner: str) -> Pin:
    """Read whose model is meant."""
    words = name.split("/")
    if len(words) != 2:
        raise IdentifierError("NAME_SYNTAX", f"{name[:80]!r} names no model")
    return Pin(parse_process(words[0]), parse_node(words[1]), parse_organisation(owner))


def _not_proven(known: ModelChannel | None) -> list[str]:
    return [*(ROOTS_ALONE if known is None else ()), *NOT_PROVEN]


def _to_dict(pin: Pin, findings: Findings, known: ModelChannel | None) -> dict[str, Any]:
    return {
        "model": f"{pin.process}/{pin.node}",
        "owner": pin.owner,
        "verified": findings.verified,
        "claims": [claim.to_dict() for claim in findings.claims],
        "failures": [failure.to_dict() for failure in findings.failures],
        "not_proven": _not_proven(known),
    }


def _text(pin: Pin, findings: Findings, known: ModelChannel | None) -> str:
    parts = [f"model {pin.process}/{pin.node} of {pin.owner}", "", *map(show_claim, findings.claims)]
    if findings.failures:
        parts += ["", "Not as it should be:", *map(show_failure, findings.failures)]
    parts += ["", "What this does not prove:", *(f"- {sentence}" for sentence in _not_proven(known))]
    return "\n".join([*parts, "", "verified" if findings.verified else "NOT VERIFIED"])
