"""Claims and goals follow from the figures; tables and pages hold what they were given."""

from pathlib import Path

import numpy as np
import pytest

from experiments import claims, figures, pages
from experiments.claims import at_least, at_most, holds
from experiments.comparison import Difference
from experiments.metrics import RunOutcome, all_gains, gains, origin_shares, summary
from experiments.pages import Grid, plain, signed, write_csv

NODES = 20
NO_GAP = {"bacc": Difference(0.0, -0.01, 0.01)}


def outcome(
    seed: int, test: float, train: float, origins: np.ndarray, node2: float | None = None
) -> RunOutcome:
    values = np.full((NODES, 6), test)
    if node2 is not None:
        values[2] = node2
    own = np.full((NODES, 6), train)
    return RunOutcome(seed, values, own, np.zeros((NODES, 3)), np.full(NODES, 0.5), origins)


def ring_origins(reach: int) -> np.ndarray:
    index = np.arange(NODES)
    apart = np.abs(index[:, None] - index[None, :])
    return (np.minimum(apart, NODES - apart) <= reach).astype(np.int64)


def runs(
    ring: float = 0.75, full: float = 0.78, reach: int = 4, train: float = 0.5
) -> dict[str, list[RunOutcome]]:
    alone, everyone = np.eye(NODES, dtype=np.int64), np.ones((NODES, NODES), dtype=np.int64)
    everyone[:, [0, 2, 5, 6, 8, 10]] = 0
    return {
        "disconnected": [outcome(s, 0.6, 0.9, alone, 0.4) for s in (0, 1)],
        "ring": [outcome(s, ring, train, ring_origins(reach)) for s in (0, 1)],
        "full": [outcome(s, full, train, everyone) for s in (0, 1)],
    }


def verdicts(**changes: float) -> dict[str, str]:
    judged = claims.judge(True, runs(**changes), NO_GAP)  # type: ignore[arg-type]
    return {claim.text: claim.verdict for claim in judged}


def verdict(word: str, **changes: float) -> str:
    return next(value for text, value in verdicts(**changes).items() if word in text)


def test_figures_as_the_paper_has_them_reproduce() -> None:
    assert verdict("Node sizes") == "reproduces"
    assert verdict("gains most") == "reproduces"
    assert verdict("0.1 to 0.2") == "reproduces"
    assert verdict("training rows") == "reproduces"
    assert verdict("almost no tree") == "reproduces"
    assert verdict("beyond direct neighbours") == "reproduces"


def test_figures_that_differ_do_not_reproduce() -> None:
    assert claims.judge(False, runs(), NO_GAP)[0].verdict == "does not"
    assert verdict("0.1 to 0.2", ring=0.61, full=0.61) == "does not"
    assert verdict("0.1 to 0.2", ring=0.61) == "partly"
    assert verdict("training rows", train=0.95) == "does not"
    assert verdict("beyond direct neighbours", reach=1) == "does not"


def test_full_over_ring_counts_only_with_its_interval() -> None:
    ahead = {"bacc": Difference(0.05, 0.01, 0.09)}
    chosen = next(c for c in claims.judge(True, runs(ring=0.79), ahead) if "pairwise almost" in c.text)
    assert chosen.verdict == "reproduces"
    chosen = next(c for c in claims.judge(True, runs(ring=0.79), NO_GAP) if "pairwise almost" in c.text)
    assert chosen.verdict == "partly"
    assert "no difference shown" in chosen.measured


def test_summary_takes_extremes_of_the_seed_mean() -> None:
    improvement = np.array([[0.0, 1.0, 0.2], [0.4, 0.0, 0.2]])
    result = summary(improvement)
    assert result["mean"] == pytest.approx(0.3)
    assert result["median"] == pytest.approx(0.2)
    assert (result["min_node"], result["max_node"]) == (0, 1)
    assert result["max"] == pytest.approx(0.5)


def test_gains_have_the_promised_shape() -> None:
    result = all_gains(runs())
    assert set(result) == {"ring", "full"}
    assert set(result["ring"]) == {"test", "train"}
    assert set(result["ring"]["test"]) == {"bacc", "precision", "recall"}
    assert set(result["ring"]["test"]["bacc"]) == {"mean", "median", "min", "min_node", "max", "max_node"}
    assert gains(runs()["ring"], runs()["disconnected"], "bacc").shape == (2, NODES)


def test_origin_shares_sum_to_one() -> None:
    assert origin_shares(runs()["ring"]).sum(axis=1) == pytest.approx(1)
    hops = claims.hop_shares(runs()["ring"])
    assert hops.sum() == pytest.approx(1)
    assert hops[5:].sum() == 0


def test_goals_are_met_on_the_bound() -> None:
    assert at_least("x", 0.5, 0.5).met
    assert not at_least("x", 0.5, 0.499).met
    assert at_most("x", 0.5, 0.5).met
    assert not at_most("x", 0.5, 0.501).met
    assert not holds("x", False, "no").met


def test_numbers_have_no_negative_zero() -> None:
    assert (signed(-0.0001), plain(-0.0001)) == ("+0.000", "0.000")


def test_table_is_aligned_markdown() -> None:
    lines = Grid("T", ("name", "n"), [("a", "1.0"), ("long name", "-2.0")]).text().splitlines()
    assert lines[2:] == [
        "| name      |    n |",
        "|-----------|-----:|",
        "| a         |  1.0 |",
        "| long name | -2.0 |",
    ]


def test_csv_numbers_read_back_exactly(tmp_path: Path) -> None:
    write_csv(tmp_path / "deep" / "t.csv", ("x",), [(0.1 + 0.2,)])
    assert (tmp_path / "deep" / "t.csv").read_text(encoding="utf-8") == "x\n0.30000000000000004\n"


def test_page_parts_are_replaced_one_by_one(tmp_path: Path) -> None:
    pages.write_part(tmp_path, "robust", "second")
    pages.write_part(tmp_path, "paper", "first")
    text = pages.write_part(tmp_path, "robust", "new second").read_text()
    assert text.index("first") < text.index("new second")
    assert text.count("second") == 1
    assert "old" not in text


def test_same_runs_draw_the_same_bytes(tmp_path: Path) -> None:
    drawn = []
    for name in ("a", "b"):
        paths = figures.improvement_bars(runs(), tmp_path / name / "bars")
        drawn.append([path.read_bytes() for path in paths])
    assert drawn[0] == drawn[1]
    assert drawn[0][0].startswith(b"\x89PNG")
    assert b"<svg" in drawn[0][1]
