"""A federation in memory: reproducible to the byte, with nodes coming, going and attacking."""

from dataclasses import replace
from itertools import pairwise

import pytest

from learning.actions import NodeState, fit, get, share
from learning.errors import ParameterError
from learning.fit_cache import FitCache
from learning.parameters import Parameters
from learning.robust import HomeCheck
from learning.simulator import SCHEDULES, Member, simulate
from protocol.agreement.topology import Kind, Schedule, Topology
from protocol.errors import ProcessError

PARAMETERS = Parameters.paper(n_new=3, n_max=8, n_share=3)
NODES = [f"node{i:02d}" for i in range(5)]
ALONE, RING, FULL = (Schedule(Topology(kind)) for kind in (Kind.DISCONNECTED, Kind.RING, Kind.FULL))


@pytest.fixture
def members(make_rows):
    return {
        node: Member(make_rows(i, n=150, anomalies=node != "node02"), PARAMETERS)
        for i, node in enumerate(NODES)
    }


def contents(simulation):
    return {n: [(str(e.id), e.tree.to_bytes()) for e in s.ensemble] for n, s in simulation.states.items()}


def test_an_iteration_is_all_fit_then_all_share_then_all_get(members):
    states = {node: NodeState(node, 7) for node in NODES}
    for iteration in range(2):
        states = {node: fit(states[node], members[node].rows, PARAMETERS) for node in NODES}
        offers = {node: share(states[node], PARAMETERS, members[node].rows) for node in NODES}
        slots = {
            node: {other: offers[other] for other in RING.neighbours(node, iteration, NODES)}
            for node in NODES
        }
        states = {node: get(states[node], slots[node], PARAMETERS, members[node].rows) for node in NODES}
    simulation = simulate(members, RING, iterations=2, seed=7)
    assert simulation.states == states


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_the_same_seed_gives_the_same_bytes_and_another_does_not(members, schedule):
    runs = [
        contents(simulate(members, RING, iterations=2, seed=seed, schedule=schedule)) for seed in (1, 1, 2)
    ]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_members_given_in_another_order_change_nothing(members):
    backwards = dict(reversed(members.items()))
    assert contents(simulate(members, FULL, iterations=2)) == contents(
        simulate(backwards, FULL, iterations=2)
    )


def test_several_processes_give_the_same_bytes(members):
    seen = []
    spread = simulate(members, RING, iterations=2, n_jobs=2, progress=lambda *step: seen.append(step))
    assert contents(spread) == contents(simulate(members, RING, iterations=2))
    assert seen == [(done, 10) for done in range(1, 11)]


def test_a_shared_cache_makes_a_second_topology_cost_no_fit(members, monkeypatch):
    cache = FitCache()
    simulate(members, RING, iterations=2, cache=cache)
    assert len(cache) == 10
    monkeypatch.setattr("learning.fit_cache.fit", lambda *_: pytest.fail("fitted again"))
    cached = simulate(members, FULL, iterations=2, cache=cache)
    monkeypatch.undo()
    assert contents(cached) == contents(simulate(members, FULL, iterations=2))


def test_disconnected_nodes_keep_to_their_own_trees(members):
    simulation = simulate(members, ALONE, iterations=2)
    assert all(set(state.ensemble.origins()) == {node} for node, state in simulation.states.items())


def test_trees_travel_one_hop_per_iteration(members):
    far = {
        node: replace(member, parameters=replace(PARAMETERS, ranking="random"))
        for node, member in members.items()
    }
    line = Schedule(Topology.explicit(pairwise(NODES)))
    for iterations in (1, 2, 3):
        reached = simulate(far, line, iterations=iterations).states["node00"].ensemble.origins()
        assert set(reached) <= set(NODES[: iterations + 1])


def test_a_node_without_anomalies_gets_trees_that_find_some(members):
    simulation = simulate(members, RING, iterations=2)
    alone = simulate(members, ALONE, iterations=2)
    assert all(e.tree.n_internal == 0 for e in alone.states["node02"].ensemble)
    assert any(e.tree.n_internal > 0 for e in simulation.states["node02"].ensemble)


def test_records_tell_every_share_and_ensemble(members):
    simulation = simulate(members, RING, iterations=3)
    told = simulation.records
    assert [(r.iteration, r.node) for r in told] == [(i, node) for i in range(3) for node in NODES]
    assert simulation.ensembles(2) == simulation.ensembles()
    last = told[-1]
    assert len(last.share.ids) == 3
    assert last.share.recipients == ("node00", "node03")
    assert last.share.n_bytes > 0


