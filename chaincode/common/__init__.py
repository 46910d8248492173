"""What the four chaincodes share: the caller, the rules of access, records, pages, calls and events."""

from chaincode.common.caller import Caller, Role, caller_of
from chaincode.common.calls import call_json
from chaincode.common.contract import LedgerContract, allow
from chaincode.common.paging import DEFAULT_PAGE, history_page, page
from chaincode.common.records import provenance, read, time_text, write

__all__ = [
    "DEFAULT_PAGE",
    "Caller",
    "LedgerContract",
    "Role",
    "allow",
    "call_json",
    "caller_of",
    "history_page",
    "page",
    "provenance",
    "read",
    "time_text",
    "write",
]
