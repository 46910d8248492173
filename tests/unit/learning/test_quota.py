"""The quota inside the greedy loop: what finds no room is passed over as if it had not been offered."""

import numpy as np
import pytest

from learning.compiled import implementation
from learning.ensemble import Ensemble
from learning.kernel import gram, p_greedy
from learning.ranking import KernelRanking, NewestRanking, SizeRanking
from protocol.defence import Membership, Places, Quota
from protocol.trees.tree import Tree

FORMS = ["numpy"] + (["compiled"] if implementation() == "compiled" else [])
MEMBERS = Membership.of({"me": "Org1MSP", "hostile": "Org2MSP", "honest": "Org3MSP", "other": "Org4MSP"})


@pytest.fixture
def shadowed(random_trees, estimators):
    """Ten trees under ten copies of them that are a little larger and say normal."""
    honest = random_trees(10, seed=3, largest=12)
    copies = [
        Tree.from_arrays(
            tree.feature, tree.threshold * 1.0000001, tree.left, tree.right, np.zeros(tree.n_nodes)
        )
        for tree in honest
    ]
    return [*estimators(copies, "hostile"), *estimators(honest, "honest")]


@pytest.mark.parametrize("form", FORMS)
def test_h16_refused_trees_explain_no_honest_one_away(shadowed, form):
    ranking, ids = KernelRanking(form=form), [estimator.id for estimator in shadowed]
    assert {shadowed[i].id.creator for i in ranking.top(shadowed, 10)} == {"hostile"}
    order = ranking.top(shadowed, 10, Quota("me", MEMBERS, 2.0).places(ids, 10))
    kept = [shadowed[i].id for i in order]
    hostile = {known.counter for known in kept if known.creator == "hostile"}
    honest = {known.counter for known in kept if known.creator == "honest"}
    assert (len(hostile), len(honest)) == (5, 4), "and a place is left to the node itself"
    assert hostile.isdisjoint(honest), "those that no kept copy explains"


def test_h16_both_forms_pass_over_the_same_trees(random_trees, estimators):
    members = Membership.of({f"n{i}": f"Org{i // 2}MSP" for i in range(6)})
    for seed in range(3):
        offered = [e for i in range(6) for e in estimators(random_trees(12, seed=10 * seed + i), f"n{i}")]
        for k in (5, 20, 60):
            places = Quota("n0", members, 1.5).places([e.id for e in offered], k)
            orders = {tuple(KernelRanking(form=form).top(offered, k, places)) for form in FORMS}
            (order,) = orders
            assert list(order) == places.within(order, k)


def test_a_group_that_does_not_exist_is_refused_by_the_compiled_form(random_trees):
    if implementation() == "numpy":
        pytest.skip("not built here")
    with pytest.raises(ValueError, match="group"):
        p_greedy(gram(random_trees(2)), 2, places=Places(((0, 5, -1), (0, -1, -1)), (1,)), form="compiled")


@pytest.mark.parametrize("ranking", [SizeRanking(), NewestRanking()], ids=repr)
def test_other_rankings_walk_down_their_order_within_the_places(shadowed, ranking):
    places = Quota("me", MEMBERS, 2.0).places([estimator.id for estimator in shadowed], 10)
    assert ranking.top(shadowed, 10, places) == places.within(ranking.top(shadowed, 20), 10)


def test_the_quota_holds_where_all_would_fit(estimators, random_trees):
    ensemble = Ensemble.of([*estimators(random_trees(9), "hostile"), *estimators(random_trees(2), "me")])
    assert len(ensemble.crop(20, SizeRanking())) == 11
    cropped = ensemble.crop(16, SizeRanking(), Quota("me", MEMBERS, 2.0))
    assert cropped.origins() == {"hostile": 8, "me": 2}


def test_trees_without_a_split_take_no_place_and_one_stays_for_a_node_without_others(
    estimators, random_trees, leaf
):
    foreign = estimators(random_trees(2), "other")
    mute = estimators([leaf(0.0)] * 3, "me")
    assert Ensemble.of([*foreign, *mute]).informed("me").ids == (mute[-1].id, *(e.id for e in foreign))
    own = estimators(random_trees(1), "me", first=3)
    assert Ensemble.of([*own, *mute, *estimators([leaf(1.0)], "other")]).informed("me").ids == (own[0].id,)
