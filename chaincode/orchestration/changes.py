"""Functions that change a running process, each from an iteration on."""

from dataclasses import replace
from typing import Any

from chaincode.common import STAFF, LedgerContract, Role, allow, caller_of, provenance
from chaincode.common.calls import image_record
from chaincode.common.own import write_word
from chaincode.orchestration.consent import agree, ask, find_ask
from chaincode.orchestration.initial import check_name
from chaincode.orchestration.process import (
    Process,
    ProcessProgress,
    check_rebuilt,
    owner_of,
    usable_image,
)
from chaincode.shim import Context, submit
from protocol.agreement.course import Change, ChangeKind
from protocol.agreement.image import check_text
from protocol.agreement.lifecycle import ProcessTransition
from protocol.agreement.onset import check_onset
from protocol.agreement.parameters import MAX_NODES
from protocol.agreement.plan import Plan
from protocol.agreement.topology import Topology
from protocol.errors import AccessError, StateError
from protocol.identifiers import check_counter, parse_image_version, parse_node, parse_organisation
from protocol.ledger import keys
from protocol.ledger.changes import AskRecord, AskStatus

_TRANSITIONS = {
    ChangeKind.JOIN: ProcessTransition.JOIN,
    ChangeKind.LEAVE: ProcessTransition.LEAVE,
    ChangeKind.TOPOLOGY: ProcessTransition.CHANGE_TOPOLOGY,
    ChangeKind.IMAGE: ProcessTransition.UPDATE_IMAGE,
    ChangeKind.COORDINATOR: ProcessTransition.REPLACE_COORDINATOR,
}


