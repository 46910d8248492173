"""What the comparison with other methods prints, writes and puts on the results pages."""

from pathlib import Path

import numpy as np

from experiments import pages
from experiments.claims import goals_grid
from experiments.methods import BOOSTED, DEFAULT, EXTRA, FULL, PAPER, RING, UNION, MethodsResult
from experiments.metrics import METRICS, TITLES, Scores, metric
from experiments.pages import Grid, plain, signed, write_csv
from experiments.reference import ATTACKED_PEERS, PEERS


def pairs_grid(result: MethodsResult) -> Grid:
    """The default against its rivals, clean, with paired intervals."""
    chosen = ("bacc", "precision", "recall", "ap")
    rows = []
    for name, gaps in result.pairs.items():
        cells = (f"{signed(gaps[m].mean)} [{signed(gaps[m].low)}, {signed(gaps[m].high)}]" for m in chosen)
        rows.append((name, *cells))
    note = "An interval that holds 0 shows no difference; one split alone proves none."
    return Grid("Clean differences, paired 95 % intervals", ("", *(TITLES[m] for m in chosen)), rows, note)


def peers_grid(result: MethodsResult, pooled: Scores | None) -> Grid:
    """Ours beside the methods a user might pick instead."""
    rows = []
    ours = [(rule, topology) for rule in (DEFAULT, EXTRA, BOOSTED, PAPER) for topology in (RING, FULL)]
    for rule, topology in (*ours, (UNION, FULL)):
        runs = result.runs[rule, topology]
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


def losses(result: MethodsResult) -> str:
    """Which reference is ahead of the default on the full topology, in what, and by how much."""
    ours = {name: metric(result.runs[DEFAULT, FULL], name).mean() for name in METRICS[:4]}
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


def grids(result: MethodsResult, pooled: Scores | None) -> list[Grid]:
    """Every table, in reading order."""
    return [
        goals_grid("Goals for the shipped default", result.goals()),
        peers_grid(result, pooled),
        pairs_grid(result),
        attacked_peers_grid(),
    ]


def methods_text(result: MethodsResult, pooled: Scores | None) -> str:
    """All tables, one after the other."""
    return "\n".join(grid.text() for grid in grids(result, pooled))


def methods_json(result: MethodsResult, pooled: Scores | None) -> dict[str, object]:
    """The results as one object for programs."""
    cases = []
    for (rule, topology), runs in result.runs.items():
        means = {name: float(metric(runs, name).mean()) for name in METRICS}
        worst = float(metric(runs, "recall").mean(axis=0).min())
        cases.append({"rule": rule, "topology": topology, "worst_recall": worst} | means)
    return {
        "seeds": list(result.seeds),
        "cases": cases,
        "pooled_forest": None if pooled is None else vars(pooled),
        "goals": [vars(goal) for goal in result.goals()],
        "versions": pages.versions(),
    }


def write_methods(result: MethodsResult, pooled: Scores | None, out: Path | None, docs: Path | None) -> None:
    """CSV and a page into `out`; the page's part into `docs`."""
    if out is not None:
        write_csv(
            out / "methods.csv",
            ("rule", "topology", "seed", "node", *METRICS),
            (
                (*key, run.seed, node, *values.tolist())
                for key, runs in result.runs.items()
                for run in runs
                for node, values in enumerate(run.test)
            ),
        )
        (out / "methods.md").write_text(_section(result, pooled), encoding="utf-8")
    if docs is not None:
        pages.write_part(docs, "methods", _section(result, pooled))


def _section(result: MethodsResult, pooled: Scores | None) -> str:
    aims, peers, pairs, attacked = grids(result, pooled)
    command = f"executor experiment methods --seeds {len(result.seeds)}"
    blocks: list[Grid | str] = [aims, peers, losses(result), pairs, attacked]
    return pages.section("Beside other methods", command, result.seeds, blocks)
