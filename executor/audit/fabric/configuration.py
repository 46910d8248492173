"""The channel's configuration in force, and who may change it.

An update names what it read and what it writes. Every element it changes must be one version further, and the
signatures on the update must satisfy the policy that the element itself names (its `mod_policy`). The new
configuration must be exactly the old one with those elements replaced.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from cryptography import x509

from executor.audit.fabric.certificates import fingerprint
from executor.audit.fabric.form import Signed
from executor.audit.fabric.messages import (
    MalformedError,
    common,
    configtx,
    configuration,
    msp_config,
    parse,
)
from executor.audit.fabric.orderers import Ordering
from executor.audit.fabric.organisation import Members, Organisation
from executor.audit.fabric.policy import MAX_DEPTH, Policies, signers
from protocol.values import dataclass

ROOT = "Channel"
BLOCK_VALIDATION = "/Channel/Orderer/BlockValidation"
X509 = 0
UNNAMED = "Admins"
"""The policy of elements that name none."""


class UnauthorisedError(Exception):
    """A configuration that its update does not lead to, or an update that nobody entitled signed."""


class Configuration:
    """A channel's configuration: organisations, policies, orderers."""

    def __init__(self, channel: str, config: Any) -> None:
        self.channel = channel
        self.config = config
        group = config.channel_group
        self.sequence = int(config.sequence)
        self.policies = Policies(group)
        self._check_capabilities(group)
        found = dict(_organisations(group))
        self.members = Members(found.values())
        self.application = {
            name: organisation.msp_id
            for path, organisation in found.items()
            for kind, name in [path.split("/")]
            if kind == "Application"
        }
        """The MSP id of each group of the application."""
        self.ordering = Ordering.read(
            _value(group, "Orderer", "ConsensusType"),
            _value(group, "Orderer", "Orderers"),
            sorted(found[path].msp_id for path in found if path.startswith("Orderer/")),
        )

    @classmethod
    def from_envelope(cls, envelope: Any) -> "Configuration":
        """Read the configuration that a configuration transaction carries."""
        payload = parse(common.Payload, envelope.payload)
        channel = parse(common.ChannelHeader, payload.header.channel_header)
        if channel.type != common.CONFIG:
            raise MalformedError("a configuration block holds another kind of transaction")
        found = parse(configtx.ConfigEnvelope, payload.data)
        return cls(channel.channel_id, found.config)

    def check_update(self, envelope: Any) -> "Configuration":
        """Return the configuration that follows, if those entitled signed the way to it; raise otherwise."""
        following = Configuration.from_envelope(envelope)
        found = parse(configtx.ConfigEnvelope, parse(common.Payload, envelope.payload).data)
        if following.channel != self.channel:
            raise UnauthorisedError(f"it configures channel {following.channel[:64]!r}")
        if following.sequence != self.sequence + 1:
            raise UnauthorisedError(f"it is number {following.sequence} after {self.sequence}")
        update = _update(found.last_update)
        if _normal(self._updated(update)) != _normal(following.config.channel_group):
            raise UnauthorisedError("its update leads to another configuration")
        if fault := following.ordering_fault:
            raise UnauthorisedError(fault)
        return following

    @property
    def ordering_fault(self) -> str:
        """Why blocks would not be signed by those who should; empty where nothing is wrong."""
        orderers = self.policies.groups.get("Orderer")
        return self.ordering.fault(orderers.own.get("BlockValidation") if orderers else None)

    @property
    def organisations(self) -> list[Organisation]:
        """Every organisation, by MSP id."""
        return [found for _, found in sorted(self.members.organisations.items())]

    def _updated(self, update: Any) -> Any:
        """Apply an update whose every change is signed for."""
        said = parse(configtx.ConfigUpdate, update.config_update)
        if said.channel_id != self.channel:
            raise UnauthorisedError(f"its update is for channel {said.channel_id[:64]!r}")
        current = dict(_elements(self.config.channel_group))
        read, written = dict(_elements(said.read_set)), dict(_elements(said.write_set))
        for place, element in read.items():
            if place not in current or current[place].version != element.version:
                raise UnauthorisedError(f"its update read another version of {place}")
        changed = {
            place: element
            for place, element in written.items()
            if place not in read or read[place].version != element.version
        }
        self._check_signed(update, changed, current)
        return _built(Place("group", (ROOT,)), {**current, **changed}, 0)

    def _check_signed(self, update: Any, changed: dict["Place", Any], current: dict["Place", Any]) -> None:
        if not changed:
            raise UnauthorisedError("its update changes nothing")
        signatures = [
            Signed(
                parse(common.SignatureHeader, item.signature_header).creator,
                item.signature_header + update.config_update,
                item.signature,
            )
            for item in update.signatures
        ]
        found = signers(self.members, signatures)
        for place, element in sorted(changed.items()):
            before = current.get(place)
            if before is None:
                if element.version != 0:
                    raise UnauthorisedError(f"{place} is new and has version {element.version}")
                continue
            if element.version != before.version + 1:
                raise UnauthorisedError(f"{place} goes from version {before.version} to {element.version}")
            if not self._policies_at(place, before.mod_policy).holds(before.mod_policy, found):
                raise UnauthorisedError(f"the signatures do not allow a change of {place}")

    def _policies_at(self, place: "Place", policy: str) -> Policies:
        """The group from which an element's policy is named: its own for a group, else the one it is in."""
        found = self.policies
        if not policy.startswith("/"):
            for word in place.path[1:] if place.kind == "group" else place.path[1:-1]:
                if word not in found.groups:
                    raise UnauthorisedError(f"{place} has no policy {policy[:64]!r}")
                found = found.groups[word]
        return found

    def _check_capabilities(self, group: Any) -> None:
        """Refuse channels whose rules are older than those that are checked here."""
        found = parse(configuration.Capabilities, _value(group, "Capabilities")).capabilities
        applied = parse(configuration.Capabilities, _value(group, "Application", "Capabilities")).capabilities
        if not {"V3_0", "V2_0"} & set(found) or not {"V2_0", "V2_5"} & set(applied):
            raise MalformedError("the channel lacks the capabilities V2_0 of Fabric, and older rules hold")