class Changes(LedgerContract):
    """Join, leave, another topology, image version, coordinator; to agree to one of these, or withdraw it."""

    @submit
    @allow(*STAFF)
    def join(self, ctx: Context, process: str, node: str, organisation: str, iteration: int) -> AskStatus:
        """Let a node take part from a coming iteration on; returns where the ask stands.

        A node that left comes back by its own organisation's word, the second time only if it has completed
        what it joined for; one that was left out, or has not, needs a majority too. It does so from an
        iteration on that some node has yet to complete and that no neighbour of it, in a synchronous step,
        has begun: the next at the latest, or the one after that which a neighbour has to do next. A new node
        is asked for by a member, needs everybody who takes part and its organisation, and joins from an
        iteration on that has begun nowhere.
        """
        subject = {"node": parse_node(node), "organisation": parse_organisation(organisation)}
        return self._ask(ctx, process, ChangeKind.JOIN, iteration, subject)

    @submit
    @allow(Role.NODE, *STAFF)
    def leave(self, ctx: Context, process: str, node: str, iteration: int, reason: str = "") -> AskStatus:
        """Take a node out, by itself or its organisation, from an iteration it has not completed on.

        The others no longer wait for it in that iteration, also if it has begun. A node that is to leave
        later can leave sooner only from its next iteration on. Returns where the ask stands.
        """
        check_text(reason, "the reason")
        found = Process.load(ctx, process)
        found.move(ProcessTransition.LEAVE)
        plan, caller = found.plan, caller_of(ctx)
        owner = owner_of(plan.nodes, node, process)
        caller.need_organisation(owner)
        if caller.role is Role.NODE:
            caller.need_node(node, owner)
        change = Change(
            ChangeKind.LEAVE, check_counter(iteration, "iteration"), {"node": node, "reason": reason}
        )
        progress = ProcessProgress(ctx, process, plan)
        check_onset(change, progress)
        return self._changed(ctx, found, ask(ctx, found, caller, change, progress))

    @submit
    @allow(*STAFF)
    def change_topology(
        self, ctx: Context, process: str, iteration: int, topology: dict[str, Any]
    ) -> AskStatus:
        """Ask for another topology from a coming iteration on; returns where the ask stands.

        It holds when every organisation that takes part has agreed, from any iteration that some node has
        yet to complete, as long as no task that may have begun gets other neighbours.
        """
        subject = Topology.from_dict(topology).to_dict()
        return self._ask(ctx, process, ChangeKind.TOPOLOGY, iteration, subject)

    @submit
    @allow(*STAFF)
    def update_image(self, ctx: Context, process: str, iteration: int, version: str) -> AskStatus:
        """Ask for another version of the step's image; returns where the ask stands.

        It holds until the end of the step when more than half of the organisations that take part have
        agreed, from any iteration that some node has yet to complete: what is open then goes on, what is
        opened later runs the new version, and only on nodes whose organisation has agreed. A version that is
        retired is refused; one that is retired after it was asked for may still be agreed to.
        """
        found = Process.load(ctx, process)
        found.member(ctx)
        found.move(ProcessTransition.UPDATE_IMAGE)
        name = found.plan.image(min(check_counter(iteration, "iteration"), found.plan.iterations - 1)).name
        image = usable_image(ctx, name, parse_image_version(version))
        subject = {"version": version, **image.pin.to_dict()}
        return self._ask(ctx, process, ChangeKind.IMAGE, iteration, subject)

    @submit
    @allow(*STAFF)
    def replace_coordinator(self, ctx: Context, process: str, organisation: str) -> AskStatus:
        """Ask for another organisation to open the steps that are left; returns where the ask stands.

        It holds when more than half of the organisations that take part have agreed, and the one named has:
        at any time, so that a coordinator that vanished holds up nobody.
        """
        found = Process.load(ctx, process)
        upcoming = found.plan.next_step()
        iteration = 0 if upcoming is None else upcoming[1]
        subject = {"coordinator": parse_organisation(organisation)}
        return self._ask(ctx, process, ChangeKind.COORDINATOR, iteration, subject)

    @submit
    @allow(*STAFF)
    def agree(self, ctx: Context, process: str, organisation: str, number: int, digest: str) -> AskStatus:
        """Agree to a change that an organisation has asked for; returns where the ask stands.

        `number` is the ask's, `digest` that of what is agreed to, so that nobody agrees to something else
        than it has read. What holds already may still be agreed to if it is an image. What does not is over
        once another change of the same (the topology, the step's image, the coordinator, that node's part)
        has come to hold since it was asked for.
        """
        found = Process.load(ctx, process)
        asked = find_ask(ctx, process, parse_organisation(organisation), check_counter(number, "number"))
        found.move(_TRANSITIONS[asked.kind])
        if str(asked.digest) != digest:
            raise StateError("CHANGE_DIGEST", f"{organisation} asks for {asked.digest}")
        progress = ProcessProgress(ctx, process, found.plan)
        answer = agree(ctx, found, caller_of(ctx), asked, progress)
        if asked.change is None:
            _check(ctx, found, progress, asked.wanted)
        elif asked.kind is not ChangeKind.IMAGE:
            raise StateError("PROCESS_ACCEPTED", f"change {asked.number} of {organisation} holds already")
        return self._changed(ctx, found, answer)

    @submit
    @allow(*STAFF)
    def withdraw(self, ctx: Context, process: str, number: int) -> AskRecord:
        """Withdraw a change that the caller's organisation has asked for and that does not hold yet."""
        Process.load(ctx, process)
        caller = caller_of(ctx)
        asked = find_ask(ctx, process, caller.organisation, check_counter(number, "number"))
        if asked.change is not None:
            raise StateError("CHANGE_HOLDS", f"it is change {asked.change} of {process}")
        asked = replace(asked, withdrawn=provenance(ctx))
        write_word(ctx, caller.organisation, keys.ask(process, caller.organisation, number), asked)
        self.announce(
            ctx,
            "ChangeWithdrawn",
            {"process": process, "organisation": caller.organisation, "number": number},
        )
        return asked

    def _ask(
        self, ctx: Context, process: str, kind: ChangeKind, iteration: int, subject: dict[str, Any]
    ) -> AskStatus:
        found = Process.load(ctx, process)
        found.move(_TRANSITIONS[kind])
        change = Change(kind, check_counter(iteration, "iteration"), subject)
        progress = ProcessProgress(ctx, process, found.plan)
        _check_owner(progress, change)
        answer = ask(ctx, found, caller_of(ctx), change, progress)
        _check(ctx, found, progress, change)
        return self._changed(ctx, found, answer)

    def _changed(self, ctx: Context, process: Process, entry: AskStatus) -> AskStatus:
        self.announce(
            ctx,
            "ProcessChanged",
            {
                "process": process.id,
                "asked": entry.asked,
                "number": entry.number,
                "kind": entry.kind.value,
                "iteration": entry.iteration,
                "organisation": caller_of(ctx).organisation,
                "holds": entry.holds,
            },
        )
        return entry


