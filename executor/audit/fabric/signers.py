"""Who can satisfy a policy: the principals that it names, and how few organisations are enough."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from executor.audit.fabric.identity import Identity
from executor.audit.fabric.messages import MalformedError, identities, parse, principal
from executor.audit.fabric.policy import MAX_DEPTH, Policies, is_principal
from protocol.values import dataclass

MAX_TRIED = 14
"""Among how many organisations every choice is tried, where the parts of a policy share some."""
_KIND = principal.MSPPrincipal


@dataclass(frozen=True, eq=False)
class Signer:
    """One place of a policy: somebody of an organisation."""

    msp_id: str
    wanted: Any


@dataclass(frozen=True, eq=False)
class Rule:
    """So many of some parts."""

    least: int
    parts: Sequence["Signer | Rule"]

    @property
    def signers(self) -> Iterator[Signer]:
        """Every place of the policy."""
        for part in self.parts:
            if isinstance(part, Signer):
                yield part
            else:
                yield from part.signers

    @property
    def organisations(self) -> frozenset[str]:
        """Whoever has a place in it."""
        return frozenset(signer.msp_id for signer in self.signers)

    def counted(self, found: Sequence[Identity]) -> tuple[str, ...]:
        """Return the organisations of those signers who fill a place: no revoked member, no other role."""
        places = list(self.signers)
        counted = {
            identity.organisation.msp_id
            for identity in found
            if any(is_principal(identity, place.wanted) for place in places)
        }
        return tuple(sorted(counted))

    def holds_for(self, organisations: frozenset[str]) -> bool:
        """Whether these organisations together satisfy it, each with as many signers as it likes."""
        held = sum(
            part.msp_id in organisations if isinstance(part, Signer) else part.holds_for(organisations)
            for part in self.parts
        )
        return held >= self.least

    @property
    def fewest(self) -> int | None:
        """The fewest organisations that satisfy it together, never more than it takes; None if nobody can."""
        if self.least <= 0:
            return 0
        sizes = sorted(
            size
            for part in self.parts
            if (size := 1 if isinstance(part, Signer) else part.fewest) is not None
        )
        if len(sizes) < self.least:
            return None
        names = [_organisations(part) for part in self.parts]
        if sum(map(len, names)) == len(self.organisations):
            return sum(sizes[: self.least])
        if len(self.organisations) > MAX_TRIED:
            return sizes[self.least - 1]
        ordered = sorted(self.organisations)
        tried = (
            size
            for size in range(len(ordered) + 1)
            if any(self.holds_for(frozenset(some)) for some in combinations(ordered, size))
        )
        return next(tried, None)


NOBODY = Rule(1, ())


def signature_rule(envelope: Any) -> Rule:
    """Read who can satisfy a signature policy."""
    return Rule(1, (_part(envelope.rule, envelope.identities, 0),))


def named_rule(policies: Policies, name: str) -> Rule:
    """Read who can satisfy a policy of the configuration; nobody can satisfy one that does not exist."""
    place = policies.find(name)
    return NOBODY if place is None else _own(place, name.rsplit("/", 1)[-1], 0)


def _own(place: Policies, name: str, depth: int) -> Rule:
    envelope, meta = place.read(name)
    if envelope is not None:
        return signature_rule(envelope)
    if meta is None or depth > MAX_DEPTH:
        return NOBODY
    groups = place.groups.values()
    return Rule(place.needed(meta.rule), tuple(_own(group, meta.sub_policy, depth + 1) for group in groups))


def _part(rule: Any, principals: Any, depth: int) -> Signer | Rule:
    kind = rule.WhichOneof("Type")
    if depth > MAX_DEPTH:
        return NOBODY
    if kind == "n_out_of":
        parts = tuple(_part(inner, principals, depth + 1) for inner in rule.n_out_of.rules)
        return Rule(rule.n_out_of.n, parts)
    if kind != "signed_by" or not 0 <= rule.signed_by < len(principals):
        return NOBODY
    wanted = principals[rule.signed_by]
    return Signer(_organisation(wanted), wanted)


def _organisation(wanted: Any) -> str:
    """Name the organisation that a principal belongs to; empty where it is nobody's."""
    kind, raw = wanted.principal_classification, wanted.principal
    try:
        if kind == _KIND.ROLE:
            return str(parse(principal.MSPRole, raw).msp_identifier)
        if kind == _KIND.ORGANIZATION_UNIT:
            return str(parse(principal.OrganizationUnit, raw).msp_identifier)
        if kind == _KIND.IDENTITY:
            return str(parse(identities.SerializedIdentity, raw).mspid)
        if kind == _KIND.COMBINED:
            parts = parse(principal.CombinedPrincipal, raw).principals
            return _organisation(parts[0]) if parts else ""
    except MalformedError:
        pass
    return ""


def _organisations(part: Signer | Rule) -> frozenset[str]:
    return frozenset((part.msp_id,)) if isinstance(part, Signer) else part.organisations