class Place(NamedTuple):
    """Where an element of a configuration stands."""

    kind: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.kind} /{'/'.join(self.path)}"


@dataclass(frozen=True)
class RootSet:
    """The root certificates of each organisation, as somebody knows them from elsewhere.

    One organisation's root vouches for no other: else it could make a channel in which it is all of them.
    """

    fingerprints: Mapping[str, frozenset[bytes]]
    """By MSP id."""

    @classmethod
    def of(cls, roots: Mapping[str, Iterable[x509.Certificate]]) -> "RootSet":
        """Return the set of some certificates, by MSP id."""
        return cls({msp_id: frozenset(map(fingerprint, found)) for msp_id, found in roots.items()})

    def missing(self, found: Configuration) -> list[str]:
        """Return the organisations of a configuration with a root that is not known as theirs."""
        return [
            organisation.msp_id
            for organisation in found.organisations
            if not organisation.roots
            or not self.fingerprints.get(organisation.msp_id, frozenset()).issuperset(
                map(fingerprint, organisation.roots)
            )
        ]


def _organisations(group: Any) -> Iterator[tuple[str, Organisation]]:
    """Return every organisation; one that is in both groups must be the same in both."""
    known: dict[str, tuple[Any, Organisation]] = {}
    for kind in ("Application", "Orderer"):
        for name, child in sorted(_group(group, kind).groups.items()):
            config = parse(msp_config.MSPConfig, _value(child, "MSP"))
            if config.type != X509:
                raise MalformedError(f"{name[:64]!r} is not an organisation of X.509 certificates")
            made = Organisation(config)
            before, organisation = known.setdefault(made.msp_id, (config, made))
            if before != config:
                raise MalformedError(f"there are two versions of {made.msp_id[:64]!r}")
            yield f"{kind}/{name}", organisation


# Asking a map of messages for a name that it lacks would add the name, and change what is compared.
def _group(group: Any, name: str) -> Any:
    if name not in group.groups:
        raise MalformedError(f"the configuration has no group {name}")
    return group.groups[name]


def _value(group: Any, *path: str) -> bytes:
    for name in path[:-1]:
        group = _group(group, name)
    return bytes(group.values[path[-1]].value) if path[-1] in group.values else b""


def _update(envelope: Any) -> Any:
    payload = parse(common.Payload, envelope.payload)
    if parse(common.ChannelHeader, payload.header.channel_header).type != common.CONFIG_UPDATE:
        raise UnauthorisedError("it holds no update")
    return parse(configtx.ConfigUpdateEnvelope, payload.data)


def _elements(group: Any, path: tuple[str, ...] = (ROOT,), depth: int = 0) -> Iterator[tuple[Place, Any]]:
    if depth > MAX_DEPTH:
        raise MalformedError("the configuration is nested too deep")
    yield Place("group", path), group
    for name, child in group.groups.items():
        yield from _elements(child, (*path, name), depth + 1)
    for name, value in group.values.items():
        yield Place("value", (*path, name)), value
    for name, policy in group.policies.items():
        yield Place("policy", (*path, name)), policy


def _built(place: Place, elements: dict[Place, Any], depth: int) -> Any:
    """Put a configuration together from its elements; a group says what belongs to it."""
    if depth > MAX_DEPTH:
        raise MalformedError("the configuration is nested too deep")
    group = elements[place]
    made = configtx.ConfigGroup(version=group.version, mod_policy=group.mod_policy or UNNAMED)
    for kind, names in (("value", group.values), ("policy", group.policies), ("group", group.groups)):
        for name in names:
            inner = Place(kind, (*place.path, name))
            if inner not in elements:
                raise UnauthorisedError(f"{inner} is missing")
            if kind == "group":
                made.groups[name].CopyFrom(_built(inner, elements, depth + 1))
            else:
                copied = (made.values if kind == "value" else made.policies)[name]
                copied.CopyFrom(elements[inner])
                copied.mod_policy = copied.mod_policy or UNNAMED
    return made


def _normal(group: Any) -> bytes:
    """One byte string for each configuration, whatever the order of its names."""
    return bytes(group.SerializeToString(deterministic=True))
