"""Callers: each kind of record is written by those whose role allows it, through the chaincode it belongs to.

The roles are those that the chaincodes' functions name (`@allow`); a record that several functions write is
open to the roles of all of them, and what one of them asks beyond is among the rules of its kind.
"""

from executor.audit.findings import Findings
from executor.audit.replay.view import EXECUTION, KINDS, ORCHESTRATION, View, Written

ADMIN, SCIENTIST, NODE, AUDITOR = "admin", "data-scientist", "node", "auditor"
STAFF = (SCIENTIST, ADMIN)
SENTENCES = {
    "callers": "each record was written by a member whose role allows it, in a call of its own chaincode"
}
ROLES: dict[str, tuple[str, ...]] = {
    "image": STAFF,
    "imagename": (SCIENTIST,),
    "rebuild": (*STAFF, AUDITOR),
    "process": (*STAFF, NODE),
    "brief": (*STAFF, NODE),
    "openprocesses": (SCIENTIST,),
    "progress": (NODE,),
    "acceptance": STAFF,
    "asks": (*STAFF, NODE),
    "ask": (*STAFF, NODE),
    "agreement": STAFF,
    "change": (*STAFF, NODE),
    "absence": STAFF,
    "departure": STAFF,
    "abort": STAFF,
    "task": (NODE, *STAFF),
    "initial": STAFF,
    "initialtree": STAFF,
    "challenge": (*STAFF, AUDITOR),
    "openchallenges": (*STAFF, AUDITOR),
    "answer": (*STAFF, NODE),
    "verdict": (AUDITOR,),
    "model": (NODE, *STAFF),
    "access": (NODE, *STAFF),
    "member": (NODE, *STAFF),
    "requests": STAFF,
    "request": STAFF,
    "decision": STAFF,
}
"""By kind of key; what is not here is written by nodes alone."""
THROUGH = {"progress": EXECUTION, "initial": ORCHESTRATION, "initialtree": ORCHESTRATION}
"""The kinds that one chaincode has another write, with the one that the client called."""


def check_caller(findings: Findings, view: View, item: Written) -> None:
    """The client has a role that may write such a record, and called the chaincode that it belongs to."""
    kind, found = item.key.kind, view.committed.transaction
    role, wanted = found.creator.attributes.get("role", ""), THROUGH.get(kind, KINDS[kind][0])
    findings.count("callers", 2)
    if role not in ROLES.get(kind, (NODE,)):
        findings.fail("callers", f"{item.key} was written in the role {role[:32]!r}", view.where)
    if found.chaincode != wanted:
        what = f"{item.key} was written in a call of {found.chaincode[:64]}, not of {wanted}"
        findings.fail("callers", what, view.where)
