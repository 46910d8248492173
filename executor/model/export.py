"""`executor model export`: a model as plain files, once it is known to be what its digest says."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported

if TYPE_CHECKING:
    from executor.model.content import Model
    from protocol.agreement.schema import FeatureSchema

FORMATS = ("json", "npz", "onnx")

spec_option = click.option(
    "--spec",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The federation file, for the names of the features.",
)


@click.command()
@click.argument("process")
@click.argument("node")
@click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    help="The directory to write to. [default: PROCESS-NODE]",
)
@click.option("--format", "formats", multiple=True, type=click.Choice(FORMATS), help="[default: all three]")
@spec_option
@click.option("--force", is_flag=True, help="Replace files that are there.")
@json_option
@caller_options("data-scientist")
@reported
def export(
    *,
    process: str,
    node: str,
    out: Path | None,
    formats: tuple[str, ...],
    spec: Path | None,
    force: bool,
    as_json: bool,
    caller: Caller,
) -> None:
    """Write the model of NODE as plain JSON, npz and ONNX, after checking every tree against its digest."""
    from executor.model.content import fetch  # noqa: PLC0415
    from executor.model.files import write  # noqa: PLC0415

    folder = out or Path(f"{process}-{node}")
    paths = {kind: folder / f"model.{kind}" for kind in formats or FORMATS}
    for path in paths.values():
        if path.exists() and not force:
            raise UsageError("EXPORT_EXISTS", f"{path} is there")
    with caller.ledger() as ledger:
        found = fetch(ledger, process, node)
    schema = None if spec is None else schema_of(spec, found)
    made = {kind: _made(kind, found, schema) for kind in paths}
    folder.mkdir(parents=True, exist_ok=True)
    for kind, path in paths.items():
        write(path, made[kind])
    if as_json:
        files = {kind: {"path": str(path), "bytes": len(made[kind])} for kind, path in paths.items()}
        click.echo(json.dumps({"digest": str(found.digest), "trees": len(found.ensemble), "files": files}))
    else:
        click.echo(f"{process}/{node}: {len(found.ensemble)} trees, each as its digest says; {found.digest}")
        for kind, path in paths.items():
            click.echo(f"{path} ({len(made[kind])} bytes)")


def _made(kind: str, model: "Model", schema: "FeatureSchema | None") -> bytes:
    """Return the bytes of one format, checked against the model."""
    from executor.model import export_check, files  # noqa: PLC0415

    if kind == "json":
        raw = files.to_json(model, schema)
        files.from_json(raw, "model.json")
    elif kind == "npz":
        raw = files.to_npz(model)
        export_check.check_npz(raw, model)
    else:
        from executor.model.graph import to_onnx  # noqa: PLC0415

        raw = to_onnx(model, None if schema is None else schema.features)
        export_check.check_onnx(raw, model)
    return raw


def schema_of(spec: Path, model: "Model") -> "FeatureSchema":
    """Return the features that a federation file names, which must be the model's."""
    from executor.process.federation import load  # noqa: PLC0415

    schema = load(spec).features
    if schema is None or schema.digest != model.schema_digest:
        raise UsageError(
            "SPEC_FEATURES",
            f"{spec} does not name the features that {model.process} agreed on",
        )
    return schema
