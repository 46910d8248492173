"""Whether a set of signatures satisfies a policy of the channel: signature policies and implicit ones.

A signer counts once however often it signed, an invalid signature does not count at all, and one identity
fills one place of a rule, as in Fabric.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from executor.audit.fabric.certificates import UntrustedError
from executor.audit.fabric.form import Signed
from executor.audit.fabric.identity import Identity
from executor.audit.fabric.messages import MalformedError, identities, parse, policies, principal
from executor.audit.fabric.organisation import Members

MAX_DEPTH = 50
"""How deep a policy or a configuration is nested at most; the decoder reads no deeper ones."""
MAX_KNOWN = 4096
_ROLE = principal.MSPRole
_KIND = principal.MSPPrincipal


def signers(members: Members, found: Sequence[Signed]) -> list[Identity]:
    """Return who really signed, each once."""
    valid: dict[tuple[str, bytes], Identity] = {}
    for named, message, signature in found:
        try:
            identity = members.identify(named)
        except UntrustedError:
            continue
        key = identity.key
        if key not in valid and identity.signed(message, signature):
            valid[key] = identity
    return list(valid.values())


class Policies:
    """The tree of policies of a channel's configuration."""

    def __init__(self, group: Any, path: str = "Channel", depth: int = 0) -> None:
        if depth > MAX_DEPTH:
            raise MalformedError("the configuration is nested too deep")
        self.path = path
        self.groups = {
            name: Policies(child, f"{path}/{name}", depth + 1) for name, child in sorted(group.groups.items())
        }
        self.own = {name: found.policy for name, found in group.policies.items()}
        self._held: dict[tuple[str, tuple[Identity, ...]], bool] = {}
        """What is known already: the same few signers come again and again."""

    def find(self, name: str) -> "Policies | None":
        """Return the group that holds a policy named by its absolute path or from here; None without one."""
        words = name.split("/")
        if words[0] == "":
            if "/".join(words[1:2]) != self.path.split("/")[0]:
                return None
            words = words[2:]
        place: Policies | None = self
        for word in words[:-1]:
            place = place.groups.get(word) if place else None
        return place if place is not None and words and words[-1] in place.own else None

    def has(self, name: str) -> bool:
        """Whether there is such a policy."""
        return self.find(name) is not None

    def holds(self, name: str, found: Sequence[Identity]) -> bool:
        """Whether these signers satisfy a policy; one that does not exist is satisfied by nobody."""
        asked = (name, tuple(found))
        held = self._held.get(asked)
        if held is None:
            place = self.find(name)
            held = place is not None and place._holds(name.rsplit("/", 1)[-1], found)
            if len(self._held) >= MAX_KNOWN:
                self._held.clear()
            self._held[asked] = held
        return held

    def _holds(self, name: str, found: Sequence[Identity]) -> bool:
        envelope, meta = self.read(name)
        if envelope is not None:
            return satisfies(envelope, found)
        if meta is None:
            return False
        held = sum(group._holds(meta.sub_policy, found) for group in self.groups.values())
        return held >= self.needed(meta.rule)

    def read(self, name: str) -> tuple[Any, Any]:
        """Return a policy of this group as a signature policy or as an implicit one, or as neither."""
        policy = self.own.get(name)
        if policy is not None and policy.type == policies.Policy.SIGNATURE:
            envelope = parse(policies.SignaturePolicyEnvelope, policy.value)
            return (envelope if envelope.version == 0 else None), None
        if policy is not None and policy.type == policies.Policy.IMPLICIT_META:
            return None, parse(policies.ImplicitMetaPolicy, policy.value)
        return None, None

    def items(self) -> Iterator[tuple[str, bytes]]:
        """Iterate over every policy from here on: its path, and what it says."""
        for name, policy in sorted(self.own.items()):
            yield f"/{self.path}/{name}", policy.SerializeToString(deterministic=True)
        for group in self.groups.values():
            yield from group.items()

    def needed(self, rule: int) -> int:
        """How many of its groups have to satisfy an implicit policy of this group."""
        if not self.groups:
            return 0
        kinds = policies.ImplicitMetaPolicy
        return {kinds.ANY: 1, kinds.ALL: len(self.groups)}.get(rule, len(self.groups) // 2 + 1)


def satisfies(envelope: Any, found: Sequence[Identity]) -> bool:
    """Whether signers satisfy a signature policy; one with a rule that means nothing is satisfied by nobody.

    Its version is looked at in the configuration alone: so do peers, and one noted elsewhere counts for them.
    """
    if not _has_meaning(envelope.rule, len(envelope.identities), 0):
        return False
    return _rule(envelope.rule, envelope.identities, found, [False] * len(found))


def _has_meaning(rule: Any, principals: int, depth: int) -> bool:
    if depth > MAX_DEPTH:
        return False
    if rule.WhichOneof("Type") == "n_out_of":
        return all(_has_meaning(inner, principals, depth + 1) for inner in rule.n_out_of.rules)
    return bool(rule.WhichOneof("Type") == "signed_by" and 0 <= rule.signed_by < principals)


def _rule(rule: Any, principals: Any, found: Sequence[Identity], used: list[bool]) -> bool:
    if rule.WhichOneof("Type") == "n_out_of":
        held = 0
        for inner in rule.n_out_of.rules:
            tried = used.copy()
            if _rule(inner, principals, found, tried):
                held += 1
                used[:] = tried
        return bool(held >= rule.n_out_of.n)
    wanted = principals[rule.signed_by]
    for place, identity in enumerate(found):
        if not used[place] and is_principal(identity, wanted):
            used[place] = True
            return True
    return False


def is_principal(identity: Identity, wanted: Any, depth: int = 0) -> bool:
    """Whether an identity is what a policy asks for."""
    kind = wanted.principal_classification
    if kind == _KIND.COMBINED and depth < MAX_DEPTH:
        parts = parse(principal.CombinedPrincipal, wanted.principal).principals
        return bool(parts) and all(is_principal(identity, part, depth + 1) for part in parts)
    if kind == _KIND.ROLE:
        return _has_role(identity, parse(principal.MSPRole, wanted.principal))
    if kind == _KIND.IDENTITY:
        return _is_identity(identity, wanted.principal)
    if kind == _KIND.ORGANIZATION_UNIT:
        unit = parse(principal.OrganizationUnit, wanted.principal)
        is_member = unit.msp_identifier == identity.organisation.msp_id and not identity.refusal
        certified = unit.certifiers_identifier in (b"", identity.certifier)
        return is_member and certified and unit.organizational_unit_identifier in identity.units
    return False


def _has_role(identity: Identity, wanted: Any) -> bool:
    organisation = identity.organisation
    if wanted.msp_identifier != organisation.msp_id:
        return False
    if wanted.role == _ROLE.ADMIN and organisation.is_named_admin(identity):
        return True
    if identity.refusal:
        return False
    if wanted.role == _ROLE.MEMBER:
        return True
    unit = organisation.unit_of.get(_ROLE.MSPRoleType.Name(wanted.role).lower(), "")
    return bool(unit) and unit in identity.units


def _is_identity(identity: Identity, serialized: bytes) -> bool:
    wanted = parse(identities.SerializedIdentity, serialized)
    if wanted.mspid != identity.organisation.msp_id or identity.refusal:
        return False
    try:
        return identity.organisation.identify(wanted.id_bytes).key == identity.key
    except UntrustedError:
        return False
