"""Functions that change a running process, each from an iteration on."""

from typing import Any

from chaincode.common import STAFF, LedgerContract, Role, allow, caller_of
from chaincode.orchestration.consent import agree, need_future
from chaincode.orchestration.process import (
    Process,
    ProcessProgress,
    find_progress,
    next_iteration,
    owner_of,
    usable_image,
)
from chaincode.shim import Context, submit
from protocol.agreement.image import check_text
from protocol.agreement.lifecycle import ProcessTransition
from protocol.agreement.parameters import MAX_NODES
from protocol.agreement.plan import Change, ChangeKind
from protocol.agreement.topology import Topology
from protocol.errors import AccessError, StateError
from protocol.identifiers import check_counter, parse_image_version, parse_node, parse_organisation
from protocol.ledger.processes import ChangeRecord


class Changes(LedgerContract):
    """Join, leave, another topology, another image version."""

    @submit
    @allow(*STAFF)
    def join(self, ctx: Context, process: str, node: str, organisation: str, iteration: int) -> ChangeRecord:
        """Let a node take part from a coming iteration on; returns the change.

        A node that took part before is let in again by its own organisation. A new one is asked for by a
        member of the consortium and needs every member's agreement, and that of its organisation if new.
        """
        found = Process.load(ctx, process)
        found.move(ProcessTransition.JOIN)
        plan, caller = found.plan, caller_of(ctx)
        subject = {"node": parse_node(node), "organisation": parse_organisation(organisation)}
        owner = plan.nodes.get(node, organisation)
        if owner != organisation:
            raise AccessError("ACCESS_ORGANISATION", f"{node} belongs to {owner}")
        if node in plan.nodes and plan.has_left(node) is None:
            raise StateError("NODE_ACTIVE", f"{node} takes part in {process}")
        if len(plan.nodes) >= MAX_NODES and node not in plan.nodes:
            raise StateError("CHANGE_LIMIT", f"{process} has {len(plan.nodes)} nodes")
        if found.specification.confidential and organisation not in found.specification.organisations:
            raise StateError("PROCESS_COLLECTION", f"{organisation} cannot hold the trees of {process}")
        needed = {organisation} if node in plan.nodes else {*plan.consortium, organisation}
        change = Change(ChangeKind.JOIN, check_counter(iteration, "iteration"), subject)
        entry = agree(ctx, found, caller, change, needed)
        need_future(ProcessProgress(ctx, process, plan), iteration)
        return self._changed(ctx, found, entry)

    @submit
    @allow(Role.NODE, *STAFF)
    def leave(self, ctx: Context, process: str, node: str, iteration: int, reason: str = "") -> ChangeRecord:
        """Take a node out, by itself or its organisation, from an iteration it has not completed on.

        The others no longer wait for it in that iteration, also if it has begun. Returns the change.
        """
        check_text(reason, "the reason")
        found = Process.load(ctx, process)
        found.move(ProcessTransition.LEAVE)
        plan, caller = found.plan, caller_of(ctx)
        owner = owner_of(plan.nodes, node, process)
        caller.need_organisation(owner)
        if caller.role is Role.NODE:
            caller.need_node(node, owner)
        upcoming = next_iteration(plan, node, find_progress(ctx, process, node))
        gone = plan.has_left(node)
        if upcoming is None or (gone is not None and iteration >= gone):
            raise StateError("NODE_INACTIVE", f"{node} has done its part of {process}, or is gone by then")
        if not upcoming <= check_counter(iteration, "iteration") < plan.iterations:
            raise StateError(
                "ITERATION_RANGE",
                f"{node} can leave from {upcoming} to {plan.iterations - 1}, not {iteration}",
            )
        change = Change(ChangeKind.LEAVE, iteration, {"node": node, "reason": reason})
        entry = agree(ctx, found, caller, change, {owner})
        empty = found.plan.first_empty(iteration)
        if empty is not None:
            raise StateError("NODE_LAST", f"without {node} nobody takes part in iteration {empty}")
        return self._changed(ctx, found, entry)

    @submit
    @allow(*STAFF)
    def change_topology(
        self, ctx: Context, process: str, iteration: int, topology: dict[str, Any]
    ) -> ChangeRecord:
        """Ask for, or agree to, another topology from a coming iteration on; returns the change.

        It holds when every organisation of the consortium has called with the same arguments.
        """
        parsed = Topology.from_dict(topology)
        found = Process.load(ctx, process)
        found.move(ProcessTransition.CHANGE_TOPOLOGY)
        plan, caller = found.plan, found.member(ctx)
        parsed.check_nodes(plan.nodes)
        change = Change(ChangeKind.TOPOLOGY, check_counter(iteration, "iteration"), parsed.to_dict())
        entry = agree(ctx, found, caller, change, plan.consortium)
        need_future(ProcessProgress(ctx, process, plan), iteration)
        return self._changed(ctx, found, entry)

    @submit
    @allow(*STAFF)
    def update_image(self, ctx: Context, process: str, iteration: int, version: str) -> ChangeRecord:
        """Ask for, or agree to, another version of the step's image from a coming iteration on.

        It holds until the end of the step, when every organisation of the consortium has called with the
        same arguments. Returns the change.
        """
        found = Process.load(ctx, process)
        found.move(ProcessTransition.UPDATE_IMAGE)
        plan, caller = found.plan, found.member(ctx)
        name = plan.image(min(check_counter(iteration, "iteration"), plan.iterations - 1)).name
        image = usable_image(ctx, name, parse_image_version(version))
        subject = {"version": version, **image.pin.to_dict()}
        change = Change(ChangeKind.IMAGE, check_counter(iteration, "iteration"), subject)
        entry = agree(ctx, found, caller, change, plan.consortium)
        need_future(ProcessProgress(ctx, process, plan), iteration)
        return self._changed(ctx, found, entry)

    def _changed(self, ctx: Context, process: Process, entry: ChangeRecord) -> ChangeRecord:
        process.save(ctx)
        self.announce(
            ctx,
            "ProcessChanged",
            {
                "process": process.id,
                "number": entry.number,
                "kind": entry.kind.value,
                "iteration": entry.iteration,
                "organisation": caller_of(ctx).organisation,
                "holds": entry.holds,
            },
        )
        return entry