def test_asynchronous_nodes_each_finish_their_own_iterations(members):
    simulation = simulate(members, RING, iterations=3, schedule="asynchronous")
    assert {state.iteration for state in simulation.states.values()} == {3}
    order = [record.node for record in simulation.records]
    assert sorted(order) == sorted(NODES * 3)
    assert order != NODES * 3


def test_c12_a_node_that_joins_late_starts_with_its_own_fit(members):
    members["node01"] = replace(members["node01"], joins=1)
    simulation = simulate(members, FULL, iterations=3)
    assert simulation.states["node01"].counter == 6
    # As on the ledger, whose iterations everybody counts alike: seeds depend on them.
    assert simulation.states["node01"].iteration == 3
    assert "node01" not in simulation.ensembles(0)
    first = next(r for r in simulation.records if r.iteration == 0)
    assert "node01" not in first.share.recipients


def test_c11_a_node_that_leaves_keeps_its_ensemble_and_gets_nothing_more(members):
    members["node03"] = replace(members["node03"], leaves=1)
    simulation = simulate(members, FULL, iterations=3)
    assert simulation.states["node03"].counter == 3
    assert "node03" not in simulation.ensembles(1)
    later = [r for r in simulation.records if r.iteration > 0]
    assert all("node03" not in r.share.recipients for r in later)


def test_c11_the_ring_closes_around_a_node_that_leaves_as_it_does_on_the_ledger(members):
    members["node03"] = replace(members["node03"], leaves=1)
    simulation = simulate(members, RING, iterations=2)
    for record in simulation.records:
        active = NODES if record.iteration == 0 else [node for node in NODES if node != "node03"]
        assert record.share.recipients == RING.neighbours(record.node, record.iteration, active)
    last = {record.node: record.share.recipients for record in simulation.records if record.iteration == 1}
    assert last["node02"] == ("node01", "node04")
    assert last["node04"] == ("node00", "node02")


def test_the_topology_changes_when_the_schedule_says_so(members):
    simulation = simulate(members, Schedule(ALONE.first, ((1, RING.first), (2, FULL.first))), iterations=3)
    counts = [(r.iteration, len(r.share.recipients)) for r in simulation.records if r.node == "node00"]
    assert counts == [(0, 0), (1, 2), (2, 4)]


def test_c13_all_but_one_leave(members):
    members = {n: m if n == "node00" else replace(m, leaves=1) for n, m in members.items()}
    simulation = simulate(members, FULL, iterations=3)
    assert simulation.states["node00"].iteration == 3


def test_parameters_may_differ_by_node(members):
    members["node04"] = replace(
        members["node04"], parameters=replace(PARAMETERS, n_new=1, n_max=4, n_share=1)
    )
    simulation = simulate(members, FULL, iterations=2)
    assert len(simulation.states["node04"].ensemble) == 4
    assert simulation.states["node04"].counter == 2
    assert len(simulation.states["node00"].ensemble) == 8


def hostile(members, kind, **changes):
    changed = {n: replace(m, parameters=replace(m.parameters, **changes)) for n, m in members.items()}
    changed["node03"] = replace(changed["node03"], attack=kind)
    return simulate(changed, FULL, iterations=2)


@pytest.mark.parametrize("kind", ["zero", "one", "mimic"])
def test_d23_the_papers_ranking_lets_one_node_take_over_and_the_quota_does_not(members, kind):
    undefended = hostile(members, kind).states["node00"].ensemble.origins()
    assert undefended["node03"] >= 6
    defended = hostile(members, kind, quota=1.0).states["node00"].ensemble.origins()
    assert defended["node03"] <= 2


def test_d23_home_check_refusals_are_recorded(members):
    simulation = hostile(members, "zero", home_check=HomeCheck())
    refused = {
        r.id.creator for record in simulation.records if record.node == "node00" for r in record.refusals
    }
    assert "node03" in refused
    assert simulation.states["node00"].ensemble.origins().get("node03", 0) == 0


def test_unknown_attacks_schedules_and_negative_iterations_are_refused(members):
    with pytest.raises(ParameterError):
        hostile(members, "flood")
    with pytest.raises(ParameterError):
        simulate(members, RING, schedule="sometimes")
    with pytest.raises(ParameterError):
        simulate(members, RING, iterations=-1)


def test_an_edge_to_a_node_that_takes_no_part_is_refused(members):
    stranger = Topology.explicit([("node00", "node09")])
    for schedule in (Schedule(stranger), Schedule(RING.first, ((1, stranger),))):
        with pytest.raises(ProcessError, match="node09"):
            simulate(members, schedule)
