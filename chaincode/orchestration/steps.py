"""Central orchestration: the coordinator that a process names opens each step, one after the other.

A process without one is self-orchestrating: its nodes go from step to step by themselves. Who opens steps is
replaced like any other agreement of a running process (`changes.py`).
"""

from chaincode.common import STAFF, LedgerContract, allow, caller_of, provenance
from chaincode.common.own import vouch
from chaincode.orchestration.process import Process, ProcessProgress
from chaincode.shim import Context, submit
from protocol.agreement.course import ChangeKind
from protocol.agreement.lifecycle import ProcessTransition
from protocol.agreement.plan import Plan
from protocol.errors import AccessError, StateError
from protocol.ledger import keys
from protocol.ledger.changes import ChangeRecord, change_digest


class Steps(LedgerContract):
    """OpenStep."""

    @submit
    @allow(*STAFF)
    def open_step(self, ctx: Context, process: str, step: str) -> ChangeRecord:
        """Open the next step of a process, for its coordinator; returns the change that it is.

        Until then no task of the step can be opened. Nodes may still be at work in the step before.
        """
        found = Process.load(ctx, process)
        found.move(ProcessTransition.OPEN_STEP)
        progress, caller = ProcessProgress(ctx, process, found.plan), caller_of(ctx)
        progress.need_say(caller)
        plan = progress.plan
        if plan.coordinator is None:
            raise StateError("STEP_COORDINATOR", "the nodes go from step to step by themselves")
        if caller.organisation != plan.coordinator:
            raise AccessError("ACCESS_COORDINATOR", f"{plan.coordinator} opens the steps of {process}")
        by = provenance(ctx)
        change = ChangeRecord(
            process=process,
            number=found.record.course.count,
            kind=ChangeKind.OPEN_STEP,
            iteration=_first_iteration(plan, step),
            subject={"step": step},
            asked=caller.organisation,
            ask=None,
            agreed={caller.organisation: by},
            members=(caller.organisation,),
        )
        found.apply(ctx, change)
        # The others are a majority too, and shall not open a step in the coordinator's name.
        mark = str(change_digest(change.change))
        vouch(ctx, caller.organisation, keys.change(process, change.number), mark)
        self.announce(
            ctx,
            "ProcessChanged",
            {
                "process": process,
                "asked": change.asked,
                "number": change.number,
                "kind": change.kind.value,
                "iteration": change.iteration,
                "organisation": change.asked,
                "holds": True,
            },
        )
        return change


def _first_iteration(plan: Plan, step: str) -> int:
    """Return where a step begins, which must be the one that is to be opened next."""
    if step not in [known.name for known in plan.specification.steps]:
        raise StateError("STEP_UNKNOWN", f"the process has no step {step[:64]}")
    upcoming = plan.next_step()
    if upcoming is None or upcoming[0].name != step:
        following = "none" if upcoming is None else upcoming[0].name
        raise StateError("STEP_ORDER", f"of the steps, {following} is opened next, not {step}")
    return upcoming[1]
