"""The paper's claims, each held against the runs, and this project's goals, each met or missed."""

import numpy as np

from experiments.comparison import Difference
from experiments.metrics import PAPER_METRICS, PARTS, TITLES, Runs, gains, origin_shares
from experiments.pages import Grid, plain, signed
from experiments.reference import PAPER_EXTREMES, PAPER_GAIN, PAPER_NAMES, PAPER_SILENT
from protocol.values import dataclass

REPRODUCES, PARTLY, NOT = "reproduces", "partly", "does not"
FEDERATED = ("ring", "full")
ROUNDING = 5e-4  # the paper prints three digits
HARDLY = 0.02  # "almost no estimators": under two in a hundred


@dataclass(frozen=True)
class Claim:
    """What the paper says, whether it holds here, and the figures that decide."""

    text: str
    verdict: str
    measured: str


def judge(table_exact: bool, runs: dict[str, Runs], full_over_ring: dict[str, Difference]) -> list[Claim]:
    """Every claim of the paper's experiments section, in its order."""
    return [
        _sizes(table_exact),
        _greatest_node(runs),
        _greatest_gain(runs),
        *(_least_gain(runs, topology) for topology in FEDERATED),
        _typical_gain(runs),
        _train_falls(runs),
        _full_and_ring(runs, full_over_ring),
        _silent_nodes(runs),
        _uniform_mixing(runs),
        _travel(runs),
    ]


def claims_grid(claims: list[Claim]) -> Grid:
    """The claims as a table."""
    rows = [(claim.text, claim.verdict, claim.measured) for claim in claims]
    return Grid("What reproduces", ("The paper says", "Here it", "Measured"), rows, figures=False)


def _graded(passed: int, total: int) -> str:
    if passed == total:
        return REPRODUCES
    return PARTLY if passed else NOT


def _sizes(exact: bool) -> Claim:
    measured = "all 20 training sets and the test set, to the row" if exact else "sizes differ"
    return Claim("Node sizes and frauds of its table", REPRODUCES if exact else NOT, measured)


def _each(runs: dict[str, Runs]) -> list[tuple[str, str, np.ndarray]]:
    base = runs["disconnected"]
    return [(t, m, gains(runs[t], base, m)) for t in FEDERATED for m in PAPER_METRICS]


def _greatest_node(runs: dict[str, Runs]) -> Claim:
    winners = np.concatenate([improvement.argmax(axis=1) for _, _, improvement in _each(runs)])
    count = int((winners == 2).sum())
    verdict = REPRODUCES if count == len(winners) else (PARTLY if count > len(winners) / 2 else NOT)
    return Claim(
        "Node 2 gains most, in every topology and metric", verdict, f"{count} of {len(winners)} cases"
    )


def _greatest_gain(runs: dict[str, Runs]) -> Claim:
    met, said = 0, []
    for topology, name, improvement in _each(runs):
        node2 = improvement[:, 2]
        low, high = node2.min() - ROUNDING, node2.max() + ROUNDING
        met += bool(low <= PAPER_EXTREMES[topology][name].max <= high)
        said.append(f"{topology} {TITLES[name]} {signed(node2.min())}..{signed(node2.max())}")
    text = "Node 2 gains BAcc +0.395, precision +0.918 (full) or +0.938 (ring), recall +0.789"
    return Claim(
        text, _graded(met, len(said)), f"inside the seeds' range {met} of {len(said)}: " + "; ".join(said)
    )


def _least_gain(runs: dict[str, Runs], topology: str) -> Claim:
    said, met = [], 0
    for name in PAPER_METRICS:
        least = gains(runs[topology], runs["disconnected"], name).min(axis=1)
        paper = PAPER_EXTREMES[topology][name].min
        met += bool(least.min() - ROUNDING <= paper <= least.max() + ROUNDING)
        said.append(f"{TITLES[name]} {signed(least.min())}..{signed(least.max())} (paper {signed(paper)})")
    text = f"Least gain of a node, {PAPER_NAMES[topology]}"
    return Claim(text, _graded(met, 3), "; ".join(said))


def _typical_gain(runs: dict[str, Runs]) -> Claim:
    low, high = PAPER_GAIN
    met, said = 0, []
    for topology, name, improvement in _each(runs):
        mean, median = improvement.mean(), np.median(improvement, axis=1).mean()
        met += sum(low <= round(value, 2) <= high for value in (mean, median))
        said.append(f"{topology} {TITLES[name]} {signed(mean)}/{signed(median)}")
    text = "Mean and median test gain 0.1 to 0.2 in all three metrics"
    return Claim(text, _graded(met, 12), f"{met} of 12 in that range; mean/median: " + "; ".join(said))


