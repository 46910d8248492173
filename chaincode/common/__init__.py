"""What the four chaincodes share: the caller, the rules of access, records, pages, calls and events."""

from chaincode.common.caller import STAFF, CallerIdentity, Role, caller_of
from chaincode.common.contract import LedgerContract, allow
from chaincode.common.pages import DEFAULT_PAGE, all_stored, history_page, keyed_page, page, stored_page
from chaincode.common.records import provenance, read, read_many, time_text, write

__all__ = [
    "DEFAULT_PAGE",
    "STAFF",
    "CallerIdentity",
    "LedgerContract",
    "Role",
    "all_stored",
    "allow",
    "caller_of",
    "history_page",
    "keyed_page",
    "page",
    "provenance",
    "read",
    "read_many",
    "stored_page",
    "time_text",
    "write",
]
