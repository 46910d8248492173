"""What the robustness experiment prints, writes and puts on the results pages."""

from pathlib import Path

import numpy as np

from experiments import figures, pages
from experiments.claims import goals_grid
from experiments.metrics import METRICS, TITLES, Scores, metric
from experiments.pages import Grid, plain, signed, write_csv
from experiments.reference import ATTACKED_PEERS, PEERS
from experiments.robust import ATTACKS, CLEAN, DEFAULT, EXTRA, FULL, PAPER, RING, UNION, RobustResult

ATTACK_WORDS = """One node of twenty (Node 8) is hostile and always SHAREs its ten newest trees:

- `zero`: random trees of 60 splits whose every leaf says normal
- `noise`: trees fitted to random labels
- `mimic`: trees that find four of the node's own frauds, made big by a grafted branch that says normal
- `one`: random trees of 60 splits whose every leaf says anomalous

Figures are those of the honest nodes: mean over nodes and seeds; the worst node by its mean over seeds."""


def attack_grid(result: RobustResult) -> Grid:
    """Clean gain and honest recall under each attack."""
    hiding = [attack for attack in result.attacks if attack != "one"]
    rows = []
    for rule, topology in result.combinations():
        recalls = [plain(result.values(rule, topology, attack).mean()) for attack in (CLEAN, *hiding)]
        ones = (
            plain(result.values(rule, topology, "one", "precision").mean())
            if "one" in result.attacks
            else "-"
        )
        held = max(result.held(rule, topology, attack) for attack in result.attacks)
        rows.append(
            (
                f"{rule}, {topology}",
                signed(result.gain(rule, topology)),
                *recalls,
                plain(result.worst(rule, topology)),
                ones,
                f"{held:.0%}",
            )
        )
    columns = ("Rule, topology", "Clean BAcc gain", "Recall, clean", *hiding)
    columns += ("Worst node, attacked", "Precision, one", "Hostile trees held")
    return Grid("One hostile node of twenty", columns, rows)


def pairs_grid(result: RobustResult) -> Grid:
    """The default against its rivals, clean, with paired intervals."""
    chosen = ("bacc", "precision", "recall", "ap")
    rows = []
    for name, gaps in result.pairs.items():
        cells = (f"{signed(gaps[m].mean)} [{signed(gaps[m].low)}, {signed(gaps[m].high)}]" for m in chosen)
        rows.append((name, *cells))
    note = "An interval that holds 0 shows no difference; one split alone proves none."
    return Grid("Clean differences, paired 95 % intervals", ("", *(TITLES[m] for m in chosen)), rows, note)


def peers_grid(result: RobustResult, pooled: Scores | None) -> Grid:
    """Ours beside the methods a user might pick instead."""
    rows = []
    others = ((PAPER, RING), (PAPER, FULL), (UNION, FULL))
    for rule, topology in ((DEFAULT, RING), (DEFAULT, FULL), (EXTRA, RING), (EXTRA, FULL), *others):
        runs = result.runs[rule, topology, CLEAN]
        values = [plain(metric(runs, name).mean()) for name in METRICS[:4]]
        sent = float(np.median(np.concatenate([run.share_bytes for run in runs])))
        how = f"{sent / 1e3:.1f} kB " + ("once" if rule == UNION else "an iteration")
        rows.append((f"{rule}, {topology}", "here", *values, how))
    if pooled is not None:
        values = [plain(value) for value in (pooled.bacc, pooled.precision, pooled.recall, pooled.ap)]
        rows.append(("pooled plain forest, 50 trees (not a federation)", "here", *values, "all rows"))
    for peer in PEERS:
        values = [plain(value) for value in (peer.bacc, peer.precision, peer.recall, peer.ap)]
        rows.append((peer.name, "reference", *values, peer.traffic))
    columns = ("Method", "Measured", *(TITLES[m] for m in METRICS[:4]), "A node sends")
    note = "Reference: measured once on the same split outside this project, with flwr 1.41 and xgboost 3.2."
    return Grid("Beside other methods, same split and test set", columns, rows, note)


