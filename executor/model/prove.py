"""`executor model prove`: sign an exported model as its node, for auditors' tools."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.output import answer

NODE = "NODE"


@click.command()
@click.argument("process")
@click.argument("node")
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--genesis", metavar="SHA256", help="The first block's hash, known from elsewhere.")
@click.option(
    "--file",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="An export of the channel to read, in place of the ledger.",
)
@click.option("--force", is_flag=True, help="Replace a proof that is there.")
@json_option
@caller_options(NODE)
@reported
def prove(
    *,
    process: str,
    node: str,
    folder: Path,
    genesis: str | None,
    file: Path | None,
    force: bool,
    as_json: bool,
    caller: Caller,
) -> None:
    """Write model.sig and claims.jsonl beside the model that `model export` wrote to FOLDER.

    The whole channel is verified first; what it says of the model is signed with the node's certificate.
    `model_signing verify certificate` checks model.sig, `executor audit proof` checks all of it.
    """
    from executor.audit.bundle import parse_anchor  # noqa: PLC0415
    from executor.audit.chain import Anchor  # noqa: PLC0415
    from executor.audit.proof.channel import read_channel  # noqa: PLC0415
    from executor.audit.proof.claims import CLAIMS, MODEL_SIG, Pin  # noqa: PLC0415
    from executor.audit.proof.folder import read_model  # noqa: PLC0415
    from executor.audit.proof.sign import Signer, make_proof  # noqa: PLC0415
    from executor.audit.subject_commands import exported  # noqa: PLC0415
    from executor.ledger.identities import load_identity  # noqa: PLC0415
    from executor.model.verify import verify_forms  # noqa: PLC0415
    from experiments.pages import write_whole  # noqa: PLC0415

    for name in (CLAIMS, MODEL_SIG):
        if (folder / name).exists() and not force:
            raise UsageError("EXPORT_EXISTS", f"{folder / name} is there", case="proof")
    model = read_model(folder)
    verify_forms(folder, model, again=False)
    if caller.identity == NODE:
        caller = replace(caller, identity=node)
    identity = load_identity(caller.network, caller.organisation, caller.identity)
    pin = Pin(process, node, identity.msp_id)
    with exported(caller, file, process) as (source, peers):
        anchor = genesis or peers
        if anchor is None:
            raise UsageError("AUDIT_ANCHOR", "an export cannot vouch for itself")
        known = read_channel(source, Anchor(parse_anchor(anchor)), pin)
    signer = Signer(identity.certificate, identity.sign)
    made = make_proof(folder, model, pin, signer, known, datetime.now(UTC))
    write_whole(folder / CLAIMS, made.claims)
    write_whole(folder / MODEL_SIG, made.signature)
    shown = {
        "model": f"{process}/{node}",
        "owner": pin.owner,
        "genesis": str(made.genesis),
        "files": [CLAIMS, MODEL_SIG],
    }
    text = f"{process}/{node}: {folder / CLAIMS} and {folder / MODEL_SIG}\ngenesis {made.genesis}"
    answer(shown, lambda: text, as_json=as_json)
