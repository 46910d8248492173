"""Federations whose nodes get new rows in each iteration: alone, on ring and full, under attack, and pooled.

FIT depends on a node's own rows alone, so all topologies and attacks of one seed share it.
"""

from dataclasses import replace

import numpy as np

from experiments.alerts import ALERT_METRICS, as_alert_row, measure_alerts
from experiments.data import Floats
from experiments.engine import ORGANISATIONS, dealt, make_topology
from experiments.tree_scores import TreeScores
from experiments.variants import Checked, RememberedCheck
from experiments.windows import WindowedSplit
from learning.fit_cache import FitCache
from learning.parameters import Parameters
from learning.robust import HOME_CHECK
from learning.simulator import Member, Simulation, simulate
from protocol.defence import Membership
from protocol.values import dataclass

POOLED = "pooled"
REFUSED, REFUSED_HOSTILE = "refused", "refused_hostile"
COLUMNS = (*ALERT_METRICS, REFUSED, REFUSED_HOSTILE)
"""What is measured of a node: its alerts, and how many estimators of honest and hostile nodes it refused."""


@dataclass(frozen=True)
class DriftCase:
    """One federation: a topology, and what hostile nodes do, if there are any."""

    topology: str
    attack: str | None = None
    hostile: tuple[int, ...] = ()


class DriftEngine:
    """One split, one seed and one way to learn."""

    def __init__(
        self,
        split: WindowedSplit,
        seed: int,
        parameters: Parameters,
        jobs: int = 1,
        cache: FitCache | None = None,
    ) -> None:
        self.split = split
        self.seed = seed
        self.jobs = jobs
        self.cache = FitCache() if cache is None else cache
        self.tests = TreeScores(split.test.X)
        self.organisations = dealt(tuple(split.nodes), ORGANISATIONS)
        checked = Checked()
        if parameters.home_check is not None:
            check = RememberedCheck.of(parameters.home_check, checked)
            parameters = replace(parameters, home_check=check)
        self.parameters = parameters

    def run(self, case: DriftCase) -> Floats:
        """Run one federation and measure every node on the joint test rows, as (nodes, COLUMNS)."""
        found = self.simulate(case)
        parameters = replace(self.parameters, members=Membership.of(self.organisations))
        refused = self._refused(case, found)
        return np.array(
            [
                self._row(self.tests.mean(name, ensemble, parameters), *refused[name])
                for name, ensemble in found.ensembles().items()
            ]
        )

    def _row(self, scores: Floats, honest: int, hostile: int) -> Floats:
        return np.append(as_alert_row(measure_alerts(self.split.test, scores)), (honest, hostile))

    def _refused(self, case: DriftCase, found: Simulation) -> dict[str, tuple[int, int]]:
        """How many estimators of honest and of hostile nodes each node's home check refused, GET by GET."""
        hostile = {list(self.split.nodes)[place] for place in case.hostile}
        counts = {name: [0, 0] for name in self.split.nodes}
        for record in found.records:
            for refusal in record.refusals:
                if refusal.reason == HOME_CHECK:
                    counts[record.node][refusal.id.creator in hostile] += 1
        return {name: (honest, bad) for name, (honest, bad) in counts.items()}

    def simulate(self, case: DriftCase) -> Simulation:
        """Run one federation."""
        members = {
            name: Member(windows[0], self.parameters, later=windows[1:])
            for name, windows in self.split.nodes.items()
        }
        for place in case.hostile:
            name = list(members)[place]
            members[name] = replace(members[name], attack=case.attack)
        return simulate(
            members,
            make_topology(case.topology, tuple(members), self.seed),
            iterations=self.split.iterations,
            seed=self.seed,
            cache=self.cache,
            n_jobs=self.jobs,
            organisations=self.organisations,
        )

    def pooled(self) -> Floats:
        """Measure what one node would learn that had everybody's rows: a bound, as (1, COLUMNS)."""
        windows = self.split.pooled()
        member = Member(windows[0], self.parameters, later=windows[1:])
        found = simulate(
            {POOLED: member},
            make_topology("disconnected", (POOLED,), self.seed),
            iterations=self.split.iterations,
            seed=self.seed,
            cache=self.cache,
            n_jobs=self.jobs,
        )
        scores = self.tests.mean(POOLED, found.ensembles()[POOLED], self.parameters)
        return np.array([self._row(scores, 0, 0)])
