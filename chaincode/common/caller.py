"""Who calls: organisation, role and node, from the certificate that signed the proposal and nothing else."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from chaincode.shim import Context
from protocol.errors import AccessError
from protocol.identifiers import parse_node, parse_organisation


class Role(StrEnum):
    """The Fabric CA attribute `role`."""

    ADMIN = "admin"
    DATA_SCIENTIST = "data-scientist"
    NODE = "node"
    AUDITOR = "auditor"


STAFF = (Role.DATA_SCIENTIST, Role.ADMIN)
"""Who acts for an organisation."""


@dataclass(frozen=True, slots=True)
class CallerIdentity:
    """A verified identity; `node` is the learning node it acts for, empty unless its role is node."""

    organisation: str
    role: Role
    node: str
    identity: str

    def need_role(self, roles: Collection[Role]) -> None:
        """Refuse a caller whose role is not one of these."""
        if self.role not in roles:
            wanted = " or ".join(roles)
            raise AccessError("ACCESS_ROLE", f"{self.identity} has role {self.role}, not {wanted}")

    def need_organisation(self, organisation: str) -> None:
        """Refuse a caller of any other organisation."""
        if self.organisation != organisation:
            raise AccessError("ACCESS_ORGANISATION", f"{self.organisation} may not act for {organisation}")

    def need_member(self, consortium: Collection[str]) -> None:
        """Refuse a caller whose organisation is not in the consortium."""
        if self.organisation not in consortium:
            raise AccessError("ACCESS_ORGANISATION", f"{self.organisation} is not in the consortium")

    def need_node(self, node: str, organisation: str) -> None:
        """Refuse every caller but this node of this organisation."""
        self.need_organisation(organisation)
        if self.node != node:
            raise AccessError("ACCESS_NODE", f"{self.node or self.identity} may not act for {node}")


def caller_of(ctx: Context) -> CallerIdentity:
    """Read the caller from the certificate; one that has expired or has no known role is nobody."""
    creator = ctx.creator
    # The peer compares with its own clock; here the client's claim must at least not contradict itself.
    if ctx.time > creator.certificate.not_valid_after_utc:
        raise AccessError("ACCESS_EXPIRED", f"the certificate of {creator.name[:64]} had expired by then")
    found = creator.attributes.get("role", "")
    try:
        role = Role(found)
    except ValueError:
        raise AccessError(
            "ACCESS_ROLE", f"the certificate of {creator.name[:64]} has no role, or one unknown here"
        ) from None
    node = parse_node(creator.attributes.get("node", "")) if role is Role.NODE else ""
    return CallerIdentity(parse_organisation(creator.msp_id), role, node, creator.name[:64])
