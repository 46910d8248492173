"""A process and its progress as the ledger has them: read, checked against the life cycle, written."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from chaincode.common import CallerIdentity, caller_of, provenance, read, read_many, write
from chaincode.common.calls import image_rebuilds, image_record
from chaincode.common.records import parse
from chaincode.shim import Context, PeerError
from protocol.agreement.image import Image
from protocol.agreement.lifecycle import PROCESS, ImageState, ProcessState, ProcessTransition
from protocol.agreement.plan import Plan
from protocol.agreement.process import Specification
from protocol.agreement.progress import Progress
from protocol.errors import AccessError, IdentifierError, StateError
from protocol.ledger import keys
from protocol.ledger.changes import AcceptanceRecord, ChangeRecord
from protocol.ledger.common import Provenance
from protocol.ledger.images import check_attested
from protocol.ledger.processes import (
    MAX_ON_SHELF,
    BriefRecord,
    OpenProcesses,
    ProcessRecord,
    ProgressRecord,
    open_places,
    shelf_of,
)


class Process:
    """A process on its way through one transaction."""

    def __init__(self, ctx: Context, record: ProcessRecord) -> None:
        self.record = record
        self._ctx = ctx
        self._was = record.status

    @classmethod
    def proposed(cls, ctx: Context, specification: Specification) -> "Process":
        """Make the record of a new process, or refuse an id that is taken."""
        if ctx.get(keys.process(specification.process)) is not None:
            raise StateError("PROCESS_EXISTS", f"{specification.process} is on the ledger")
        status = PROCESS.after(ProcessTransition.PROPOSE, ProcessState.ABSENT)
        record = ProcessRecord(
            specification.process, status, specification, specification.digest, provenance(ctx)
        )
        return cls(ctx, record)

    @classmethod
    def load(cls, ctx: Context, process: str) -> "Process":
        """Read a process, or refuse an id that is not on the ledger."""
        record = read(ctx, keys.process(process), ProcessRecord)
        if record is None:
            raise StateError("PROCESS_UNKNOWN", f"{process} is not on the ledger")
        return cls(ctx, record)

    @classmethod
    def load_with_progress(
        cls, ctx: Context, process: str, node: str
    ) -> tuple["Process", ProgressRecord | None]:
        """Read a process, and how far a node is in it, in one message: every task asks for both.

        The latter is None before the node's first completed iteration.
        """
        try:
            places = [keys.process(process), keys.progress(process, node)]
        except IdentifierError:  # no name that a node can have: whoever asks refuses it as unknown
            return cls.load(ctx, process), None
        found, progress = ctx.get_many(places, ProcessRecord.max_bytes)
        if found is None:
            raise StateError("PROCESS_UNKNOWN", f"{process} is not on the ledger")
        return (
            cls(ctx, parse(found, ProcessRecord)),
            None if progress is None else parse(progress, ProgressRecord),
        )

    def change(self, **fields: Any) -> None:
        """Replace fields of the record."""
        self.record = replace(self.record, **fields)

    def save(self, ctx: Context) -> None:
        """Write the record, and the process in brief where lists look for its status."""
        write(ctx, keys.process(self.id), self.record)
        brief = BriefRecord.of(self.record)
        write(ctx, brief.key, brief)
        if self._was is not self.record.status:
            ctx.delete(keys.brief(self._was.value, self.id))

    def count(self, ctx: Context) -> None:
        """Keep what the proposer's organisation has open within bounds; what has ended is forgotten."""
        organisation, shelf = self.record.created.organisation, shelf_of(self.id)
        key = keys.openprocesses(organisation, shelf)
        before = read(ctx, key, OpenProcesses)
        still = before.processes if before else ()
        if len(still) >= MAX_ON_SHELF:
            still = tuple(process for process in still if _is_open(ctx, process))
        if len(still) >= MAX_ON_SHELF:
            raise StateError("PROCESS_QUOTA", f"{organisation} has too many open processes for one more")
        write(ctx, key, OpenProcesses(organisation, shelf, (*still, self.id)))

    def apply(self, ctx: Context, change: ChangeRecord) -> None:
        """Write a change that holds from now on; it is the one write of a change that tasks read."""
        empty = self.plan.left_empty(change.change)
        if empty is not None:
            raise StateError("NODE_LAST", f"nobody would take part in iteration {empty}")
        write(ctx, keys.change(self.id, change.number), change)
        self.change(course=self.record.course.after(change.change, self.specification.nodes))
        self.save(ctx)

    @property
    def id(self) -> str:
        """The process id."""
        return self.record.process

    @property
    def specification(self) -> Specification:
        """What was agreed."""
        return self.record.specification

    @property
    def plan(self) -> Plan:
        """What holds in each iteration."""
        return Plan(self.specification, self.record.course, lambda number: self.change_of(number).change)

    def change_of(self, number: int) -> ChangeRecord:
        """Read a change that holds."""
        found = read(self._ctx, keys.change(self.id, number), ChangeRecord)
        if found is None:
            raise StateError("CHANGE_UNKNOWN", f"{self.id} has no change {number}")
        return found

    def accepted(self) -> dict[str, Provenance]:
        """Return who has accepted: while the process is proposed, in records of their own."""
        if self.record.status is not ProcessState.PROPOSED:
            return self.record.accepted
        names = self.specification.organisations
        wanted = [keys.acceptance(self.id, name) for name in names]
        found = zip(names, read_many(self._ctx, wanted, AcceptanceRecord), strict=True)
        return {name: record.by for name, record in found if record is not None}

    def with_acceptances(self) -> ProcessRecord:
        """Return the record as it is shown, with who has accepted so far."""
        return replace(self.record, accepted=self.accepted())

    def move(self, transition: ProcessTransition) -> None:
        """Take a transition of the life cycle, or refuse one it does not have."""
        self.change(status=PROCESS.after(transition, self.record.status))

    def need_running(self) -> None:
        """Refuse what only a running process can take."""
        if self.record.status is not ProcessState.RUNNING:
            raise StateError("PROCESS_NOT_RUNNING", f"{self.id} is {self.record.status.value}")

    def member(self, ctx: Context) -> CallerIdentity:
        """Return the caller, who must be of the consortium."""
        caller = caller_of(ctx)
        caller.need_member(self.plan.consortium)
        return caller


