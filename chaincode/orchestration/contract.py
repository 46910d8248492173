"""The orchestration chaincode: proposed, accepted by every organisation, running, ended."""

from dataclasses import replace
from typing import Any, ClassVar

from chaincode.common import STAFF, Role, allow, caller_of, provenance, write
from chaincode.common.calls import EXECUTION_RECORD, bind_initial, unpublished
from chaincode.common.own import check_vouched, endorsement_by, seal, vouch, write_word
from chaincode.orchestration.absence import Absences
from chaincode.orchestration.changes import Changes
from chaincode.orchestration.initial import check_initial_model
from chaincode.orchestration.process import (
    Process,
    ProcessProgress,
    check_collection,
    check_images,
    check_images_rebuilt,
    next_iteration,
    owner_of,
)
from chaincode.orchestration.queries import ProcessQueries, abort_votes
from chaincode.orchestration.steps import Steps
from chaincode.shim import Context, submit
from protocol.agreement.consent import needed_to_abort
from protocol.agreement.image import check_text
from protocol.agreement.lifecycle import ProcessState, ProcessTransition
from protocol.agreement.process import Specification
from protocol.agreement.proposal import check_proposal
from protocol.agreement.step import VERSION
from protocol.errors import ProcessError, StateError
from protocol.identifiers import check_counter
from protocol.ledger import keys
from protocol.ledger.changes import (
    AbortStatus,
    AbortVote,
    AbsenceVote,
    AcceptanceRecord,
    AgreementRecord,
    AskCount,
    AskRecord,
    ChangeRecord,
)
from protocol.ledger.common import ReasonedProvenance
from protocol.ledger.processes import BriefRecord, OpenProcesses, ProcessRecord, ProgressRecord
from protocol.ledger.record import LedgerRecord


