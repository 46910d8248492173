"""`executor model compare`: the models of several nodes on the same rows, which stay on this machine."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.model.export import schema_of, spec_option
from executor.model.options import digests_option, models_option
from executor.model.predict import metrics_of
from executor.output import answer, table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from executor.model.content import Model
    from protocol.agreement.schema import FeatureSchema


@click.command()
@click.argument("process")
@click.argument("data", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--node", "nodes", multiple=True, help="A model to compare. [default: all of the process]")
@click.option("--label", default="Class", show_default=True, help="The label column of the process.")
@click.option("--drop", multiple=True, help="A column of DATA that is not a feature.")
@spec_option
@models_option
@digests_option
@json_option
@caller_options("data-scientist", unless="digests")
@reported
def compare(
    *,
    process: str,
    data: Path,
    nodes: tuple[str, ...],
    label: str,
    drop: tuple[str, ...],
    spec: Path | None,
    files: tuple[Path, ...],
    digests: tuple[str, ...],
    as_json: bool,
    caller: Caller | None,
) -> None:
    """Compare the models of PROCESS on the rows of DATA: alarms, agreement, and metrics if there are labels.

    Each model is checked as by `model predict`, and decides at its own threshold. The others' decisions are
    compared with those of the first one. With --model, given once for each, they are exported files.
    """
    from executor.model import rows  # noqa: PLC0415

    if files or digests:
        models, schema = exported_models(caller, process, nodes, files, digests)
    else:
        assert caller is not None  # noqa: S101 - only digests make it so
        models, schema = published(caller, process, nodes), None
    first = models[0]
    wanted = first.terms.schema_digest
    if spec is not None:
        schema = schema_of(spec, first)
    if schema is None:
        schema = rows.find_schema(data, label, drop, wanted)
    found = compared(models, rows.read(data, schema).X, rows.labels_of(data, schema))
    shown = {"process": process, "models": found}
    answer(shown, lambda: comparison_text(process, found), as_json=as_json)


def published(caller: Caller, process: str, nodes: tuple[str, ...]) -> "list[Model]":
    """Return models from the ledger: those of the nodes, or all of the process."""
    from executor.model.content import fetch  # noqa: PLC0415

    with caller.ledger() as ledger:
        named = nodes or tuple(item.node for item in ledger.models.list(process))
        if len(set(named)) < 2:
            raise UsageError("COMPARE_MODELS", f"{len(set(named))} model of {process} to compare")
        return [fetch(ledger, process, node) for node in dict.fromkeys(named)]


def exported_models(
    caller: Caller | None,
    process: str,
    nodes: tuple[str, ...],
    files: tuple[Path, ...],
    digests: tuple[str, ...],
) -> "tuple[list[Model], FeatureSchema | None]":
    """Return models from exported files, and the names of their features if a file has them."""
    from executor.model.verify import verified  # noqa: PLC0415

    if not files:
        raise UsageError("DIGEST_ALONE", "--digest is that of an exported file, and there is no --model")
    if nodes:
        raise UsageError("COMPARE_MODELS", "--node and --model exclude each other", case="nodes")
    if digests and len(digests) != len(files):
        cause = f"--model is given {len(files)} times, and --digest {len(digests)} times"
        raise UsageError("COMPARE_MODELS", cause, case="digests")
    if len(files) < 2:
        raise UsageError("COMPARE_MODELS", f"{len(files)} model of {process} to compare")
    given = digests or (None,) * len(files)
    found = [verified(file, process, None, digest, caller) for file, digest in zip(files, given, strict=True)]
    models = [exported.model for exported in found]
    for file, model in zip(files, models, strict=True):
        if model.terms.schema_digest != models[0].terms.schema_digest:
            cause = f"{file} has other features than {files[0]}"
            raise UsageError("COMPARE_MODELS", cause, case="schema")
    return models, next((exported.schema for exported in found if exported.schema is not None), None)


def compared(models: "list[Model]", X: "NDArray[np.float32]", labels: Any) -> list[dict[str, Any]]:
    """Return what each model makes of the rows; with labels, how well."""
    entries: list[dict[str, Any]] = []
    base = None
    for model in models:
        scores = model.scores(X)
        decisions = model.decide(scores)
        base = decisions if base is None else base
        entry: dict[str, Any] = {
            "node": model.terms.node,
            "digest": str(model.digest),
            "trees": len(model.ensemble),
            "rows": len(X),
            "anomalous": int(decisions.sum()),
            "mean_score": float(scores.mean()),
            "decided_otherwise": int((decisions != base).sum()),
        }
        if labels is not None:
            entry["metrics"] = metrics_of(labels, scores, model.voting.threshold)
        entries.append(entry)
    return entries


def comparison_text(process: str, entries: list[dict[str, Any]]) -> str:
    """Return a table, one line per model."""
    titles = list(entries[0].get("metrics", {}))
    lines = [
        (
            entry["node"],
            str(entry["trees"]),
            str(entry["anomalous"]),
            str(entry["decided_otherwise"]),
            *(f"{entry['metrics'][title]:.3f}" for title in titles),
        )
        for entry in entries
    ]
    columns = ("Node", "Estimators", "Alarms", f"Unlike {entries[0]['node']}", *titles)
    return table(f"Models of {process} on {entries[0]['rows']} rows", columns, lines)
