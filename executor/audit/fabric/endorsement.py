"""Whether those who endorsed a transaction may change what it changes.

The policy of a key goes before the policy of its collection, and that before the policy of its chaincode,
which is what the organisations committed as the chaincode's definition. Every key that a transaction changes
is looked at, in every chaincode that it changes anything of.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from executor.audit.fabric.configuration import Configuration
from executor.audit.fabric.form import InvalidError, Verdict
from executor.audit.fabric.identity import Identity
from executor.audit.fabric.messages import (
    MalformedError,
    collection,
    definition,
    lifecycle,
    parse,
    policies,
    policy,
)
from executor.audit.fabric.policy import MAX_KNOWN, satisfies
from executor.audit.fabric.rwset import NamespaceSet
from executor.audit.fabric.signers import NOBODY, Rule, named_rule, signature_rule
from executor.audit.fabric.state import Key, State
from executor.audit.fabric.transaction import Transaction

LIFECYCLE = "_lifecycle"
LIFECYCLE_POLICY = "/Channel/Application/LifecycleEndorsement"
IMPLICIT = "_implicit_org_"
PLUGIN = "vscc"

Check = Callable[[Sequence[Identity]], bool]


@dataclass(frozen=True)
class Definition:
    """What the organisations committed about a chaincode: its policy and its collections' own."""

    version: str
    policy: bytes
    collections: dict[str, bytes]
    """By collection its policy, which is the chaincode's where it has none."""


class Definitions:
    """The chaincodes of the channel, from what the lifecycle wrote."""

    def __init__(self, state: State) -> None:
        self._state = state
        self._known: dict[str, Definition | None] = {}

    def forget(self) -> None:
        """Read them anew: the lifecycle has written."""
        self._known.clear()

    def find(self, name: str) -> Definition | None:
        """Return the definition of a chaincode; None while there is none."""
        if name not in self._known:
            self._known[name] = self._read(name)
        return self._known[name]

    def _read(self, name: str) -> Definition | None:
        kept = self._state.value(Key(LIFECYCLE, "", f"namespaces/metadata/{name}"))
        if kept is None or parse(lifecycle.StateMetadata, kept).datatype != "ChaincodeDefinition":
            return None
        rules = parse(definition.ChaincodeValidationInfo, self._field(name, "ValidationInfo"))
        served = parse(definition.ChaincodeEndorsementInfo, self._field(name, "EndorsementInfo"))
        if not rules.validation_plugin:
            return None
        if rules.validation_plugin != PLUGIN:
            raise MalformedError(f"{name} is validated by {rules.validation_plugin[:40]!r}, unknown here")
        package = parse(collection.CollectionConfigPackage, self._field(name, "Collections"))
        own = [found.static_collection_config for found in package.config]
        return Definition(
            served.version,
            rules.validation_parameter,
            {
                found.name: found.endorsement_policy.SerializeToString() or rules.validation_parameter
                for found in own
            },
        )

    def _field(self, name: str, part: str) -> bytes:
        kept = self._state.value(Key(LIFECYCLE, "", f"namespaces/fields/{name}/{part}"))
        return bytes(parse(lifecycle.StateData, kept or b"").Bytes)


@dataclass
class BlockPolicies:
    """The policies of keys that earlier transactions of a block have changed."""

    changed: set[Key] = field(default_factory=set)


