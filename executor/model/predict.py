"""`executor model predict`: scoring rows with a model, once it is known to be what its digest says."""

import csv
import io
import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.model.export import schema_of, spec_option
from executor.model.options import digest_option, model_option
from executor.number_range import NumberRange
from experiments.pages import write_whole

if TYPE_CHECKING:
    from executor.model.content import Model
    from protocol.agreement.schema import FeatureSchema


@click.command()
@click.argument("process")
@click.argument("node")
@click.argument("data", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--out", type=click.Path(path_type=Path, dir_okay=False), help="A CSV file. [default: stdout]")
@click.option("--label", default="Class", show_default=True, help="The label column of the process.")
@click.option("--drop", multiple=True, help="A column of DATA that is not a feature.")
@spec_option
@click.option("--keep", multiple=True, help="A column of DATA to carry into the result, such as an id.")
@click.option("--threshold", type=NumberRange(0, 1), help="Another threshold than the process's.")
@model_option
@digest_option
@json_option
@caller_options("data-scientist", unless="digest")
@reported
def predict(
    *,
    process: str,
    node: str,
    data: Path,
    out: Path | None,
    label: str,
    drop: tuple[str, ...],
    spec: Path | None,
    keep: tuple[str, ...],
    threshold: float | None,
    file: Path | None,
    digest: str | None,
    as_json: bool,
    caller: Caller | None,
) -> None:
    """Score the rows of DATA, a CSV or Parquet file, with the model of NODE.

    The result has one line per row: its number from 1 on, the columns to keep, the score, and 1 for
    anomalous or 0. DATA needs no label; scores are measured against one that is there. The columns have to
    be those of the process in their order, or are found by name with --spec.
    """
    from executor.model import rows  # noqa: PLC0415

    found, schema = model_of(caller, process, node, file, digest)
    if spec is not None:
        schema = schema_of(spec, found)
    if schema is None:
        schema = rows.find_schema(data, label, drop, found.terms.schema_digest)
    read = rows.read(data, schema, keep)
    scores = found.scores(read.X)
    decisions = found.decide(scores, threshold)
    summary: dict[str, Any] = {
        "model": str(found.digest),
        "rows": len(scores),
        "anomalous": int(decisions.sum()),
        "threshold": found.voting.threshold if threshold is None else threshold,
    }
    labels = rows.labels_of(data, schema)
    if labels is not None:
        summary["metrics"] = metrics_of(labels, scores, summary["threshold"])
    # Only what was written is said to be: a failure is the one object that a program then reads.
    if out is not None or not as_json:
        kept = read.kept or ((),) * len(scores)
        _write(out, keep, kept, scores.tolist(), decisions.tolist())
    if as_json:
        lists = {"scores": scores.tolist(), "decisions": decisions.tolist()} if out is None else {}
        click.echo(json.dumps({**summary, **lists, **({} if out is None else {"out": str(out)})}))
    else:
        click.echo(
            f"{summary['rows']} rows, {summary['anomalous']} anomalous above {summary['threshold']}", err=True
        )
        if "metrics" in summary:
            told = ", ".join(f"{name} {value:.3f}" for name, value in summary["metrics"].items())
            click.echo(f"against the labels: {told}", err=True)


def metrics_of(labels: Any, scores: Any, threshold: float) -> dict[str, float]:
    """Return every metric of scores against labels, by title."""
    from experiments.metrics import TITLES, measure  # noqa: PLC0415

    found = measure(labels, scores, threshold)
    return {title: getattr(found, name) for name, title in TITLES.items()}


def model_of(
    caller: Caller | None, process: str, node: str, file: Path | None, digest: str | None
) -> "tuple[Model, FeatureSchema | None]":
    """Return the model that was asked for, and the names of its features if the file has them."""
    if file is not None:
        from executor.model.verify import verified  # noqa: PLC0415

        exported = verified(file, process, node, digest, caller)
        return exported.model, exported.schema
    if caller is None:
        raise UsageError("DIGEST_ALONE", "--digest is that of an exported file, and there is no --model")
    from executor.model.content import fetch  # noqa: PLC0415

    with caller.ledger() as ledger:
        return fetch(ledger, process, node), None


def _write(out: Path | None, keep: tuple[str, ...], kept: Any, scores: Any, decisions: Any) -> None:
    file = sys.stdout if out is None else io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(("row", *keep, "score", "anomalous"))
    for i, (texts, score, decision) in enumerate(zip(kept, scores, decisions, strict=True), 1):
        writer.writerow((i, *texts, score, decision))
    if isinstance(file, io.StringIO) and out is not None:
        _put(out, file.getvalue().encode())


def _put(out: Path, raw: bytes) -> None:
    """Write a file whole or not at all; a pipe or a device that is there stays what it is."""
    if out.exists() and not out.is_file():
        out.write_bytes(raw)
    else:
        write_whole(Path(os.path.realpath(out)), raw)
