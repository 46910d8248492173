"""One step of a process: which image runs, how often, with which parameters, on which node."""

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Any, Self

from protocol.agreement.image import ImagePin
from protocol.agreement.step_kind import StepKind, check_options, read_kind
from protocol.canonical import MAX_INTEGER, Record
from protocol.digest import Digest
from protocol.errors import IdentifierError, ProcessError
from protocol.fields import AgreementFields
from protocol.identifiers import parse_image_name, parse_image_version, parse_node
from protocol.trees.limits import (
    FIRST_FORMAT,
    FORMAT_MAX_FEATURES,
    FORMAT_MAX_INTERNAL,
    LATEST_FORMAT,
    TreeLimits,
)
from protocol.values import dataclass

VERSION = 2
"""The version of specifications that are written; version 1 is read."""
MAX_TREES = 10_000
MAX_ITERATIONS = 100_000
MAX_OPTION_BYTES = 1 << 16

PIN = ("image_id", "manifest_digest")
_COUNTS = {"n_new": 0, "n_max": 1, "n_share": 0}
"""The counts of trees, each with the least that it may be in a step of some kind."""
AGREED = (*_COUNTS, "seed", "limits", "schema_digest", "options")
"""The fields of parameters with every default written out."""


@dataclass(frozen=True, slots=True)
class StepParameters:
    """What a node does in each iteration of a step.

    `options` is for the image to understand (ranking, defence, how to FIT); the ledger only commits to it,
    but for what a step that does not learn has to state.
    """

    n_new: int
    n_max: int
    n_share: int
    seed: int
    limits: TreeLimits
    schema_digest: Digest
    options: Mapping[str, Record] = field(default_factory=dict)

    @classmethod
    def from_dict(cls, record: object) -> Self:
        """Accept a record of parameters, or raise."""
        needed = (*_COUNTS, "seed", "limits", "schema_digest")
        found = AgreementFields(record, "parameters", needed, ("options",))
        counts = {name: found.whole(name, lowest, MAX_TREES) for name, lowest in _COUNTS.items()}
        if counts["n_share"] > counts["n_max"]:
            raise ProcessError(
                "PROCESS_VALUE", f"n_share {counts['n_share']} is more than n_max {counts['n_max']}"
            )
        seed = found.whole("seed", 0, MAX_INTEGER)
        options = _options(found)
        digest = found.digest("schema_digest")
        return cls(
            **counts, seed=seed, limits=_limits(found["limits"]), schema_digest=digest, options=options
        )

    def to_dict(self) -> dict[str, Record]:
        """Return the record with every default written out."""
        return {
            "n_new": self.n_new,
            "n_max": self.n_max,
            "n_share": self.n_share,
            "seed": self.seed,
            "limits": self.limits.to_dict(),
            "schema_digest": str(self.schema_digest),
            "options": dict(self.options),
        }

    def in_format(self, number: int, kind: str) -> "StepParameters":
        """Return the parameters with limits that name the process's estimator format and kind."""
        return replace(self, limits=replace(self.limits, format=number, kind=kind))

    def overridden(self, changes: Mapping[str, Any]) -> "StepParameters":
        """Return the parameters with a node's own counts and options; the rest all nodes share."""
        merged = {**self.to_dict(), **changes, "options": {**self.options, **changes.get("options", {})}}
        return StepParameters.from_dict(merged)


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of a composite process, of an image version and parameters."""

    name: str
    kind: StepKind
    image_name: str
    image_version: str
    iterations: int
    synchronous: bool
    parameters: StepParameters
    overrides: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    pin: ImagePin | None = None
    """What the image version was when the process was proposed; absent in version 1, and in a draft."""

    @classmethod
    def from_dict(cls, record: object, version: int = VERSION) -> Self:
        """Accept a record of a step of a specification's version, or raise; defaults are filled in."""
        optional = {"kind", "iterations", "synchronous", "overrides"}
        found = AgreementFields(record, "step", ("name", "image", "parameters"), optional)
        image = AgreementFields(found["image"], "image", ("name", "version"), PIN if version > 1 else ())
        kind = read_kind(found.get("kind", StepKind.ITERATIVE.value))
        parameters = StepParameters.from_dict(found["parameters"])
        step = cls(
            _name(found["name"]),
            kind,
            parse_image_name(image["name"]),
            parse_image_version(image["version"]),
            _iterations(found, kind),
            found.flag("synchronous", default=True),
            parameters,
            _overrides(found.get("overrides", {}), parameters),
            _pin(image),
        )
        step.check(version)
        return step

    def check(self, version: int) -> None:
        """Refuse parameters that do not fit the step's kind, of all nodes or of one."""
        for node in (None, *self.overrides):
            agreed = self.parameters if node is None else self.parameters_of(node)
            place = self.name if node is None else f"{self.name} of {node}"
            _check_counts(place, self.kind, agreed, version)
            check_options(self.kind, agreed.options, agreed.limits.n_features)

    def to_dict(self, version: int = VERSION) -> dict[str, Record]:
        """Return the record with every default written out."""
        return {
            "name": self.name,
            "kind": self.kind.value,
            "image": self._image(version),
            "iterations": self.iterations,
            "synchronous": self.synchronous,
            "parameters": self.parameters.to_dict(),
            "overrides": {node: dict(changes) for node, changes in self.overrides.items()},
        }

    def _image(self, version: int) -> dict[str, Record]:
        image: dict[str, Record] = {"name": self.image_name, "version": self.image_version}
        if version > 1:
            image |= dict.fromkeys(PIN) if self.pin is None else self.pin.to_dict()
        return image

    def parameters_of(self, node: str) -> StepParameters:
        """Return the parameters of one node."""
        changes = self.overrides.get(node)
        return self.parameters.overridden(changes) if changes else self.parameters

    def check_nodes(self, nodes: Collection[str]) -> None:
        """Refuse parameters for nodes that the process does not have."""
        for node in self.overrides:
            if node not in nodes:
                raise ProcessError(
                    "PROCESS_NODES", f"overrides name {node}, which is not a node of the process"
                )


