"""Who may read a model: the owner always, others while a grant of the owner holds.

The time of a read is its client's claim, so a grant's expiry binds honest clients; a revocation binds all.
"""

from datetime import datetime
from typing import Any

from chaincode.common import Caller, caller_of, provenance, read, time_text, write
from chaincode.common.records import VERSION
from chaincode.shim import Context
from protocol.errors import AccessError, StateError
from protocol.identifiers import parse_organisation
from protocol.ledger import keys


def open_to_consortium(ctx: Context, process: str, node: str, owner: str, consortium: list[str]) -> None:
    """Write the first access record: the owner and every organisation of the consortium, without end."""
    by = provenance(ctx)
    record = {
        "version": VERSION,
        "process": process,
        "node": node,
        "owner": owner,
        "organisations": {name: {"expires": None, "by": by} for name in consortium},
        "change": {"action": "publish", "organisation": owner, "expires": None, "by": by},
    }
    write(ctx, keys.access(process, node), record)


def need_access(ctx: Context, process: str, node: str) -> dict[str, Any]:
    """Return the access record if the caller's organisation may read the model."""
    record = find_access(ctx, process, node)
    caller = caller_of(ctx)
    if not has_access(record, caller.organisation, ctx.time):
        raise AccessError("ACCESS_GRANT", f"{caller.organisation} has no access to the model of {node}")
    return record


def has_access(record: dict[str, Any], organisation: str, now: datetime) -> bool:
    """Whether an organisation may read a model at a time."""
    if organisation == record["owner"]:
        return True
    grant = record["organisations"].get(organisation)
    return grant is not None and (grant["expires"] is None or time_text(now) < grant["expires"])


def find_access(ctx: Context, process: str, node: str) -> dict[str, Any]:
    """Read the access record of a model that must be there."""
    record = read(ctx, keys.access(process, node))
    if record is None:
        raise StateError("MODEL_UNKNOWN", f"{node} has published no model of {process}")
    return record


def grant(ctx: Context, record: dict[str, Any], organisation: str, expires: str) -> dict[str, Any]:
    """Give an organisation access, without end or until a time to come; a second grant replaces the first."""
    _check_owner(record, caller_of(ctx), organisation)
    entry = {"expires": _expiry(expires, ctx.time), "by": provenance(ctx)}
    organisations = {**record["organisations"], organisation: entry}
    change = {"action": "grant", "organisation": organisation, **entry}
    return {**record, "organisations": organisations, "change": change}


def revoke(ctx: Context, record: dict[str, Any], organisation: str) -> dict[str, Any]:
    """Take an organisation's access away."""
    _check_owner(record, caller_of(ctx), organisation)
    if organisation not in record["organisations"]:
        raise StateError("GRANT_UNKNOWN", f"{organisation} has no access to the model of {record['node']}")
    organisations = {name: entry for name, entry in record["organisations"].items() if name != organisation}
    change = {"action": "revoke", "organisation": organisation, "expires": None, "by": provenance(ctx)}
    return {**record, "organisations": organisations, "change": change}


def _check_owner(record: dict[str, Any], caller: Caller, organisation: str) -> None:
    caller.need_organisation(record["owner"])
    if parse_organisation(organisation) == record["owner"]:
        raise StateError("GRANT_OWNER", f"{organisation} owns the model of {record['node']}")


def _expiry(text: str, now: datetime) -> str | None:
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