def _train_falls(runs: dict[str, Runs]) -> Claim:
    values = []
    for topology in FEDERATED:
        for name in PAPER_METRICS:
            improvement = gains(runs[topology], runs["disconnected"], name, PARTS[1])
            values += [improvement.mean(), np.median(improvement, axis=1).mean()]
    met = sum(value < 0 for value in values)
    measured = (
        f"{met} of {len(values)} means and medians negative, {signed(min(values))}..{signed(max(values))}"
    )
    return Claim("On the nodes' own training rows the metrics fall", _graded(met, len(values)), measured)


def _full_and_ring(runs: dict[str, Runs], gaps: dict[str, Difference]) -> Claim:
    base = runs["disconnected"]
    ring, full = (gains(runs[t], base, "bacc").mean() for t in FEDERATED)
    gap = gaps["bacc"]
    ahead, close = gap.sign > 0, ring >= 0.8 * full
    measured = (
        f"mean BAcc gain full {signed(full)}, ring {signed(ring)}; difference {signed(gap.mean)} "
        f"[{signed(gap.low)}, {signed(gap.high)}]" + ("" if ahead else ", no difference shown")
    )
    verdict = REPRODUCES if ahead and close else (PARTLY if full > ring or close else NOT)
    return Claim("Fully connected helps more, pairwise almost as much", verdict, measured)


def _silent_nodes(runs: dict[str, Runs]) -> Claim:
    shares = origin_shares(runs["full"]).mean(axis=0)
    quiet = [i for i in PAPER_SILENT if shares[i] < HARDLY]
    others = [str(i) for i in range(len(shares)) if shares[i] < HARDLY and i not in PAPER_SILENT]
    greatest = max(PAPER_SILENT, key=lambda i: float(shares[i]))
    most = f"most: node {greatest}, {shares[greatest]:.1%}"
    also = f"; so are {', '.join(others)}" if others else ""
    measured = f"{len(quiet)} of {len(PAPER_SILENT)} under {HARDLY:.0%} ({most}){also}"
    text = "Nodes 0, 2, 5, 6, 8 and 10 make almost no tree that others use (full)"
    return Claim(text, _graded(len(quiet), len(PAPER_SILENT)), measured)


def _uniform_mixing(runs: dict[str, Runs]) -> Claim:
    shares = origin_shares(runs["full"])
    columns = shares.mean(axis=0)
    apart = float(np.abs(shares - columns).sum(axis=1).mean() / 2)
    top = np.argsort(-columns, kind="stable")[:5]
    rows_alike, columns_alike = apart < 0.1, columns.max() < 2 / len(columns)
    verdict = REPRODUCES if rows_alike and columns_alike else (PARTLY if rows_alike or columns_alike else NOT)
    measured = (
        f"a holder differs from the average holder in {apart:.0%} of its trees, but "
        f"nodes {', '.join(map(str, top))} made {columns[top].sum():.0%} of all trees"
    )
    return Claim("Quite uniform mixing (full)", verdict, measured)


def hop_shares(runs: Runs) -> np.ndarray:
    """The share of a node's trees that came from 0, 1, 2, ... hops away on the ring."""
    shares = origin_shares(runs)
    count = len(shares)
    offsets = np.abs(np.arange(count)[:, None] - np.arange(count)[None, :])
    hops = np.minimum(offsets, count - offsets)
    return np.array([shares[hops == hop].sum() / count for hop in range(count // 2 + 1)])


def _travel(runs: dict[str, Runs]) -> Claim:
    hops = hop_shares(runs["ring"])
    beyond = hops[2:].sum()
    reached = np.flatnonzero(hops > 0).max()
    measured = (
        "hops 0.." + str(reached) + ": " + "/".join(plain(100 * h, 0) for h in hops[: reached + 1]) + " %"
    )
    verdict = REPRODUCES if beyond > 0.05 else (PARTLY if beyond > 0 else NOT)
    return Claim("On the ring, trees travel beyond direct neighbours", verdict, measured)


@dataclass(frozen=True)
class Goal:
    """A bound on one figure."""

    text: str
    bound: str
    measured: str
    met: bool


def at_least(text: str, bound: float, value: float, sign: bool = False) -> Goal:
    """A goal that a greater figure meets."""
    show = signed if sign else plain
    return Goal(text, f"at least {show(bound)}", show(value), bool(value >= bound))


def at_most(text: str, bound: float, value: float, sign: bool = False) -> Goal:
    """A goal that a smaller figure meets."""
    show = signed if sign else plain
    return Goal(text, f"at most {show(bound)}", show(value), bool(value <= bound))


def holds(text: str, met: bool, measured: str) -> Goal:
    """A goal without a number."""
    return Goal(text, "yes", measured, bool(met))


def goals_grid(title: str, goals: list[Goal]) -> Grid:
    """The goals as a table."""
    rows = [(goal.text, goal.bound, goal.measured, "met" if goal.met else "MISSED") for goal in goals]
    return Grid(title, ("Goal", "Bound", "Measured", ""), rows)
