"""What the experiment with hostile members prints, writes and puts on the results page."""

from dataclasses import asdict, astuple, fields
from pathlib import Path

from experiments import pages
from experiments.adversary import MODULES, AdversaryResult, Row
from experiments.claims import goals_grid
from experiments.kept import made_by
from experiments.pages import Grid, plain, signed, write_csv
from experiments.reference import EARLIER_DEFENCE
from experiments.scenes import DEFAULT, DEFENCES, VICTIMS
from learning.accord import ALARMED, DOUBTED, FOUND, SAID
from learning.hostile_trees import BELOW, MARGIN, NUDGE

WORDS = f"""Hostile nodes always SHARE their newest trees, made for the attack. There are 20 nodes of 4
organisations in blocks of five, as the network deals them, or the 4 nodes of the example, each an
organisation.

- `zero`, `one`, `grey`: random trees of 60 splits whose leaves say normal, anomalous, or one half and above
- `noise`: trees fitted to random labels
- `mimic`: trees that find four of the node's own frauds, made big by a grafted branch that says normal
- `main-leaf`: true trees that keep only the leaves which pass the home check, made big likewise
- `inverted`: the same, and leaves of normal rows say anomalous, up to {BELOW:g} of the alarms that pass
- `shadow`: copies of honest trees seen last, thresholds moved by {NUDGE - 1:.0e}, leaves as in `main-leaf`
- `accord`: one tree for all hostile nodes, each time with another grafted branch: it finds {FOUND:g} more of
  one node's frauds than has to be found, and says anomalous of the normal rows that look most like frauds,
  up to {ALARMED:g} of the alarms that foreign trees may raise together
- `murmur`: such a tree that says {SAID:g} of {DOUBTED:g} times as many normal rows as may be alarmed
- `eclipse`, `eclipse in accord`: `main-leaf` and `accord` by both ring neighbours of one node, which is
  compared with itself alone

What has to pass the home check is made for the one in force, with {MARGIN:g} to spare in what it finds.

Hostile 1 is a node in the middle of the ring, 3 are of one organisation, 5 are all of it; 3 spread are a
node in each of three organisations. Figures are those of the honest nodes, means over nodes, seeds and
splits; a change is against the same nodes without an attack, so that it also counts the honest trees that
hostile nodes do not send. The worst node is the one of least recall in any single run, which is what the goal
is held against: whoever was harmed once was harmed. Beside it stands the lowest node of any split after
averaging over its seeds, which hides such runs, and the least precision of a node in any run. The settings
were chosen on split 45, seeds 0 and 1; what foreign trees may alarm together, on splits 46 and 47, seed 0."""


def attack_grid(rows: list[Row]) -> Grid:
    """Every attack on what ships, and some on no defence at all."""
    cells = []
    for row in sorted(rows, key=lambda r: (r.defence != DEFAULT, -r.nodes, r.topology, r.hostile)):
        cells.append(
            (
                _name(row),
                row.defence,
                plain(row.recall),
                signed(row.recall - row.clean_recall),
                plain(row.precision),
                signed(row.precision - row.clean_precision),
                plain(row.worst_recall),
                plain(row.worst_mean_recall),
                plain(row.worst_precision),
            )
        )
    columns = (
        "Attack, hostile nodes, topology",
        "Defence",
        "Recall",
        "Change",
        "Precision",
        "Change",
        "Worst node, any run",
        "Mean of seeds",
        "Worst precision, any run",
    )
    return Grid("Under attack", columns, cells)


def _name(row: Row) -> str:
    """Which attack by whom: `accord, 3 spread of 20, full` or `eclipse of node 7, 2 of 20, ring`."""
    attack = row.attack if row.victim is None else f"{row.attack} of node {row.victim}"
    return f"{attack}, {row.hostile}{' spread' if row.spread else ''} of {row.nodes}, {row.topology}"


def before_grid(rows: list[Row]) -> Grid:
    """The worst figures of the defence that counted nodes beside the same attacks now."""
    now = {
        (r.attack, r.hostile, r.nodes, r.topology): r
        for r in rows
        if r.defence == DEFAULT and not r.spread and r.victim in (None, VICTIMS[0])
    }
    cells = []
    for earlier in EARLIER_DEFENCE:
        row = now.get((earlier.attack, earlier.hostile, earlier.nodes, earlier.topology))
        if row is not None:
            value = row.recall if earlier.metric == "recall" else row.precision
            where = f"{earlier.attack}, {earlier.hostile} of {earlier.nodes}, {earlier.topology}"
            cells.append((where, earlier.metric, plain(earlier.value), plain(value)))
    note = "Before: the defence by node, measured once outside this project with its simulator, seeds 0 to 2."
    return Grid("Before and after", ("Attack", "Metric", "Before", "Now"), cells, note)


def grids(result: AdversaryResult) -> list[Grid]:
    """Every table, in reading order."""
    rows = result.rows()
    before = before_grid(rows)
    return [
        goals_grid("Goals for what ships, against the worst attack", result.goals()),
        *([before] if before.rows else []),
        attack_grid(rows),
    ]


def adversary_text(result: AdversaryResult) -> str:
    """All tables, one after the other."""
    return "\n".join([_runs(result), "", *(grid.text() for grid in grids(result))])


def adversary_json(result: AdversaryResult) -> dict[str, object]:
    """The results as one object for programs."""
    return {
        "attacks": [asdict(row) for row in result.rows()],
        "goals": [vars(goal) for goal in result.goals()],
        "seeds": {str(part): list(seeds) for part, seeds in result.seeds.items()},
        "versions": pages.versions(),
    }


def write_adversary(result: AdversaryResult, out: Path | None, docs: Path | None) -> None:
    """CSV into `out`; the page's part into `docs`."""
    if out is not None:
        names = [field.name for field in fields(Row)]
        write_csv(out / "attacks.csv", names, (astuple(row) for row in result.rows()))
    if docs is not None:
        seeds = sorted({seed for seeds in result.seeds.values() for seed in seeds})
        command = f"executor experiment robust {'--quick' if result.quick else f'--seeds {result.asked}'}"
        blocks: list[Grid | str] = [_runs(result), WORDS, *grids(result)]
        pages.write_part(docs, "robust", pages.section("Hostile members", command, seeds, blocks))


def _runs(result: AdversaryResult) -> str:
    """What was run and what made it; written after each seed, so that it may be less than was asked for."""
    parts = "; ".join(f"split {part}: {len(seeds)}" for part, seeds in result.seeds.items())
    done = min(map(len, result.seeds.values()))
    state = "all" if done == result.asked else f"{done} of {result.asked}: the run was not ended"
    format_ = DEFENCES[DEFAULT].estimator_format
    return (
        f"Runs: {len(result.runs)} of each federation, {len(result.seeds)} splits; seeds by split: {parts} "
        f"({state}). Estimator format {format_}; {made_by(*MODULES)}."
    )
