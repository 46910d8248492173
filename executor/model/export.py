"""`executor model export`: a model as plain files, once it is known to be what its digest says."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.output import echo

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
    """Write the model of NODE as plain JSON, npz and ONNX, after checking every tree against its digest.

    model.json is always written: it has the digests of the others, and its own SHA-256 stands for all of it.
    """
    from executor.model.content import fetch  # noqa: PLC0415
    from executor.model.files import Exported, to_json  # noqa: PLC0415
    from experiments.pages import write_whole  # noqa: PLC0415
    from protocol.digest import Digest  # noqa: PLC0415

    folder = out or Path(f"{process}-{node}")
    kinds = tuple(kind for kind in FORMATS if kind in (formats or FORMATS) or kind == "json")
    paths = {kind: folder / f"model.{kind}" for kind in kinds}
    for path in paths.values():
        if path.exists() and not force:
            raise UsageError("EXPORT_EXISTS", f"{path} is there")
    with caller.ledger() as ledger:
        found = fetch(ledger, process, node)
    schema = None if spec is None else schema_of(spec, found)
    made = {kind: form_of(kind, found, schema) for kind in kinds if kind != "json"}
    forms = {kind: Digest.of(raw) for kind, raw in made.items()}
    made["json"] = to_json(Exported(found, schema, forms))
    folder.mkdir(parents=True, exist_ok=True)
    for kind, path in paths.items():
        write_whole(path, made[kind])
    digest = str(Digest.of(made["json"]))
    if as_json:
        files = {
            kind: {"path": str(path), "bytes": len(made[kind]), "digest": str(Digest.of(made[kind]))}
            for kind, path in paths.items()
        }
        shown = {"digest": str(found.digest), "trees": len(found.ensemble), "export_digest": digest}
        click.echo(json.dumps({**shown, "files": files}))
    else:
        echo(f"{process}/{node}: {len(found.ensemble)} trees, each as its digest says; {found.digest}")
        for kind, path in paths.items():
            echo(f"{path} ({len(made[kind])} bytes)")
        echo(f"digest of the export, to be given with the files: {digest}")


def form_of(kind: str, model: "Model", schema: "FeatureSchema | None") -> bytes:
    """Return the bytes of a form besides JSON, checked against the model."""
    from executor.model import export_check, npz  # noqa: PLC0415

    if kind == "npz":
        raw = npz.to_npz(model)
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
    if schema is None or schema.digest != model.terms.schema_digest:
        raise UsageError(
            "SPEC_FEATURES",
            f"{spec} does not name the features that {model.terms.process} agreed on",
        )
    return schema