class Endorsements:
    """Judges the endorsements of transactions against the policies in force."""

    def __init__(self, state: State) -> None:
        self._state = state
        self.definitions = Definitions(state)
        self._counted: dict[tuple[Configuration, str, tuple[Identity, ...]], tuple[str, ...]] = {}
        self._policies: dict[tuple[Configuration, str], Check] = {}
        """By chaincode, the check of its policy under a configuration."""

    def check(self, found: Transaction, configuration: Configuration, block: BlockPolicies) -> None:
        """Return if every change is endorsed as its policies ask; raise with the verdicts of peers.

        A peer judges the chaincodes in an order that nobody can foretell and notes the first fault, so all
        of them are found.
        """
        parts: dict[str, NamespaceSet | None] = {found.chaincode: None}
        for own in found.sets:
            if own.name == found.chaincode or own.has_changes:
                parts[own.name] = own
        faults: list[InvalidError] = []
        for name, part in parts.items():
            try:
                default = self._policy_of(name, configuration)
                self._check_part(name, part, default, found.endorsers, configuration, block)
            except InvalidError as error:
                faults.append(error)
                continue
            if part is not None and (part.metadata or part.hashed_metadata):
                block.changed.update(change.key for change in (*part.metadata, *part.hashed_metadata))
        if faults:
            faults[0].others = frozenset(fault.verdict for fault in faults)
            raise faults[0]

    def organisations(self, found: Transaction, configuration: Configuration) -> tuple[str, ...]:
        """Return the organisations whose endorsement counts for the chaincode that was called."""
        asked = (configuration, found.chaincode, tuple(found.endorsers))
        counted = self._counted.get(asked)
        if counted is None:
            counted = self.rule_of(found.chaincode, configuration).counted(found.endorsers)
            if len(self._counted) >= MAX_KNOWN:
                self._counted.clear()
            self._counted[asked] = counted
        return counted

    def rule_of(self, name: str, configuration: Configuration) -> Rule:
        """Return who can endorse what a chaincode does."""
        if name == LIFECYCLE:
            return named_rule(configuration.policies, LIFECYCLE_POLICY)
        known = self.definitions.find(name)
        return NOBODY if known is None else application_rule(known.policy, configuration)

    def forget(self) -> None:
        """Read definitions anew: the lifecycle has written."""
        self.definitions.forget()
        self._counted.clear()
        self._policies.clear()

    def _policy_of(self, name: str, configuration: Configuration) -> Check:
        known = self._policies.get((configuration, name))
        if known is None:
            known = self._read_policy(name, configuration)
            if len(self._policies) >= MAX_KNOWN:
                self._policies.clear()
            self._policies[configuration, name] = known
        return known

    def _read_policy(self, name: str, configuration: Configuration) -> Check:
        if name == LIFECYCLE:
            if configuration.policies.has(LIFECYCLE_POLICY):
                return _named(LIFECYCLE_POLICY, configuration)
            return _members(configuration.application.values(), len(configuration.application) // 2 + 1)
        known = self.definitions.find(name)
        if known is None or not known.policy:
            raise InvalidError(Verdict.INVALID_CHAINCODE, f"{name[:64]!r} is no chaincode of the channel")
        return _application(known.policy, configuration)

    def _check_part(  # noqa: PLR0917
        self,
        name: str,
        part: NamespaceSet | None,
        default: Check,
        endorsers: Sequence[Identity],
        configuration: Configuration,
        block: BlockPolicies,
    ) -> None:
        held: dict[str, bool] = {}
        by_key = False
        for key in part.changes if part is not None else ():
            if key in block.changed:
                raise _refused(f"the policy of {_shown(key)} changed earlier in this block")
            entry = self._state.get(key)
            if entry is not None and entry.metadata:
                if not satisfies(parse(policies.SignaturePolicyEnvelope, entry.metadata), endorsers):
                    raise _refused(f"{_names(endorsers)} do not satisfy the policy of {_shown(key)}")
                by_key = True
                continue
            self._check_default(name, key.collection, default, endorsers, configuration, held)
        if not held and not by_key and not default(endorsers):
            raise _refused(f"{_names(endorsers)} do not satisfy the policy of {name}")

    def _check_default(  # noqa: PLR0917
        self,
        name: str,
        collected: str,
        default: Check,
        endorsers: Sequence[Identity],
        configuration: Configuration,
        held: dict[str, bool],
    ) -> None:
        if collected in held:
            return
        check = self._collection_policy(name, collected, configuration) if collected else default
        if not check(endorsers):
            raise _refused(f"{_names(endorsers)} do not satisfy the policy of {name} {collected}".rstrip())
        held[collected] = True

    def _collection_policy(self, name: str, collected: str, configuration: Configuration) -> Check:
        if collected.startswith(IMPLICIT):
            wanted = collected.removeprefix(IMPLICIT)
            for group, msp_id in configuration.application.items():
                if msp_id == wanted:
                    policy_name = f"/Channel/Application/{group}/Endorsement"
                    if configuration.policies.has(policy_name):
                        return _named(policy_name, configuration)
                    return _members([msp_id], 1)
            raise _refused(f"{wanted[:64]!r} is no organisation of the application")
        known = self.definitions.find(name)
        if known is None or collected not in known.collections:
            raise _refused(f"{name} has no collection {collected[:64]!r}")
        return _application(known.collections[collected], configuration)


@lru_cache(maxsize=64)
def _policy(raw: bytes) -> Any:
    return parse(policy.ApplicationPolicy, raw)


def _application(raw: bytes, configuration: Configuration) -> Check:
    found = _policy(raw)
    if found.WhichOneof("Type") == "channel_config_policy_reference":
        return _named(found.channel_config_policy_reference, configuration)
    envelope = found.signature_policy
    return lambda endorsers: satisfies(envelope, endorsers)


def application_rule(raw: bytes, configuration: Configuration) -> Rule:
    """Read who can satisfy a policy of a definition."""
    found = _policy(raw)
    if found.WhichOneof("Type") == "channel_config_policy_reference":
        return named_rule(configuration.policies, found.channel_config_policy_reference)
    return signature_rule(found.signature_policy)


def _named(name: str, configuration: Configuration) -> Check:
    return lambda endorsers: configuration.policies.holds(name, endorsers)


def _members(organisations: Iterable[str], least: int) -> Check:
    """Any member of so many of these organisations: what holds where the configuration has no policy."""
    wanted = frozenset(organisations)

    def check(endorsers: Sequence[Identity]) -> bool:
        found = {endorser.organisation.msp_id for endorser in endorsers if not endorser.refusal}
        return len(found & wanted) >= least

    return check


def _refused(why: str) -> InvalidError:
    return InvalidError(Verdict.ENDORSEMENT_POLICY_FAILURE, why)


def _names(endorsers: Sequence[Identity]) -> str:
    return ", ".join(sorted({found.organisation.msp_id for found in endorsers})) or "no valid endorsements"


def _shown(key: Key) -> str:
    name: Any = key.name if isinstance(key.name, str) else key.name.hex()
    return f"{key.namespace} {str(name)[:80]!r}"
