"""`executor model explain`: which features made a row's score, against rows that stay on this machine."""

import io
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from executor.caller import Caller, caller_options
from executor.errors import UsageError
from executor.exits import json_option, reported
from executor.model.export import schema_of, spec_option
from executor.model.options import digest_option, model_option
from executor.model.predict import model_of
from executor.output import answer, table

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BACKGROUND = 100


@click.command()
@click.argument("process")
@click.argument("node")
@click.argument("data", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--row", type=click.IntRange(1), help="Which row, from 1 on. [default: the highest score]")
@click.option(
    "--background",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Rows to compare with, of the same columns. [default: DATA]",
)
@click.option("--top", type=click.IntRange(1), default=10, show_default=True, help="Features to show.")
@click.option("--plot", type=click.Path(path_type=Path, dir_okay=False), help="A PNG or SVG file to draw to.")
@click.option("--label", default="Class", show_default=True, help="The label column of the process.")
@click.option("--drop", multiple=True, help="A column of DATA that is not a feature.")
@spec_option
@model_option
@digest_option
@json_option
@caller_options("data-scientist", unless="digest")
@reported
def explain(
    *,
    process: str,
    node: str,
    data: Path,
    row: int | None,
    background: Path | None,
    top: int,
    plot: Path | None,
    label: str,
    drop: tuple[str, ...],
    spec: Path | None,
    file: Path | None,
    digest: str | None,
    as_json: bool,
    caller: Caller | None,
) -> None:
    """Say which features made the score of a row of DATA, by exact Shapley values (SHAP, interventional).

    Contributions add up from what the background rows have on average to the row's score; of boosted
    models, in log-odds. A boosted model that votes by majority has no such sum, and is refused. Up to a
    hundred background rows, evenly spaced, are read and stay on this machine.
    """
    if plot is not None:
        _check_plot(plot)
    import numpy as np  # noqa: PLC0415

    from executor.model import rows  # noqa: PLC0415
    from learning.explain import explain as explained  # noqa: PLC0415
    from learning.explain import explainable  # noqa: PLC0415

    found, schema = model_of(caller, process, node, file, digest)
    contents = [estimator.tree for estimator in found.ensemble]
    if not explainable(contents, found.voting.vote):
        raise UsageError(
            "EXPLAIN_VOTE", f"{process}/{node} decides by a majority of boosted estimators, which is no sum"
        )
    if spec is not None:
        schema = schema_of(spec, found)
    if schema is None:
        schema = rows.find_schema(data, label, drop, found.terms.schema_digest)
    X = rows.read(data, schema).X
    scores = found.scores(X)
    place = int(np.argmax(scores)) if row is None else row - 1
    if place >= len(X):
        raise UsageError("EXPLAIN_ROW", f"row {row} of {data}, which has {len(X)}")
    others = _spaced(X if background is None else rows.read(background, schema).X)
    why = explained(contents, found.weights, X[place : place + 1], others, found.voting.vote)
    parts = why.contributions[0]
    order = np.argsort(-np.abs(parts), kind="stable")[:top].tolist()
    shown: dict[str, Any] = {
        "model": str(found.digest),
        "row": place + 1,
        "score": float(scores[place]),
        "unit": why.unit,
        "expected": why.expected,
        "total": float(why.totals[0]),
        "background": len(others),
        "features": [
            {"feature": schema.features[i], "value": _number(X[place, i]), "contribution": float(parts[i])}
            for i in order
        ],
    }
    if plot is not None:
        _draw(plot, shown)
        shown["plot"] = str(plot)
    answer(shown, lambda: _text(shown), as_json=as_json)


def _check_plot(path: Path) -> None:
    """Refuse a file that could not be drawn to, before there is anything to draw."""
    if path.suffix not in (".png", ".svg"):
        raise UsageError("EXPLAIN_PLOT", f"{path.name} ends neither in .png nor in .svg")
    if not path.parent.is_dir():
        raise UsageError("EXPLAIN_PLOT", f"{path.parent} is no folder", case="folder")
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        raise UsageError("EXPLAIN_PLOT", f"{path} cannot be written", case="folder")


def _spaced(X: "NDArray[np.float32]") -> "NDArray[np.float32]":
    """Return up to BACKGROUND rows, evenly spaced: the same file gives the same explanation."""
    import numpy as np  # noqa: PLC0415

    places = np.linspace(0, len(X) - 1, min(len(X), BACKGROUND)).round().astype(int)
    spaced: NDArray[np.float32] = X[places]
    return spaced


def _number(value: Any) -> float | None:
    return None if value != value else float(value)  # noqa: PLR0124 - a missing value is NaN


def _text(shown: dict[str, Any]) -> str:
    lines = []
    for part in shown["features"]:
        value = "missing" if part["value"] is None else f"{part['value']:g}"
        lines.append((part["feature"], value, f"{part['contribution']:+.6f}"))
    title = (
        f"Row {shown['row']}: score {shown['score']:.6f}; {shown['unit']} {shown['total']:.6f}, "
        f"{shown['expected']:.6f} on average of {shown['background']} rows"
    )
    return table(title, ("Feature", "Value", f"Contribution ({shown['unit']})"), lines)


def _draw(path: Path, shown: dict[str, Any]) -> None:
    """Draw the contributions as bars, the greatest on top."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    from experiments.pages import write_whole  # noqa: PLC0415

    parts: Sequence[dict[str, Any]] = shown["features"][::-1]
    figure = Figure(figsize=(7.0, 0.6 + 0.35 * len(parts)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    values = [part["contribution"] for part in parts]
    axes.barh(range(len(parts)), values, color=["#E69F00" if value > 0 else "#0072B2" for value in values])
    axes.set_yticks(range(len(parts)), [part["feature"] for part in parts])
    axes.axvline(0, color="black", lw=0.8)
    axes.set_xlabel(f"contribution to row {shown['row']} ({shown['unit']})")
    drawn = io.BytesIO()
    kind = path.suffix.removeprefix(".")
    figure.savefig(drawn, format=kind, metadata={"Date": None} if kind == "svg" else None)
    write_whole(path, drawn.getvalue())