def _check_owner(progress: ProcessProgress, change: Change) -> None:
    """Refuse a join of a node for another organisation than its own, or of one that takes part."""
    if change.kind is not ChangeKind.JOIN:
        return
    plan, node, organisation = progress.plan, change.subject["node"], change.subject["organisation"]
    owner = plan.nodes.get(node, organisation)
    if owner != organisation:
        raise AccessError("ACCESS_ORGANISATION", f"{node} belongs to {owner}")
    if node in plan.nodes and plan.has_left(node) is None:
        raise StateError("NODE_ACTIVE", f"{node} takes part in the process")


def _check(ctx: Context, process: Process, progress: ProcessProgress, change: Change) -> None:
    """Refuse a change that does not fit the process as it stands; asked, and again with each agreement."""
    plan, subject = progress.plan, change.subject
    _check_owner(progress, change)
    if change.kind is ChangeKind.COORDINATOR:
        _check_coordinator(progress, subject["coordinator"])
        return
    if change.kind is ChangeKind.IMAGE:
        planned = plan.image(min(change.iteration, plan.iterations - 1))
        # Retired or not: once it is asked for, its registrant no longer decides.
        image = image_record(ctx, planned.name, subject["version"]).image
        check_rebuilt(ctx, process, image)
        if image.pin.to_dict() != {name: subject[name] for name in image.pin.to_dict()}:
            raise StateError(
                "IMAGE_PIN", f"{planned.name} {subject['version']} is registered with other digests"
            )
    elif change.kind is ChangeKind.TOPOLOGY:
        Topology.from_dict(dict(subject)).check_nodes(plan.nodes)
    else:
        _check_newcomer(ctx, process, plan, subject["node"], subject["organisation"])
    check_onset(change, progress)


def _check_coordinator(progress: ProcessProgress, organisation: str) -> None:
    """Refuse a coordinator where there is none to replace, nothing left to open, or who cannot be it."""
    plan = progress.plan
    if plan.coordinator is None:
        raise StateError("STEP_COORDINATOR", "the nodes go from step to step by themselves")
    if plan.next_step() is None:
        raise StateError("STEP_ORDER", "every step is open")
    if organisation == plan.coordinator:
        raise StateError("STEP_COORDINATOR", f"{organisation} is the coordinator")
    if organisation not in progress.present():
        raise StateError("STEP_COORDINATOR", f"{organisation} takes no part")


def _check_newcomer(ctx: Context, process: Process, plan: Plan, node: str, organisation: str) -> None:
    """Refuse one node too many, one by another's name, or one whose organisation cannot hold the trees."""
    agreed = process.specification
    if node not in plan.nodes:
        if len(plan.nodes) >= MAX_NODES:
            raise StateError("CHANGE_LIMIT", f"{process.id} has {len(plan.nodes)} nodes")
        check_name(ctx, process, node, organisation)
    if agreed.confidential and organisation not in agreed.organisations:
        raise StateError("PROCESS_COLLECTION", f"{organisation} cannot hold the trees of this process")
