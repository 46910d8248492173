"""Quota and vote cap by organisation, recomputed from ids and members alone."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol.defence import NOBODY, Membership, Quota, greatest_share, vote_weights
from protocol.errors import ProcessError, RecordError
from protocol.identifiers import EstimatorId

FOUR = Membership.of({f"node{i:02d}": f"Org{i // 5 + 1}MSP" for i in range(20)})
TWO = Membership.of({"node00": "Org1MSP", "node01": "Org1MSP", "node02": "Org2MSP", "node03": "Org2MSP"})
HOSTILE = [f"node{i:02d}" for i in range(5, 10)]


def ids(**counts: int) -> list[EstimatorId]:
    return [EstimatorId(creator, i) for creator, count in sorted(counts.items()) for i in range(count)]


def kept(members: Membership, offered: list[EstimatorId], k: int, c: float = 2.0) -> Counter[str]:
    places = Quota("node00", members, c).places(offered, k)
    return Counter(offered[i].creator for i in places.within(range(len(offered)), k))


def test_h16_an_organisation_takes_no_more_than_its_places_however_few_others_are_present() -> None:
    offered = ids(**dict.fromkeys(HOSTILE, 30)) + ids(node00=50)
    found = kept(FOUR, offered, 50)
    assert sum(found[node] for node in HOSTILE) == 25
    assert found == {**dict.fromkeys(HOSTILE[:2], 10), HOSTILE[2]: 5, "node00": 25}
    assert kept(FOUR, ids(**dict.fromkeys(HOSTILE, 30)), 50).total() == 25, "nothing else is offered"


def test_h16_of_two_organisations_the_other_takes_half() -> None:
    assert kept(TWO, ids(node02=50, node03=50), 50) == {"node02": 25}
    assert kept(TWO, ids(node02=50), 50, c=100.0).total() == 25


def test_a_single_node_of_an_organisation_takes_its_part_of_the_places() -> None:
    assert kept(FOUR, ids(node05=50), 50) == {"node05": 10}
    assert kept(FOUR, ids(node01=50), 50) == {"node01": 10}, "one of the own organisation too"
    assert kept(FOUR, ids(node05=50), 10) == {"node05": 2}


def test_h16_all_others_together_leave_a_place_to_the_node_itself() -> None:
    members = Membership.of({f"node{i:02d}": f"Org{i}MSP" for i in range(8)})
    offered = ids(**{f"node{i:02d}": 20 for i in range(1, 8)})
    assert kept(members, offered, 10).total() == 9


def test_strangers_are_organisations_of_their_own() -> None:
    assert kept(FOUR, ids(stranger=50), 50) == {"stranger": 25}
    assert kept(NOBODY, ids(stranger=50), 50) == {"stranger": 25}


def test_an_auditor_finds_an_ensemble_beyond_the_quota() -> None:
    quota = Quota("node00", FOUR, 2.0)
    quota.check(ids(node00=25, node05=10, node06=10, node07=5), 50)
    with pytest.raises(RecordError) as caught:
        quota.check(ids(node00=24, node05=11), 50)
    assert caught.value.code == "QUOTA_EXCEEDED"
    assert "node05/0010" in caught.value.cause


@pytest.mark.parametrize("c", [0.5, float("nan"), float("inf")])
def test_a_quota_that_cannot_fill_the_ensemble_is_refused(c: float) -> None:
    with pytest.raises(ProcessError):
        Quota("node00", FOUR, c)


@pytest.mark.parametrize("cap", [0.0, 1.5, -1.0, float("nan")])
def test_a_cap_out_of_range_is_refused(cap: float) -> None:
    with pytest.raises(ProcessError):
        vote_weights("node00", FOUR, ids(node00=1), cap)


def test_below_the_cap_or_without_one_every_tree_weighs_one() -> None:
    offered = ids(**{f"node{i:02d}": 2 for i in range(20)})
    assert vote_weights("node00", FOUR, offered, None) == [1.0] * 40
    assert vote_weights("node00", FOUR, offered, 0.25) == [1.0] * 40
    assert vote_weights("node00", FOUR, [], 0.25) == []


@pytest.mark.parametrize(
    ("members", "others"), [(FOUR, HOSTILE), (TWO, ["node02", "node03"])], ids=["4", "2"]
)
def test_h16_an_organisation_with_most_trees_has_the_vote_of_its_cap(
    members: Membership, others: list[str]
) -> None:
    offered = ids(node00=2, **dict.fromkeys(others, 20))
    name, share = greatest_share("node00", members, offered, 0.25)
    assert (name, share) == ("Org2MSP", pytest.approx(0.25))


def test_a_node_that_holds_nothing_of_its_own_lets_the_others_weigh_alike() -> None:
    offered = ids(node05=30, node10=10)
    assert greatest_share("node00", FOUR, offered, 0.25) == ("Org3MSP", pytest.approx(0.5))
    assert greatest_share("node00", FOUR, ids(node05=30), 0.25) == ("Org2MSP", pytest.approx(1.0))


def test_h16_strangers_of_one_organisation_elsewhere_have_the_cap_each() -> None:
    """What an initial model brings from nodes of another process: federation.md says what that gives away."""
    offered = ids(node00=1, elsewhere1=20, elsewhere2=20, elsewhere3=20)
    weights = vote_weights("node00", FOUR, offered, 0.25)
    own = sum(weight for id_, weight in zip(offered, weights, strict=True) if id_.creator == "node00")
    assert own / sum(weights) == pytest.approx(0.25)


counts = st.dictionaries(st.sampled_from([node for node, _ in FOUR.nodes]), st.integers(1, 12), max_size=12)


@given(counts, st.integers(1, 12), st.sampled_from([0.1, 0.25, 0.4, 1.0]), st.sampled_from([1.0, 2.0]))
def test_no_ensemble_gives_another_organisation_more_than_quota_and_cap(
    others: dict[str, int], own: int, cap: float, c: float
) -> None:
    offered = ids(**others | {"node00": own})
    assert greatest_share("node00", FOUR, offered, cap)[1] <= cap * (1 + 1e-9)
    quota = Quota("node00", FOUR, c)
    chosen = [offered[i] for i in quota.places(offered, 20).within(range(len(offered)), 20)]
    quota.check(chosen, 20)
    places = Counter(FOUR.organisation(id_.creator) for id_ in chosen)
    assert all(count <= quota.organisation_places(20) for name, count in places.items() if name != "Org1MSP")
    assert any(id_.creator == "node00" for id_ in chosen)
