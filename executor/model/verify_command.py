"""`executor model verify`: are these files the model, as it was exported?"""

import json
from pathlib import Path

import click

from executor.caller import Caller, caller_options
from executor.exits import json_option, reported
from executor.model.options import digest_option
from executor.output import echo


@click.command()
@click.argument("process")
@click.argument("node")
@click.argument("folder", type=click.Path(path_type=Path))
@digest_option
@json_option
@caller_options("data-scientist", unless="digest")
@reported
def verify(
    *, process: str, node: str, folder: Path, digest: str | None, as_json: bool, caller: Caller | None
) -> None:
    """Check that FOLDER holds the model of NODE as it was exported; exit 14 if anything was altered.

    Every field is compared with the ledger, or all of it with the digest that `model export` printed.
    """
    from executor.model.verify import verified, verify_forms  # noqa: PLC0415

    exported = verified(folder / "model.json", process, node, digest, caller)
    names = ["model.json", *verify_forms(folder, exported, again=digest is None)]
    by = "the ledger" if digest is None else "the digest given"
    if as_json:
        click.echo(json.dumps({"ok": True, "digest": str(exported.model.digest), "files": names, "by": by}))
    else:
        echo(f"{process}/{node}: {', '.join(names)} are as exported, by {by}")
