"""Who may read a model: the owner always, others while a grant holds.

Who grants is in the specification: the owner, or a majority or all who take part, on request (`requests.py`).
To revoke is the owner's in any case.

The time of a read is its client's claim, so a grant's expiry binds honest clients. A revocation ends what the
chaincode answers; the peers keep what they hold.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime

from chaincode.common import CallerIdentity, caller_of, provenance, read, time_text, write
from chaincode.common.calls import initial_model, model_context
from chaincode.shim import Context
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.process import ModelAccess
from protocol.errors import AccessError, StateError
from protocol.identifiers import parse_organisation
from protocol.ledger import keys
from protocol.ledger.common import Provenance
from protocol.ledger.models import AccessChange, AccessRecord, Grant
from protocol.ledger.requests import AccessRequest


def open_to_consortium(ctx: Context, process: str, node: str, owner: str, consortium: Iterable[str]) -> None:
    """Write the first access record: the owner and every organisation of the consortium, without end."""
    by = provenance(ctx)
    granted = {name: Grant(None, by) for name in consortium}
    change = AccessChange("publish", owner, None, by)
    write(ctx, keys.access(process, node), AccessRecord(process, node, owner, granted, change))


def need_access(ctx: Context, process: str, node: str, used_by: str = "") -> None:
    """Return if the caller's organisation may read the model, by a grant or for a process that runs on it."""
    record = find_access(ctx, process, node)
    organisation = caller_of(ctx).organisation
    if record.allows(organisation, time_text(ctx.time)):
        return
    if used_by and _runs_on(ctx, used_by, process, node, organisation):
        return
    raise AccessError("ACCESS_GRANT", f"{organisation} has no access to the model of {node}")


def _runs_on(ctx: Context, used_by: str, process: str, node: str, organisation: str) -> bool:
    """Whether a running process started from the model when this organisation had access to it."""
    if model_context(ctx, used_by).status is not ProcessState.RUNNING:
        return False
    bound = initial_model(ctx, used_by)
    return (bound.model.process, bound.model.node) == (process, node) and organisation in bound.organisations


def find_access(ctx: Context, process: str, node: str) -> AccessRecord:
    """Read the access record of a model that must be there."""
    record = read(ctx, keys.access(process, node), AccessRecord)
    if record is None:
        raise StateError("MODEL_UNKNOWN", f"{node} has published no model of {process}")
    return record


def grant(ctx: Context, record: AccessRecord, organisation: str, expires: str) -> AccessRecord:
    """Give an organisation access, without end or until a time to come; a second grant replaces the first."""
    _check_owner(record, caller_of(ctx), organisation)
    rule = model_context(ctx, record.process).access
    if rule is not ModelAccess.OWNER:
        raise StateError("GRANT_GOVERNED", f"{rule} decide who reads models of {record.process}")
    given = Grant(expiry(expires, ctx.time), provenance(ctx))
    change = AccessChange("grant", organisation, given.expires, given.by)
    return replace(record, organisations={**record.organisations, organisation: given}, change=change)


def granted(record: AccessRecord, asked: AccessRequest, by: Provenance) -> AccessRecord:
    """Give an organisation the access that it asked for and that was decided."""
    change = AccessChange("grant", asked.organisation, asked.expires, by, asked.number)
    given = {**record.organisations, asked.organisation: Grant(asked.expires, by)}
    return replace(record, organisations=given, change=change)


def revoke(ctx: Context, record: AccessRecord, organisation: str) -> AccessRecord:
    """Take an organisation's access away."""
    _check_owner(record, caller_of(ctx), organisation)
    if organisation not in record.organisations:
        raise StateError("GRANT_UNKNOWN", f"{organisation} has no access to the model of {record.node}")
    kept = {name: given for name, given in record.organisations.items() if name != organisation}
    change = AccessChange("revoke", organisation, None, provenance(ctx))
    return replace(record, organisations=kept, change=change)


def _check_owner(record: AccessRecord, caller: CallerIdentity, organisation: str) -> None:
    caller.need_organisation(record.owner)
    if parse_organisation(organisation) == record.owner:
        raise StateError("GRANT_OWNER", f"{organisation} owns the model of {record.node}")


def expiry(text: str, now: datetime) -> str | None:
    """Read the end of a grant: none, or a time to come in UTC."""
    if text == "":
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise StateError("GRANT_EXPIRY", f"{text[:40]!r} is not a time") from None
    if time.tzinfo is None or time.utcoffset():
        raise StateError("GRANT_EXPIRY", f"{text[:40]!r} is not a time in UTC")
    if time <= now:
        raise StateError("GRANT_EXPIRY", f"{text[:40]} is over")
    return time_text(time)
