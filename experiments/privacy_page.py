"""What the experiment on privacy prints, writes and puts on the results page."""

from pathlib import Path

from experiments import pages
from experiments.metrics import TITLES
from experiments.pages import Grid, plain, write_csv
from experiments.privacy import ANOMALIES, FALSE_ALARMS, QUALITY, ROWS, PrivacyResult

TITLE = "What shared estimators give away"
WORDS = f"""Each node learns ten estimators from half of its rows. Whoever has them, and a row with its label,
says whether the row was among that half: by how sure the estimators are of the label, or by how close the row
comes to the thresholds on its way, whichever does better. Who guesses has an area of 0.5 under the curve, and
finds {FALSE_ALARMS:.0%} of the members with {FALSE_ALARMS:.0%} of false alarms. This is a lower bound: others
may do better."""


def leaks_grid(result: PrivacyResult) -> Grid:
    """By setting, how well members are told from others."""
    rows = [
        (
            setting.name,
            *(
                plain(value)
                for group in (ROWS, ANOMALIES)
                for value in (leaks[group].auc, leaks[group].found)
            ),
        )
        for setting, leaks in result.leaks.items()
    ]
    columns = ("FIT", "Area, all rows", "Found", "Area, anomalies", "Found")
    note = f"Found: members found with {FALSE_ALARMS:.0%} of false alarms."
    return Grid("Membership of a node's rows, from ten estimators", columns, rows, note)


def quality_grid(result: PrivacyResult) -> Grid:
    """What the settings of the shipped way cost."""
    rows = [
        (setting.name, *(plain(figures[name]) for name in QUALITY))
        for setting, figures in result.quality.items()
    ]
    note = "Means over nodes and seeds; with so few frauds to test on, differences under 0.02 mean nothing."
    return Grid("What it costs on the ring", ("FIT", *(TITLES[name] for name in QUALITY)), rows, note)


def privacy_text(result: PrivacyResult) -> str:
    """Everything as plain tables."""
    return "\n\n".join(grid.text() for grid in (leaks_grid(result), quality_grid(result)))


def privacy_json(result: PrivacyResult) -> dict[str, object]:
    """Everything, by setting."""
    return {
        "seeds": list(result.seeds),
        "versions": pages.versions(),
        "membership": [
            {
                "fit": setting.fit.kind,
                "min_leaf": setting.fit.min_leaf,
                "threshold_bits": setting.fit.threshold_bits,
                **{group: {"auc": leak.auc, "found": leak.found} for group, leak in leaks.items()},
                **({"quality": result.quality[setting]} if setting in result.quality else {}),
            }
            for setting, leaks in result.leaks.items()
        ],
    }


def write_privacy(result: PrivacyResult, out: Path | None, docs: Path | None) -> None:
    """Write the tables as files, and the part of the results page, where asked."""
    grids = (leaks_grid(result), quality_grid(result))
    if out is not None:
        for name, grid in zip(("membership", "quality"), grids, strict=True):
            write_csv(out / f"privacy-{name}.csv", grid.columns, grid.rows)
    if docs is not None:
        command = f"executor experiment privacy --seeds {len(result.seeds)}"
        text = pages.section(TITLE, command, result.seeds, [WORDS, *grids])
        pages.write_part(docs, "privacy", text)
