"""Who may read a model: the owner always, others while a grant holds.

Who grants and who revokes is in the specification: the owner, or a majority or all who take part, on request
(`requests.py`).

The time of a read is its client's claim, so a grant's expiry binds honest clients. A revocation ends what the
chaincode answers; the peers keep what they hold.
"""

from collections.abc import Iterable
from datetime import datetime

from chaincode.common import caller_of, provenance, read, time_text, write
from chaincode.common.calls import initial_model, model_context
from chaincode.shim import Context
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.process import ModelAccess
from protocol.errors import AccessError, StateError
from protocol.identifiers import parse_organisation
from protocol.ledger import keys
from protocol.ledger.models import AccessRecord


def open_to_consortium(ctx: Context, process: str, node: str, owner: str, consortium: Iterable[str]) -> None:
    """Write the first access record: the owner and every organisation of the consortium, without end."""
    opened = AccessRecord.opened(process, node, owner, consortium, provenance(ctx))
    write(ctx, keys.access(process, node), opened)


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
    _check_decides(ctx, record)
    _check_other(record, organisation)
    return record.with_grant(organisation, expiry(expires, ctx.time), provenance(ctx))


def revoke(ctx: Context, record: AccessRecord, organisation: str) -> AccessRecord:
    """Take an organisation's access away."""
    _check_decides(ctx, record)
    check_revocable(record, organisation)
    return record.without(organisation, provenance(ctx))


def check_revocable(record: AccessRecord, organisation: str) -> None:
    """Refuse to take away the owner's access, or what is not there."""
    _check_other(record, organisation)
    if organisation not in record.organisations:
        raise StateError("GRANT_UNKNOWN", f"{organisation} has no access to the model of {record.node}")


def _check_decides(ctx: Context, record: AccessRecord) -> None:
    """Refuse others than the owner, and the owner where it does not decide alone."""
    caller_of(ctx).need_organisation(record.owner)
    rule = model_context(ctx, record.process).access
    if rule is not ModelAccess.OWNER:
        raise StateError("GRANT_GOVERNED", f"{rule} decide who reads models of {record.process}")


def _check_other(record: AccessRecord, organisation: str) -> None:
    """Refuse to decide on the owner's own access."""
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
