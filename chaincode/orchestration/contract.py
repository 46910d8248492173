"""The orchestration chaincode: proposed, accepted by every organisation, running, ended."""

from typing import Any, ClassVar

from chaincode.common import Role, allow, caller_of, provenance, read, write
from chaincode.common.calls import EXECUTION_RECORD
from chaincode.common.records import VERSION
from chaincode.orchestration.changing import Changing
from chaincode.orchestration.checks import STAFF, check_images, check_initial_model, owner_of
from chaincode.orchestration.documentation import EVENTS, VALUES
from chaincode.orchestration.process import Process, Progress, next_iteration
from chaincode.orchestration.queries import Queries
from chaincode.shim import Context, submit
from protocol.agreement.image import check_text
from protocol.agreement.lifecycle import ProcessTransition
from protocol.agreement.process import Specification
from protocol.errors import AccessError, StateError
from protocol.identifiers import check_counter
from protocol.ledger import keys


class Orchestration(Changing, Queries):
    """Processes, from the proposal to the end, and how far each node is."""

    name = "orchestration"
    events: ClassVar[dict[str, str]] = EVENTS
    values: ClassVar[dict[str, dict[str, str]]] = VALUES

    @submit
    @allow(Role.DATA_SCIENTIST)
    def create(self, ctx: Context, specification: dict[str, Any]) -> dict[str, Any]:
        """Propose a process by its specification (docs/formats/process-v1.md); returns the record.

        Every image version must be registered and not retired, an initial model published with the digest
        named and open to the caller's organisation, and that organisation one of the consortium. Proposing
        is not accepting: each organisation accepts by itself, the proposer's too.
        """
        parsed = Specification.from_dict(specification)
        process = Process.proposed(ctx, parsed)
        caller = process.member(ctx)
        check_images(ctx, parsed)
        check_initial_model(ctx, parsed)
        process.save(ctx)
        payload = {"process": process.id, "specification_digest": str(parsed.digest)}
        self.announce(ctx, "ProcessCreated", {**payload, "organisation": caller.organisation})
        return process.record

    @submit
    @allow(*STAFF)
    def accept(self, ctx: Context, process: str, digest: str = "") -> dict[str, Any]:
        """Accept a proposed process for the caller's organisation; returns the record.

        With a digest, only the specification with that digest is accepted: say what you have read.
        """
        found = Process.load(ctx, process)
        caller = found.member(ctx)
        found.move(ProcessTransition.ACCEPT)
        expected = found.record["specification_digest"]
        if digest not in ("", expected):
            raise StateError("PROCESS_DIGEST", f"the specification of {process} has digest {expected}")
        if caller.organisation in found.record["accepted"]:
            raise StateError("PROCESS_ACCEPTED", f"{caller.organisation} has accepted {process}")
        found.record["accepted"][caller.organisation] = provenance(ctx)
        found.save(ctx)
        missing = found.missing_acceptances()
        self.announce(
            ctx,
            "ProcessAccepted",
            {"process": process, "organisation": caller.organisation, "missing": [*missing]},
        )
        return found.record

    @submit
    @allow(*STAFF)
    def start(self, ctx: Context, process: str) -> dict[str, Any]:
        """Start a process that every organisation has accepted; returns the record."""
        found = Process.load(ctx, process)
        found.member(ctx)
        found.move(ProcessTransition.START)
        missing = found.missing_acceptances()
        if missing:
            raise StateError("PROCESS_UNACCEPTED", f"not accepted by {', '.join(missing)}")
        check_images(ctx, found.specification)
        found.record["started"] = provenance(ctx)
        found.save(ctx)
        self.announce(ctx, "ProcessStarted", {"process": process})
        return found.record

    @submit
    @allow(Role.NODE, *STAFF)
    def complete(self, ctx: Context, process: str) -> dict[str, Any]:
        """End a process in which every active node has done its last iteration; returns the record."""
        found = Process.load(ctx, process)
        found.member(ctx)
        found.move(ProcessTransition.COMPLETE)
        unfinished = Progress(ctx, process, found.plan).unfinished()
        if unfinished:
            waiting = ", ".join(f"{node} (iteration {at})" for node, at in list(unfinished.items())[:10])
            raise StateError("PROCESS_UNFINISHED", f"{len(unfinished)} nodes have work left: {waiting}")
        found.record["ended"] = {**provenance(ctx), "reason": ""}
        found.save(ctx)
        self.announce(ctx, "ProcessCompleted", {"process": process})
        return found.record

    @submit
    @allow(*STAFF)
    def abort(self, ctx: Context, process: str, reason: str) -> dict[str, Any]:
        """Give a proposed or running process up, for a reason that is kept; returns the record.

        Any organisation of the consortium may, not the proposer's alone: each can stop what runs on its data.
        """
        check_text(reason, "the reason")
        found = Process.load(ctx, process)
        caller = found.member(ctx)
        found.move(ProcessTransition.ABORT)
        found.record["ended"] = {**provenance(ctx), "reason": reason}
        found.save(ctx)
        self.announce(ctx, "ProcessAborted", {"process": process, "organisation": caller.organisation})
        return found.record

    @submit
    @allow(Role.NODE)
    def advance(self, ctx: Context, process: str, node: str, iteration: int) -> None:
        """Write that a node has completed an iteration; for execution-record's Complete, not for clients."""
        if ctx.addressed != EXECUTION_RECORD:
            raise AccessError("ACCESS_CHAINCODE", f"Advance is for {EXECUTION_RECORD} alone")
        found = Process.load(ctx, process)
        found.need_running()
        plan = found.plan
        caller_of(ctx).need_node(node, owner_of(plan.nodes, node, process))
        if not plan.is_active(node, check_counter(iteration, "iteration")):
            raise StateError("NODE_INACTIVE", f"{node} takes no part in iteration {iteration}")
        key = keys.progress(process, node)
        upcoming = next_iteration(plan, node, read(ctx, key))
        if iteration != upcoming:
            raise StateError("ITERATION_ORDER", f"{node} has to complete {upcoming} next, not {iteration}")
        record = {"version": VERSION, "process": process, "node": node, "iteration": iteration}
        write(ctx, key, {**record, "updated": provenance(ctx)})