class OrchestrationContract(Changes, Absences, Steps, ProcessQueries):
    """Processes, from the proposal to the end, and how far each node is."""

    name = "orchestration"
    events: ClassVar[dict[str, str]] = {
        "ProcessCreated": "a process was proposed: process, specification_digest, organisation",
        "ProcessAccepted": "an organisation accepted: process, organisation, missing (those still to accept)",
        "ProcessStarted": "a process runs: process",
        "ProcessChanged": "a change was asked for, agreed to or voted for, or a step opened: process, asked,"
        " number, kind, iteration, organisation, holds",
        "ChangeWithdrawn": "a change is no longer asked for: process, organisation, number",
        "ProcessVoted": "a vote that decided nothing yet: process, vote (abort or leave-out), about,"
        " organisation, voted, needed",
        "ProcessCompleted": "every active node is done, and its model published: process",
        "ProcessAborted": "a process was given up: process, organisation",
    }
    values: ClassVar[dict[str, type[LedgerRecord]]] = {
        "process": ProcessRecord,
        "brief": BriefRecord,
        "openprocesses": OpenProcesses,
        "progress": ProgressRecord,
        "acceptance": AcceptanceRecord,
        "asks": AskCount,
        "ask": AskRecord,
        "agreement": AgreementRecord,
        "change": ChangeRecord,
        "absence": AbsenceVote,
        "departure": AbsenceVote,
        "abort": AbortVote,
    }

    @submit
    @allow(Role.DATA_SCIENTIST)
    def create(self, ctx: Context, specification: dict[str, Any]) -> ProcessRecord:
        """Propose a process by its specification (docs/formats/process-v2.md); returns the record.

        Every image version must be registered with the digests it is pinned by and not retired, an initial
        model published with the digest named and open to the caller's organisation, and that organisation one
        of the consortium. Proposing is not accepting: each organisation accepts by itself, also the
        proposer's. An organisation has some thousands of its proposals open at most, proposed or running.
        """
        parsed = Specification.from_dict(specification)
        if parsed.version != VERSION:
            raise ProcessError(
                "PROCESS_VALUE", f"a new process is of version {VERSION}, not {parsed.version}"
            )
        check_proposal(parsed)
        process = Process.proposed(ctx, parsed)
        caller = process.member(ctx)
        check_images(ctx, parsed)
        check_initial_model(ctx, parsed)
        check_collection(ctx, parsed)
        process.count(ctx)
        process.save(ctx)
        payload = {"process": process.id, "specification_digest": str(parsed.digest)}
        self.announce(ctx, "ProcessCreated", {**payload, "organisation": caller.organisation})
        return process.record

    @submit
    @allow(*STAFF)
    def accept(self, ctx: Context, process: str, digest: str = "") -> ProcessRecord:
        """Accept a proposed process for the caller's organisation; returns the record.

        With a digest, only the specification with that digest is accepted: say what you have read.
        """
        found = Process.load(ctx, process)
        caller = found.member(ctx)
        found.move(ProcessTransition.ACCEPT)
        expected = found.record.specification_digest
        if digest not in ("", str(expected)):
            raise StateError("PROCESS_DIGEST", f"the specification of {process} has digest {expected}")
        accepted = found.accepted()
        if caller.organisation in accepted:
            raise StateError("PROCESS_ACCEPTED", f"{caller.organisation} has accepted {process}")
        by = provenance(ctx)
        made = AcceptanceRecord(process, caller.organisation, expected, by)
        write(ctx, keys.acceptance(process, caller.organisation), made)
        vouch(ctx, caller.organisation, keys.process(process), str(expected))
        record = replace(found.record, accepted={**accepted, caller.organisation: by})
        self.announce(
            ctx,
            "ProcessAccepted",
            {"process": process, "organisation": caller.organisation, "missing": [*record.missing]},
        )
        return record

    @submit
    @allow(*STAFF)
    def start(self, ctx: Context, process: str) -> ProcessRecord:
        """Start a process that every organisation has accepted; returns the record.

        It runs the image versions that were pinned when it was proposed, also if one was retired since.
        """
        found = Process.load(ctx, process)
        found.member(ctx)
        found.change(accepted=found.accepted())
        found.move(ProcessTransition.START)
        missing = found.record.missing
        if missing:
            raise StateError("PROCESS_UNACCEPTED", f"not accepted by {', '.join(missing)}")
        check_images_rebuilt(ctx, found)
        for organisation in sorted(found.record.accepted):
            digest = str(found.record.specification_digest)
            check_vouched(ctx, organisation, keys.process(process), digest)
        bind_initial(ctx, found.specification)
        found.change(started=provenance(ctx))
        found.save(ctx)
        self.announce(ctx, "ProcessStarted", {"process": process})
        return found.record

    @submit
    @allow(Role.NODE, *STAFF)
    def complete(self, ctx: Context, process: str) -> ProcessRecord:
        """End a process in which every active node has done its last iteration; returns the record.

        It ends with the model of each node that did the last iteration, also if the node has gone since:
        any member can publish it (PublishFor of the model chaincode), so that none keeps the others waiting.
        """
        found = Process.load(ctx, process)
        found.member(ctx)
        found.move(ProcessTransition.COMPLETE)
        progress = ProcessProgress(ctx, process, found.plan)
        unfinished = progress.unfinished()
        if unfinished:
            waiting = ", ".join(f"{node} (iteration {at})" for node, at in list(unfinished.items())[:10])
            raise StateError("PROCESS_UNFINISHED", f"{len(unfinished)} nodes have work left: {waiting}")
        without = unpublished(ctx, process, progress.finished())
        if without:
            named = ", ".join(without[:10])
            raise StateError("PROCESS_UNPUBLISHED", f"{len(without)} nodes have no model yet: {named}")
        found.change(ended=ReasonedProvenance.of(provenance(ctx), ""))
        found.save(ctx)
        self.announce(ctx, "ProcessCompleted", {"process": process})
        return found.record

    @submit
    @allow(*STAFF)
    def abort(self, ctx: Context, process: str, reason: str) -> AbortStatus:
        """Vote to give a process up, for a reason that is kept; returns the votes and what they came to.

        A proposed process ends with the first vote of a member: nobody has to accept. A running one ends with
        the votes of more than half of the organisations that take part, or with the first if its
        specification says `any`. One in which every node has done its work is completed, not aborted. The
        same vote again changes nothing.
        """
        check_text(reason, "the reason")
        found = Process.load(ctx, process)
        caller = found.member(ctx)
        was, progress = found.record.status, ProcessProgress(ctx, process, found.plan)
        found.move(ProcessTransition.ABORT)
        needed = needed_to_abort(found.specification, was, progress)
        if was is ProcessState.RUNNING:
            progress.need_say(caller)
            if not progress.unfinished():
                raise StateError("PROCESS_FINISHED", f"every node of {process} has done its work")
        voted = abort_votes(ctx, process, progress.present())
        if caller.organisation not in voted:
            vote = ReasonedProvenance.of(provenance(ctx), reason)
            voted |= {caller.organisation: vote}
            place = keys.abort(process, caller.organisation)
            write_word(ctx, caller.organisation, place, AbortVote(process, caller.organisation, vote))
        if len(voted) >= needed:
            found.change(ended=ReasonedProvenance.of(provenance(ctx), reason))
            found.save(ctx)
            self.announce(ctx, "ProcessAborted", {"process": process, "organisation": caller.organisation})
            return AbortStatus(process, found.record.status, voted, needed)
        self.announce_vote(ctx, process, "abort", process, (len(voted), needed))
        return AbortStatus(process, was, voted, needed)

    @submit
    @allow(Role.NODE, through=EXECUTION_RECORD)
    def advance(self, ctx: Context, process: str, node: str, iteration: int) -> None:
        """Write that a node has completed an iteration; for execution-record's Complete, not for clients."""
        found, before = Process.load_with_progress(ctx, process, node)
        found.need_running()
        plan = found.plan
        caller_of(ctx).need_node(node, owner_of(plan.nodes, node, process))
        if not plan.is_active(node, check_counter(iteration, "iteration")):
            raise StateError("NODE_INACTIVE", f"{node} takes no part in iteration {iteration}")
        upcoming = next_iteration(plan, node, before)
        if iteration != upcoming:
            raise StateError("ITERATION_ORDER", f"{node} has to complete {upcoming} next, not {iteration}")
        done = ProgressRecord(process, node, iteration, provenance(ctx))
        write(ctx, keys.progress(process, node), done)
        if before is None:
            policy = endorsement_by(ctx, self.name, plan.nodes[node])
            seal(ctx, policy, [keys.progress(process, node)])