def losses(result: RobustResult) -> str:
    """Which reference is ahead of the default on the full topology, in what, and by how much."""
    ours = {name: metric(result.runs[DEFAULT, FULL, CLEAN], name).mean() for name in METRICS[:4]}
    lines = ["Ahead of the default on the full topology, reference figures against ours:", ""]
    for peer in PEERS:
        ahead = {name: getattr(peer, name) - value for name, value in ours.items()}
        won = [f"{TITLES[name]} {signed(gap)}" for name, gap in ahead.items() if gap > 0]
        lines.append(f"- {peer.name}: " + (", ".join(won) if won else "in nothing") + f"; {peer.cpu:g} CPU s")
    lines += [
        "",
        "What they lack is not accuracy: none of their trees or weights can be traced to its maker, refused",
        "or replayed.",
    ]
    return "\n".join(lines)


def attacked_peers_grid() -> Grid:
    """Reference figures of peers under attack."""
    rows = [(peer.name, plain(peer.clean), plain(peer.attacked)) for peer in ATTACKED_PEERS]
    note = "Attacks on different methods are not of equal strength."
    columns = ("Peer (reference)", "Recall, clean", "Recall, one hostile client")
    return Grid("Other methods under attack", columns, rows, note)


def grids(result: RobustResult, pooled: Scores | None) -> list[Grid]:
    """Every table, in reading order."""
    return [
        attack_grid(result),
        goals_grid("Goals for the shipped default", result.goals()),
        peers_grid(result, pooled),
        pairs_grid(result),
        attacked_peers_grid(),
    ]


def robust_text(result: RobustResult, pooled: Scores | None) -> str:
    """All tables, one after the other."""
    return "\n".join(grid.text() for grid in grids(result, pooled))


def robust_json(result: RobustResult, pooled: Scores | None) -> dict[str, object]:
    """The results as one object for programs."""
    cases = []
    for (rule, topology, attack), runs in result.runs.items():
        honest = range(len(result.split.nodes)) if attack == CLEAN else result.honest
        means = {name: float(metric(runs, name)[:, list(honest)].mean()) for name in METRICS}
        worst = float(metric(runs, "recall").mean(axis=0)[list(honest)].min())
        cases.append({"rule": rule, "topology": topology, "attack": attack, "worst_recall": worst} | means)
    return {
        "seeds": list(result.seeds),
        "cases": cases,
        "pooled_forest": None if pooled is None else vars(pooled),
        "goals": [vars(goal) for goal in result.goals()],
        "versions": pages.versions(),
    }


def write_robust(result: RobustResult, pooled: Scores | None, out: Path | None, docs: Path | None) -> None:
    """CSV, figure and a page into `out`; the page's part and its figure into `docs`."""
    if out is not None:
        write_csv(
            out / "attacks.csv",
            ("rule", "topology", "attack", "seed", "node", *METRICS),
            (
                (*key, run.seed, node, *values.tolist())
                for key, runs in result.runs.items()
                for run in runs
                for node, values in enumerate(run.test)
            ),
        )
        _draw(result, out / pages.FIGURES)
        (out / "robust.md").write_text(_section(result, pooled), encoding="utf-8")
    if docs is not None:
        _draw(result, docs / pages.FIGURES)
        pages.write_part(docs, "robust", _section(result, pooled))


def _section(result: RobustResult, pooled: Scores | None) -> str:
    attacks, aims, peers, pairs, attacked = grids(result, pooled)
    command = f"executor experiment robust --seeds {len(result.seeds)}"
    picture = pages.figure("robust-attacks", "Recall of the honest nodes, clean and under attack")
    blocks: list[Grid | str] = [ATTACK_WORDS, attacks, picture, aims, peers, losses(result), pairs, attacked]
    return pages.section("A hostile member, and other methods", command, result.seeds, blocks)


def _draw(result: RobustResult, directory: Path) -> None:
    rows: dict[str, dict[str, np.ndarray]] = {}
    for rule, topology in result.combinations():
        for attack in (CLEAN, *(a for a in ATTACKS[:3] if a in result.attacks)):
            values = result.values(rule, topology, attack).mean(axis=0)
            rows.setdefault(rule, {})[f"{topology} {attack}"] = np.array([values.mean(), values.min()])
    figures.attack_dots(list(rows.items()), directory / "robust-attacks")
