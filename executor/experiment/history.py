"""What happened in a process, as the chain has it, and the same run again in memory."""

from collections.abc import Mapping
from dataclasses import replace

from executor.ledger.chaincodes.proxies import Ledger
from learning.actions import EMPTY
from learning.ensemble import Ensemble
from learning.members import Member, Simulation
from learning.options import from_step
from learning.rows import Rows
from learning.turns import Turn, replay
from protocol.agreement.process import Specification
from protocol.digest import Digest
from protocol.ledger.tasks import ResultRecord
from protocol.task.result import ensemble_digest
from protocol.values import dataclass

Place = tuple[str, int]
"""A node and an iteration."""


@dataclass(frozen=True)
class ChainRun:
    """The results of a process, and when its nodes took part."""

    specification: Specification
    owners: dict[str, str]
    joins: dict[str, int]
    results: dict[Place, ResultRecord]

    @classmethod
    def read(cls, ledger: Ledger, process: str) -> "ChainRun":
        """Read it on the word of enough organisations."""
        record = ledger.orchestration.get(process)
        plan = record.plan
        results = {(found.node, found.iteration): found for found in ledger.execution.artifacts(process)}
        joins = {node: plan.spans(node)[0][0] for node in plan.nodes}
        return cls(plan.specification, dict(plan.nodes), joins, results)

    def turns(self) -> list[Turn]:
        """List what happened: every result with the shares it was made from, and shares without a result."""
        reads = {
            place: {slot.sender: slot.iteration for slot in result.slots}
            for place, result in self.results.items()
        }
        given_up = {place for read in reads.values() for place in read.items()} - reads.keys()
        turns = [Turn(node, iteration, read) for (node, iteration), read in reads.items()]
        return turns + [Turn(node, iteration, None) for node, iteration in sorted(given_up)]

    def replayed(self, rows: Mapping[str, Rows], model: Ensemble = EMPTY) -> Simulation:
        """Run the same in memory."""
        members = {node: self._member(node, rows[node]) for node in self.owners}
        seed = self.specification.parameters(next(iter(self.owners)), 0, self.owners).agreed.seed
        return replay(members, self.turns(), seed=seed, organisations=self.owners, model=model)

    def differences(self, simulation: Simulation) -> list[Place]:
        """List where chain and simulator have not the same ensemble, or only one of them has any."""
        here = {(record.node, record.iteration): digest_of(record.ensemble) for record in simulation.records}
        there = {place: result.ensemble_digest for place, result in self.results.items()}
        return sorted(place for place in here.keys() | there.keys() if here.get(place) != there.get(place))

    def _member(self, node: str, rows: Rows) -> Member:
        parameters = from_step(self.specification.parameters(node, 0, self.owners).agreed)
        return replace(Member(rows, parameters), joins=self.joins[node])


def digest_of(ensemble: Ensemble) -> Digest:
    """Return the digest under which results name an ensemble."""
    return ensemble_digest([(estimator.id, estimator.tree.digest) for estimator in ensemble])
