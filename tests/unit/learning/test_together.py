"""Foreign trees tried together: several that agree are not let to decide, as one alone is not."""

from dataclasses import replace

import numpy as np
import pytest

from learning.actions import NodeState, get
from learning.ensemble import Ensemble
from learning.errors import ParameterError
from learning.fit_options import FitOptions
from learning.parameters import Parameters
from learning.reach import OwnFit, own_reach
from learning.robust import HOME_CHECK, SPARE, HomeCheck
from learning.rows import Rows
from learning.together import given_up
from protocol.defence import Membership
from protocol.identifiers import EstimatorId
from protocol.trees.estimator import Estimator
from protocol.trees.tree import Tree, TreeLimits

OWN = OwnFit("node00", 0, FitOptions("balanced"), TreeLimits(1))
FOUR = Membership.of({f"node{i:02d}": f"Org{i // 5 + 1}MSP" for i in range(20)})
PARAMETERS = Parameters(n_new=1, n_max=12, n_share=4, members=FOUR)
NORMAL, ANOMALOUS = 4000, 20


@pytest.fixture
def rows() -> Rows:
    """Four thousand normal rows below 0, and twenty anomalies above."""
    X = np.concatenate([np.linspace(-10, -1, NORMAL), np.arange(1, 1 + ANOMALOUS)])[:, None]
    return Rows.of(X, np.arange(len(X)) >= NORMAL)


def alarming(count: int, first: int, branch: int) -> Tree:
    """Find every anomaly and alarm `count` normal rows from `first` on; no two branches are the same tree."""
    values = np.linspace(-10, -1, NORMAL)
    low, high = (
        (values[first] + values[first - 1]) / 2,
        (values[first + count] + values[first + count - 1]) / 2,
    )
    other = 50.0 + branch
    return Tree.from_arrays(
        [0, 0, 0, -1, -1, -1, 0, -1, -1],
        [0.0, high, low, 0, 0, 0, other, 0, 0],
        [1, 2, 3, -1, -1, -1, 7, -1, -1],
        [6, 5, 4, -1, -1, -1, 8, -1, -1],
        [0, 0, 0, 0, 1, 0, 0, 1, 1],
    )


def sent(nodes: list[str], count: int = 30, per_node: int = 2, *, same: bool = True) -> list[Estimator]:
    """What nodes send: trees that alarm the same rows, or each other ones."""
    return [
        Estimator(
            EstimatorId(node, i), alarming(count, 100 if same else 100 + 200 * (per_node * place + i), i)
        )
        for place, node in enumerate(nodes)
        for i in range(per_node)
    ]


def own() -> Estimator:
    return Estimator(EstimatorId("node00", 0), alarming(1, 3000, 9))


def gone(held: list[Estimator], rows: Rows, parameters: Parameters = PARAMETERS) -> set[EstimatorId]:
    return given_up("node00", Ensemble.of(held), parameters, rows, OWN)


@pytest.mark.parametrize(
    "hostile",
    [["node05", "node10", "node15"], ["node05", "node06", "node07"], ["node01", "node02", "node03"]],
    ids=["spread", "one organisation", "fellows"],
)
def test_h16_trees_in_accord_decide_no_more_normal_rows_whoever_sends_them(rows, hostile):
    honest = [
        Estimator(EstimatorId(node, 7), alarming(1, 2500, 7)) for node in ("node04", "node11", "node19")
    ]
    trees = sent(hostile)
    assert [HomeCheck().reasons_to_refuse([tree.tree], rows, 0.3, OWN) for tree in trees] == [[None]] * 6
    left = gone([own(), *honest, *trees], rows)
    assert left
    assert {id_.creator for id_ in left} <= set(hostile)
    assert not gone([e for e in (own(), *honest, *trees) if e.id not in left], rows), "what is left may stay"


def test_h16_a_node_between_hostile_neighbours_gives_up_all_that_they_agree_on(rows):
    assert len(gone([own(), *sent(["node05", "node10"])], rows)) == 4


def test_trees_that_alarm_other_rows_each_are_held_together(rows):
    spread = sent(["node05", "node10", "node15", "node11"], same=False)
    assert not gone([own(), *spread], rows)


def test_two_rows_may_be_alarmed_however_few_there_are(rows):
    assert not gone([own(), *sent(["node05", "node10"], count=SPARE)], rows)
    assert HomeCheck().rows_together(rows) == SPARE
    assert HomeCheck(max_alarms=0.1).rows_together(rows) == pytest.approx(0.05 * 0.1 * NORMAL)


def test_without_together_as_in_older_processes_nothing_is_given_up(rows):
    for check in (None, HomeCheck(together=None)):
        assert not gone([own(), *sent(["node05", "node10"])], rows, replace(PARAMETERS, home_check=check))


def test_with_votes_by_majority_the_decisions_are_counted(rows):
    half = [
        Estimator(
            e.id,
            Tree.from_arrays(
                e.tree.feature, e.tree.threshold, e.tree.left, e.tree.right, np.minimum(e.tree.value, 0.5)
            ),
        )
        for e in sent(["node05", "node10"])
    ]
    assert gone([own(), *half], rows)
    assert not gone([own(), *half], rows, replace(PARAMETERS, vote="majority", threshold=0.5))


def test_where_own_trees_alarm_more_foreign_ones_may_too():
    rng = np.random.default_rng(2)
    hard = Rows.of(rng.normal(size=(600, 3)), rng.random(600) < 0.2)
    fit = OwnFit("node00", 0, FitOptions("balanced"), TreeLimits(3))
    reach = own_reach(hard, fit)
    assert reach is not None
    check = HomeCheck(of_own=0.7, together=0.5)
    assert check.rows_together(hard, fit) == pytest.approx(
        0.5 * reach.normal / 0.7 * int((hard.y == 0).sum())
    )
    assert check.rows_together(hard) < check.rows_together(hard, fit)


def test_h16_what_is_given_up_is_recorded_as_refused_and_makes_room(rows):
    honest = [Estimator(EstimatorId("node11", i), alarming(1, 2500, i)) for i in range(3)]
    state = NodeState("node00", 0, ensemble=Ensemble.of([own()]), created=(own().tree.digest,))
    slots = {"node05": sent(["node05"]), "node10": sent(["node10"]), "node11": honest}
    after = get(state, slots, PARAMETERS, rows)
    refused = [refusal.id for refusal in after.refusals]
    assert refused == sorted(refused)
    assert {refusal.reason for refusal in after.refusals} == {HOME_CHECK}
    assert {id_.creator for id_ in refused} <= {"node05", "node10"}
    assert refused
    assert not set(refused) & set(after.ensemble.ids)
    assert after == get(state, slots, PARAMETERS, rows), "the same each time"


@pytest.mark.parametrize("together", [-0.1, 1.5, float("nan")])
def test_a_share_out_of_range_is_refused(together):
    with pytest.raises(ParameterError, match="together"):
        HomeCheck(together=together)