class ProcessProgress(Progress):
    """How far each node is, as the ledger has it."""

    def __init__(self, ctx: Context, process: str, plan: Plan) -> None:
        names = sorted(plan.nodes)
        found = read_many(ctx, [keys.progress(process, node) for node in names], ProgressRecord)
        self.records = {node: record for node, record in zip(names, found, strict=True) if record is not None}
        super().__init__(plan, {node: record.iteration for node, record in self.records.items()})

    def need_say(self, caller: CallerIdentity) -> None:
        """Refuse a caller whose organisation is not of the consortium, has left, or was left out."""
        caller.need_member(self.plan.consortium)
        if caller.organisation not in self.present():
            raise AccessError("ACCESS_ORGANISATION", f"{caller.organisation} no longer takes part")


def _is_open(ctx: Context, process: str) -> bool:
    return any(ctx.get(place) is not None for place in open_places(process))


def next_iteration(plan: Plan, node: str, record: ProgressRecord | None) -> int | None:
    """Return a node's next iteration by its progress record."""
    return plan.next_iteration(node, 0 if record is None else record.iteration + 1)


def owner_of(nodes: Mapping[str, str], node: str, process: str) -> str:
    """Return the organisation of a node, or refuse a node that the process does not have."""
    if node not in nodes:
        raise StateError("NODE_UNKNOWN", f"{node[:64]} is not a node of {process}")
    return nodes[node]


def check_images(ctx: Context, specification: Specification) -> None:
    """Refuse a proposal with an image version that is not registered as it is pinned, or retired.

    Asked when a process is proposed and never again: what is registered does not change, and from then on
    the pins bind. Whoever registered the image may be no member, and shall not decide by retiring it; members
    are told, and may refuse to accept or give the process up.
    """
    pins = {(step.image_name, step.image_version, step.pin) for step in specification.steps}
    for name, version, pin in sorted(pins, key=str):
        found = usable_image(ctx, name, version)
        if pin is None and specification.version > 1:
            raise StateError("IMAGE_PIN", f"the specification does not pin {name} {version}")
        if pin not in (None, found.pin):
            raise StateError("IMAGE_PIN", f"{name} {version} is pinned to other bytes than are registered")


def check_rebuilt(ctx: Context, process: "Process", image: Image) -> None:
    """Refuse an image that fewer organisations got from its source than the process asks for.

    Asked when a process starts and when it changes its image, never of a single task: a statement that
    somebody takes back later stops nobody.
    """
    needed = process.specification.image_attestations
    if needed:
        rebuilds = image_rebuilds(ctx, image.name, image.version)
        check_attested(needed, image, rebuilds, process.plan.consortium)


def check_images_rebuilt(ctx: Context, process: "Process") -> None:
    """Check this of every image that a process starts with."""
    steps = process.specification.steps
    for name, version in sorted({(step.image_name, step.image_version) for step in steps}):
        check_rebuilt(ctx, process, image_record(ctx, name, version).image)


def usable_image(ctx: Context, name: str, version: str) -> Image:
    """Return an image version, or refuse one that is not registered, or retired."""
    found = image_record(ctx, name, version)
    if found.status is not ImageState.REGISTERED:
        raise StateError("IMAGE_RETIRED", f"{name} {version} is retired")
    return found.image


def check_collection(ctx: Context, specification: Specification) -> None:
    """Refuse a confidential process for whose organisations the channel has no collection of trees."""
    if specification.collection is None:
        return
    try:
        ctx.private(specification.collection).hash(keys.process(specification.process))
    except PeerError as error:
        raise StateError(
            "PROCESS_COLLECTION",
            "the channel has no collection of trees for these organisations and blocks",
        ) from error
