"""The record of a process and its progress keys: read, checked against the life cycle, written."""

from typing import Any

from chaincode.common import Caller, caller_of, provenance, read, write
from chaincode.common.records import VERSION, parse
from chaincode.shim import Context
from protocol.agreement.lifecycle import PROCESS, ProcessState, ProcessTransition
from protocol.agreement.plan import Change, Plan
from protocol.agreement.process import Specification
from protocol.errors import StateError
from protocol.ledger import keys


class Process:
    """A process as the ledger has it."""

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record
        self.specification = Specification.from_dict(record["specification"])

    @classmethod
    def proposed(cls, ctx: Context, specification: Specification) -> "Process":
        """Make the record of a new process, or refuse an id that is taken."""
        if ctx.get(keys.process(specification.process)) is not None:
            raise StateError("PROCESS_EXISTS", f"{specification.process} is on the ledger")
        return cls(
            {
                "version": VERSION,
                "process": specification.process,
                "status": PROCESS.after(ProcessTransition.PROPOSE, ProcessState.ABSENT).value,
                "specification": specification.to_dict(),
                "specification_digest": str(specification.digest),
                "created": provenance(ctx),
                "accepted": {},
                "started": None,
                "ended": None,
                "change_count": 0,
                "changes": [],
            }
        )

    @classmethod
    def load(cls, ctx: Context, process: str) -> "Process":
        """Read a process, or refuse an id that is not on the ledger."""
        record = read(ctx, keys.process(process))
        if record is None:
            raise StateError("PROCESS_UNKNOWN", f"{process} is not on the ledger")
        return cls(record)

    def save(self, ctx: Context) -> None:
        """Write the record."""
        write(ctx, keys.process(self.id), self.record)

    @property
    def id(self) -> str:
        """The process id."""
        return self.specification.process

    @property
    def status(self) -> ProcessState:
        """Where the process stands."""
        return PROCESS.state(self.record["status"])

    @property
    def plan(self) -> Plan:
        """What holds in each iteration."""
        return Plan(
            self.specification, [Change.from_dict(item) for item in self.record["changes"] if item["holds"]]
        )

    def move(self, transition: ProcessTransition) -> None:
        """Take a transition of the life cycle, or refuse one it does not have."""
        self.record["status"] = PROCESS.after(transition, self.status).value

    def need_running(self) -> None:
        """Refuse what only a running process can take."""
        if self.status is not ProcessState.RUNNING:
            raise StateError("PROCESS_NOT_RUNNING", f"{self.id} is {self.status.value}")

    def member(self, ctx: Context) -> Caller:
        """Return the caller, who must be of the consortium."""
        caller = caller_of(ctx)
        caller.need_member(self.plan.consortium)
        return caller

    def missing_acceptances(self) -> list[str]:
        """Return the organisations that have not accepted, ascending."""
        return [name for name in self.specification.organisations if name not in self.record["accepted"]]


class Progress:
    """How far each node is: the number of the iteration it looks for work from, by node."""

    def __init__(self, ctx: Context, process: str, plan: Plan) -> None:
        self.plan = plan
        self.records: dict[str, dict[str, Any]] = {}
        names = sorted(plan.nodes)
        for node, raw in zip(
            names, ctx.get_many([keys.progress(process, node) for node in names]), strict=True
        ):
            if raw is not None:
                self.records[node] = parse(raw)

    def next_of(self, node: str) -> int | None:
        """Return the iteration a node has to do next, None when it has done all of its own."""
        return next_iteration(self.plan, node, self.records.get(node))

    def unfinished(self) -> dict[str, int]:
        """Return the nodes that have work left, with their next iteration."""
        found = {node: self.next_of(node) for node in sorted(self.plan.nodes)}
        return {node: iteration for node, iteration in found.items() if iteration is not None}

    def frontier(self) -> int:
        """Return the latest iteration that may have begun on some node; the past is up to there."""
        finished = [record["iteration"] for record in self.records.values()]
        return max([*self.unfinished().values(), *finished], default=0)

    def current(self) -> int | None:
        """Return the earliest iteration that some node still has to do, None when all are done."""
        return min(self.unfinished().values(), default=None)


def next_iteration(plan: Plan, node: str, record: dict[str, Any] | None) -> int | None:
    """Return a node's next iteration by its progress record."""
    return plan.next_iteration(node, 0 if record is None else record["iteration"] + 1)
