"""By which rules a channel's transactions counted, over all of its blocks: how few organisations were enough.

A sentence about who would have to collude is only as good as the policies that were in force, each at its
time: the definitions of chaincodes, their collections, the policies of single keys and the configuration.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from executor.audit.fabric.configuration import Configuration
from executor.audit.fabric.endorsement import LIFECYCLE, LIFECYCLE_POLICY, Definitions, application_rule
from executor.audit.fabric.messages import MalformedError, parse, policies
from executor.audit.fabric.signers import Rule, named_rule, signature_rule
from executor.audit.fabric.state import Key, State, Update

_DEFINED = "namespaces/metadata/"
_BEHIND = "namespaces/metadata0"
_PREFIX = "namespaces/"
ADMINS = ("/Channel/Admins", "/Channel/Application/Admins", "/Channel/Orderer/Admins")


@dataclass(frozen=True, slots=True)
class Change:
    """Something that decides whose signatures count, and the block from whose end on it does."""

    block: int
    what: str

    def to_dict(self) -> dict[str, Any]:
        """Return the object."""
        return {"block": self.block, "what": self.what}

    def __str__(self) -> str:
        return f"block {self.block}: {self.what}"


@dataclass(frozen=True, slots=True)
class Weakest:
    """How few organisations were enough at the time when the fewest were."""

    organisations: int
    what: str
    block: int

    def to_dict(self) -> dict[str, Any]:
        """Return the object."""
        return {"organisations": self.organisations, "what": self.what, "from_block": self.block}


@dataclass
class Rules:
    """The policies of a channel, as they come and go."""

    changes: list[Change] = field(default_factory=list)
    weakest: dict[str, Weakest] = field(default_factory=dict)
    """By what they allow: `chaincodes`, `collections`, `keys`, `lifecycle`, `configuration`."""
    _names: set[str] = field(default_factory=set)
    _policies: dict[str, bytes] = field(default_factory=dict)
    _keys: set[bytes] = field(default_factory=set)

    @property
    def fewest(self) -> int | None:
        """How few organisations together could have endorsed what a chaincode never did; None: unknown."""
        found = [self.weakest[kind].organisations for kind in ("chaincodes", "keys") if kind in self.weakest]
        return min(found, default=None)

    def begin(self, block: int, configuration: Configuration, state: State, definitions: Definitions) -> None:
        """Take the rules as they stand; what comes later are changes."""
        self._policies = dict(configuration.policies.items())
        self._names = {name.removeprefix(_DEFINED) for name in state.between(LIFECYCLE, _DEFINED, _BEHIND)}
        self._weigh(block, configuration, definitions, self._names)

    def reconfigure(self, block: int, configuration: Configuration, definitions: Definitions) -> None:
        """Take another configuration."""
        found = dict(configuration.policies.items())
        for path in sorted(self._policies.keys() | found.keys()):
            if self._policies.get(path) != found.get(path):
                how = "removed" if path not in found else "changed" if path in self._policies else "added"
                self.changes.append(Change(block, f"policy {path} {how}"))
        self._policies = found
        self._weigh(block, configuration, definitions, self._names)

    def take(
        self,
        block: int,
        updates: dict[Key, Update],
        configuration: Configuration,
        definitions: Definitions,
    ) -> None:
        """Take what a block leaves: definitions of chaincodes, and policies of keys."""
        defined: set[str] = set()
        for key, update in updates.items():
            if key.namespace == LIFECYCLE:
                name = _defined(key)
                if name:
                    defined.add(name)
            if update.metadata and update.metadata not in self._keys:
                self._keys.add(update.metadata)
                self._weigh_key(block, key, update.metadata)
        if not defined:
            return
        for name in sorted(defined):
            how = "another definition" if name in self._names else "defined"
            self.changes.append(Change(block, f"chaincode {name[:64]} {how}{_described(name, definitions)}"))
        self._names |= defined
        self._weigh(block, configuration, definitions, defined)

    def to_dict(self) -> dict[str, Any]:
        """Return the object of a report."""
        return {
            "weakest": {name: found.to_dict() for name, found in sorted(self.weakest.items())},
            "changes": [change.to_dict() for change in self.changes],
        }

    def _weigh(
        self, block: int, configuration: Configuration, definitions: Definitions, names: set[str]
    ) -> None:
        tree = configuration.policies
        self._note("lifecycle", named_rule(tree, LIFECYCLE_POLICY), LIFECYCLE_POLICY, block)
        for name in ADMINS:
            self._note("configuration", named_rule(tree, name), name, block)
        for name in sorted(names):
            for kind, rule, what in _rules_of(name, configuration, definitions):
                self._note(kind, rule, what, block)

    def _weigh_key(self, block: int, key: Key, raw: bytes) -> None:
        try:
            rule = signature_rule(parse(policies.SignaturePolicyEnvelope, raw))
        except MalformedError:
            return
        self._note("keys", rule, f"a key of {key.namespace[:64]}", block)

    def _note(self, kind: str, rule: Rule, what: str, block: int) -> None:
        fewest, known = rule.fewest, self.weakest.get(kind)
        if fewest is not None and (known is None or fewest < known.organisations):
            self.weakest[kind] = Weakest(fewest, what, block)


def _rules_of(
    name: str, configuration: Configuration, definitions: Definitions
) -> Iterator[tuple[str, Rule, str]]:
    try:
        known = definitions.find(name)
    except MalformedError:
        return
    if known is None:
        return
    yield "chaincodes", application_rule(known.policy, configuration), f"chaincode {name[:64]}"
    for collection, raw in sorted(known.collections.items()):
        if raw != known.policy:
            what = f"collection {collection[:64]} of {name[:64]}"
            yield "collections", application_rule(raw, configuration), what


def _defined(key: Key) -> str:
    """Name the chaincode that a key of the lifecycle defines; empty where it defines none."""
    if key.collection or not isinstance(key.name, str) or not key.name.startswith(_PREFIX):
        return ""
    words = key.name.split("/")
    return words[2] if len(words) > 2 else ""


def _described(name: str, definitions: Definitions) -> str:
    try:
        known = definitions.find(name)
    except MalformedError as error:
        return f": {error}"
    return f", version {known.version[:40]}" if known is not None else ""