def _name(value: Any) -> str:
    try:
        return parse_node(value)
    except IdentifierError as error:
        raise ProcessError(
            "PROCESS_STEPS", f"the name of a step is like that of a node: {error.cause}"
        ) from error


def _check_counts(place: str, kind: StepKind, agreed: StepParameters, version: int) -> None:
    if version == 1 and not (kind.learns and agreed.n_new):
        raise ProcessError("PROCESS_VALUE", f"{place} does not FIT, which version 1 cannot say")
    if kind.learns and not agreed.n_share:
        raise ProcessError("PROCESS_VALUE", f"{place} learns, and n_share is 0")
    if not kind.learns and (agreed.n_new or agreed.n_share):
        raise ProcessError("PROCESS_VALUE", f"{place} does not learn: n_new and n_share are 0")


def _iterations(found: AgreementFields, kind: StepKind) -> int:
    if kind is not StepKind.ITERATIVE:
        return found.whole("iterations", 1, 1, default=1)
    if "iterations" not in found:
        raise ProcessError("PROCESS_FIELDS", "an iterative step lacks iterations")
    return found.whole("iterations", 1, MAX_ITERATIONS)


def _pin(image: AgreementFields) -> ImagePin | None:
    """Read both digests of an image, or neither: one alone says nothing of the other."""
    given = [name for name in PIN if image.get(name, None) is not None]
    if len(given) == 1:
        raise ProcessError(
            "PROCESS_FIELDS", f"an image has {given[0]} and not the other of {' and '.join(PIN)}"
        )
    return ImagePin(image.digest("image_id"), image.digest("manifest_digest")) if given else None


def _overrides(record: object, parameters: StepParameters) -> dict[str, dict[str, Any]]:
    if not isinstance(record, dict):
        raise ProcessError("PROCESS_FIELDS", "overrides is not an object")
    for node, changes in record.items():
        parse_node(node)
        _options(AgreementFields(changes, f"overrides of {node}", (), (*_COUNTS, "options")))
        parameters.overridden(changes)
    return record


def _options(found: AgreementFields) -> dict[str, Record]:
    options = found.get("options", {})
    if not isinstance(options, dict):
        raise ProcessError("PROCESS_FIELDS", "options is not an object")
    found.canonical(options, "options", MAX_OPTION_BYTES)
    return options


def _limits(record: object) -> TreeLimits:
    optional = ("max_internal", "max_depth", "format", "kind")
    found = AgreementFields(record, "limits", ("n_features",), optional)
    given: dict[str, Any] = {
        name: found.whole(name, 0, FORMAT_MAX_INTERNAL)
        for name in ("max_internal", "max_depth")
        if name in found
    }
    if "format" in found:
        given["format"] = found.whole("format", FIRST_FORMAT, LATEST_FORMAT)
    if "kind" in found:
        given["kind"] = found["kind"]
    return TreeLimits(found.whole("n_features", 1, FORMAT_MAX_FEATURES), **given)
