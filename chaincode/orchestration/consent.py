"""Consent to changes of a running process: one organisation asks, and it holds once enough have agreed.

Whose agreement it takes is in `protocol/agreement/consent.py`. Nobody runs code that it has not agreed to: a
node whose organisation has not opens no task with it.

Asks and agreements stand under keys of their own, which no task reads but those of an image that was changed.
Each counts only with the endorsement of the organisation that it is the word of (`chaincode/common/own.py`).
"""

from collections.abc import Mapping
from dataclasses import replace

from chaincode.common import CallerIdentity, provenance, read, write
from chaincode.common.own import check_vouched, find_words, write_word
from chaincode.orchestration.process import Process, ProcessProgress
from chaincode.shim import Context
from protocol.agreement.consent import Consent, consent_to
from protocol.agreement.course import Change
from protocol.errors import AccessError, StateError
from protocol.ledger import keys
from protocol.ledger.changes import (
    AgreementRecord,
    AskCount,
    AskRecord,
    AskStatus,
    ChangeRecord,
    change_digest,
)
from protocol.ledger.common import Provenance


def ask(
    ctx: Context, process: Process, caller: CallerIdentity, change: Change, progress: ProcessProgress
) -> AskStatus:
    """Record what the caller's organisation asks for; it holds at once if that is enough."""
    consent = _consent_of(caller, change, progress)
    # Somebody outside the consortium may agree to what a member asked for, and ask for nothing.
    caller.need_member(progress.plan.consortium)
    count = read(ctx, keys.asks(process.id, caller.organisation), AskCount) or AskCount(0)
    if count.asked >= process.specification.change_quota:
        raise StateError("CHANGE_LIMIT", f"{caller.organisation} has asked for {count.asked} changes")
    write(ctx, keys.asks(process.id, caller.organisation), AskCount(count.asked + 1))
    by = provenance(ctx)
    made = AskRecord(
        process=process.id,
        asked=caller.organisation,
        number=count.asked,
        kind=change.kind,
        iteration=change.iteration,
        subject=dict(change.subject),
        digest=change_digest(change),
        by=by,
        after=process.record.course.count,
    )
    write_word(ctx, caller.organisation, keys.ask(process.id, caller.organisation, count.asked), made)
    return _settled(ctx, process, made, consent, {caller.organisation: by})


def agree(
    ctx: Context, process: Process, caller: CallerIdentity, asked: AskRecord, progress: ProcessProgress
) -> AskStatus:
    """Record the agreement of the caller's organisation to an ask; it holds if that is enough."""
    _check_current(asked, progress)
    consent = _consent_of(caller, asked.wanted, progress)
    agreed = agreements(ctx, asked, (*consent.members, *progress.plan.consortium))
    if caller.organisation in agreed:
        raise StateError("PROCESS_ACCEPTED", f"{caller.organisation} has agreed to this change")
    by = provenance(ctx)
    made = AgreementRecord(process.id, asked.asked, asked.number, caller.organisation, asked.digest, by)
    place = keys.agreement(process.id, asked.asked, asked.number, caller.organisation)
    write_word(ctx, caller.organisation, place, made)
    return _settled(ctx, process, asked, consent, {**agreed, caller.organisation: by})


def find_ask(ctx: Context, process: str, organisation: str, number: int) -> AskRecord:
    """Read an ask that is there, is its organisation's own word, and was not withdrawn."""
    place = keys.ask(process, organisation, number)
    found = read(ctx, place, AskRecord)
    if found is not None:
        check_vouched(ctx, organisation, place, found.mark)
    if found is None or found.withdrawn is not None:
        raise StateError("CHANGE_UNKNOWN", f"{organisation} asks for no change {number} of {process}")
    return found


def agreements(ctx: Context, asked: AskRecord, members: tuple[str, ...]) -> dict[str, Provenance]:
    """Return who has agreed to an ask, of these organisations; who asked has."""
    names = sorted({*members} - {asked.asked})
    places = {name: keys.agreement(asked.process, asked.asked, asked.number, name) for name in names}
    found = find_words(ctx, places, AgreementRecord)
    given = {name: word.by for name, word in found.items() if word.digest == asked.digest}
    return {asked.asked: asked.by, **given}


def status_of(asked: AskRecord, consent: Consent, agreed: Mapping[str, Provenance]) -> AskStatus:
    """Return where an ask stands."""
    return AskStatus(
        process=asked.process,
        asked=asked.asked,
        number=asked.number,
        kind=asked.kind,
        iteration=asked.iteration,
        subject=asked.subject,
        digest=asked.digest,
        agreed=tuple(sorted(agreed)),
        missing=consent.missing(agreed),
        needed=consent.needed,
        change=asked.change,
    )


def _consent_of(caller: CallerIdentity, change: Change, progress: ProcessProgress) -> Consent:
    consent = consent_to(change, progress)
    if caller.organisation not in consent.members:
        raise AccessError(
            "ACCESS_ORGANISATION", f"{caller.organisation} has no say in this {change.kind.value}"
        )
    return consent


def _check_current(asked: AskRecord, progress: ProcessProgress) -> None:
    """Refuse agreements to what another change has replaced before it came to hold."""
    later = asked.overtaken_by(progress.plan) if asked.change is None else None
    if later is not None:
        raise StateError("CHANGE_STALE", f"{asked.asked} asked for this before change {later} came to hold")


def _settled(
    ctx: Context, process: Process, asked: AskRecord, consent: Consent, agreed: dict[str, Provenance]
) -> AskStatus:
    """Write the change that an ask becomes if all that is needed have agreed."""
    if asked.change is None and consent.is_given(agreed):
        change = ChangeRecord(
            process=process.id,
            number=process.record.course.count,
            kind=asked.kind,
            iteration=asked.iteration,
            subject=asked.subject,
            asked=asked.asked,
            ask=asked.number,
            agreed=agreed,
            members=consent.members,
        )
        process.apply(ctx, change)
        asked = replace(asked, change=change.number)
        write(ctx, keys.ask(process.id, asked.asked, asked.number), asked)
    return status_of(asked, consent, agreed)
