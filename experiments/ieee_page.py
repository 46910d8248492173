"""What the experiment on card transactions prints, writes and puts on the results page."""

from dataclasses import asdict
from pathlib import Path

from experiments import pages
from experiments.alerts import ALERT_METRICS, BUDGET, REVIEW, SURE, cost_of_none
from experiments.claims import goals_grid
from experiments.drift import COLUMNS, REFUSED
from experiments.ieee import MODULES, POOLED, TOPOLOGIES, IeeeResult
from experiments.ieee_settings import CHOSEN
from experiments.kept import made_by
from experiments.pages import Grid, plain, signed, write_csv

TITLE = "Card transactions over time (IEEE-CIS)"
WORDS = f"""Twenty nodes, the addresses with most transactions, of 4 organisations in blocks of five. Each of
four iterations has a window of about 36 days; the fifth window of all nodes tests every model.
Pooled is what one node would learn from everybody's rows: a bound, since nobody may have them. Federated is
the full topology. Refused is how many estimators of honest nodes a node's home check did not take in all
iterations, one that is offered twice counted twice. Figures are means over nodes and seeds, ±
the deviation of the seeds; one seed has none, and says nothing about how far another would lie.

A day's budget is {BUDGET} alerts for all nodes together; recall is read off where precision is {SURE:g}; the
cost a day is the amount of the frauds that no alert named plus {REVIEW:g} for each alert, which is assumed.
The hostile organisation sends what [hostile members](#hostile-members) send; the honest nodes are measured.
The attackers' trees are made for the home check in force here. `--choose` tries the settings with three
windows to train on and the fourth to test on."""


def quality_grid(result: IeeeResult) -> Grid:
    """Every kind and way to learn."""
    rows = []
    for kind in result.kinds:
        for way in (*TOPOLOGIES, POOLED):
            ap = plain(result.mean(kind, way))
            if len(result.seeds) > 1:
                ap += f" ± {plain(result.spread(kind, way))}"
            others = [result.mean(kind, way, metric) for metric in ALERT_METRICS[1:]]
            cells = [plain(value) for value in others[:-1]] + [f"{others[-1]:,.0f}"]
            rows.append((f"{kind}, {way}", ap, *cells, f"{result.mean(kind, way, REFUSED):.1f}"))
    rows.append(("no alert", "", "", plain(0.0), f"{cost_of_none(result.split.test):,.0f}", ""))
    columns = (
        "Kind and way",
        "AP",
        "Precision in the budget",
        f"Recall at {SURE:g}",
        "Cost a day",
        "Refused",
    )
    return Grid("Alone, federated and pooled", columns, rows)


def attack_grid(result: IeeeResult) -> Grid:
    """One hostile organisation of four."""
    rows = [
        (
            f"{row.kind}, {row.attack}",
            plain(row.ap),
            plain(row.clean_ap),
            signed(-row.loss),
            plain(row.worst_ap),
            f"{row.refused:.1f}",
            f"{row.refused_hostile:.1f}",
        )
        for row in result.attacks()
    ]
    columns = (
        "Kind and attack",
        "AP",
        "Without attack",
        "Change, as a share",
        "Worst node",
        "Refused",
        "Refused, hostile",
    )
    return Grid("Beside a hostile organisation, full topology", columns, rows)


def grids(result: IeeeResult) -> list[Grid]:
    """Every table, in reading order."""
    return [goals_grid("Goals", result.goals()), quality_grid(result), attack_grid(result)]


def ieee_text(result: IeeeResult) -> str:
    """All tables, one after the other."""
    return "\n".join([_run(result), "", *(grid.text() for grid in grids(result))])


def ieee_json(result: IeeeResult) -> dict[str, object]:
    """The results as one object for programs."""
    return {**result.as_dict(), "versions": pages.versions()}


def write_ieee(result: IeeeResult, out: Path | None, docs: Path | None) -> None:
    """CSV into `out`; the page's part into `docs`."""
    if out is not None:
        rows = [
            (kind, way, seed, node, *values)
            for (kind, way), runs in result.runs.items()
            for seed, run in zip(result.seeds, runs, strict=True)
            for node, values in enumerate(run.tolist())
        ]
        write_csv(out / "ieee-cis.csv", ("kind", "way", "seed", "node", *COLUMNS), rows)
        attacks = [{**asdict(row), "loss": row.loss} for row in result.attacks()]
        write_csv(out / "ieee-cis-hostile.csv", list(attacks[0]), (tuple(row.values()) for row in attacks))
    if docs is not None:
        options = "--quick" if result.quick else f"--seeds {len(result.seeds)}"
        command = f"executor experiment ieee-cis {options}"
        blocks: list[Grid | str] = [_run(result), WORDS, *grids(result)]
        pages.write_part(docs, "ieee-cis", pages.section(TITLE, command, result.seeds, blocks))


def _run(result: IeeeResult) -> str:
    sizes = [window for windows in result.split.sizes().values() for window in windows]
    rows, frauds = (sum(part) for part in zip(*sizes, strict=True))
    test = result.split.test
    return (
        f"{rows:,} rows with {frauds:,} frauds to train on, "
        f"{len(test.y):,} with {int(test.y.sum()):,} to test; seeds run: {len(result.seeds)}. "
        f"Settings: {', '.join(f'{kind} {name}' for kind, name in CHOSEN.items())}; {made_by(*MODULES)}."
    )
