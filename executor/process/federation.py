"""From a federation file to the specification that goes to the ledger.

1. read the file into plain values with their lines (document)
2. check fields and kinds of values against the shipped schema (validation)
3. spell out what the short form leaves unsaid: one step, the consortium, the schema's digest
4. parse each part with protocol/ and every node's parameters with learning/, as ledger and learner will
5. write every option out in full
6. see that each step can read the trees of those before it, and evaluates them by the vote of the models
"""

from pathlib import Path
from typing import Any

from executor.process import options, validation
from executor.process.document import Document, Path_, read
from executor.process.features import features_of, schema_and_limits
from executor.process.located import fault, located
from executor.process.names import msp_id
from learning.parameters import Defaults
from protocol.agreement.process import Specification
from protocol.agreement.proposal import check_proposal
from protocol.agreement.schema import FeatureSchema
from protocol.agreement.step import VERSION, Step
from protocol.agreement.step_kind import RANGES, StepKind
from protocol.agreement.topology import Topology
from protocol.trees.limits import TREE
from protocol.values import dataclass

STEP = "train"
_STEP_FIELDS = ("n_new", "n_max", "n_share", "seed", "limits", "schema_digest", "options")
_AS_THEY_ARE = (
    "description",
    "initial_model",
    "task_seconds",
    "silence_seconds",
    "abort",
    "estimator_format",
    "estimator_kind",
    "confidential",
    "confidential_blocks",
    "change_quota",
    "image_attestations",
    "model_access",
    "model_licence",
)


@dataclass(frozen=True)
class Federation:
    """What a file describes: the specification, and the feature schema if the file names it."""

    specification: Specification
    features: FeatureSchema | None


def load(
    path: Path, *, process: str | None = None, image: str | None = None, any_options: bool = False
) -> Federation:
    """Read a federation file, or refuse it with every fault that was found.

    `process` and `image` replace those of the file. With `any_options`, the options are for an image of one's
    own and are passed on without being understood.
    """
    document = read(path)
    if isinstance(document.content, dict):
        _replace(document.content, process, image)
    return from_document(document, any_options=any_options)


def from_document(document: Document, *, any_options: bool = False) -> Federation:
    """Make the specification that a document describes."""
    validation.check(document, any_options=any_options)
    return _Maker(document, any_options).federation()


class _Maker:
    """Builds one specification, and knows for each part where it stands in the file."""

    def __init__(self, document: Document, any_options: bool) -> None:
        self.document = document
        self.content: dict[str, Any] = document.content
        self.any_options = any_options
        self.version: int = self.content.get("version", VERSION)
        self.kind: str = self.content.get("estimator_kind", TREE)

    def federation(self) -> Federation:
        features = features_of(self.document)
        nodes = {node: msp_id(organisation) for node, organisation in self.content["nodes"].items()}
        record: dict[str, Any] = {
            "version": self.version,
            "process": self.content["process"],
            "organisations": self._organisations(nodes),
            "nodes": nodes,
            "topology": self._topology(("topology",), self.content.get("topology", "ring")),
            "topology_changes": [
                {
                    "iteration": change["iteration"],
                    "topology": self._topology(("topology_changes", i, "topology"), change["topology"]),
                }
                for i, change in enumerate(self.content.get("topology_changes", []))
            ],
            "steps": [
                self._step(place, given, features, list(nodes)).to_dict(self.version)
                for place, given in self._steps()
            ],
            **{name: self.content[name] for name in _AS_THEY_ARE if name in self.content},
        }
        if "coordinator" in self.content:
            record["coordinator"] = msp_id(self.content["coordinator"])
        with located(self.document, ()):
            specification = Specification.from_dict(record)
            check_proposal(specification)
        return Federation(specification, features)

    def _organisations(self, nodes: dict[str, str]) -> list[str]:
        given = self.content.get("organisations")
        return sorted(set(nodes.values())) if given is None else [msp_id(name) for name in given]

    def _topology(self, path: Path_, given: Any) -> dict[str, Any]:
        record = {"kind": given} if isinstance(given, str) else dict(given)
        if "edges" in record:
            record.setdefault("kind", "explicit")
        with located(self.document, path):
            return Topology.from_dict(record).to_dict()

    def _steps(self) -> list[tuple[Path_, dict[str, Any]]]:
        if "steps" in self.content:
            return [(("steps", i), dict(step)) for i, step in enumerate(self.content["steps"])]
        parameters = {name: self.content[name] for name in _STEP_FIELDS if name in self.content}
        step = {
            "name": STEP,
            "image": self.content["image"],
            "iterations": self.content["iterations"],
            "parameters": parameters,
        }
        step |= {name: self.content[name] for name in ("synchronous", "overrides") if name in self.content}
        return [((), step)]

    def _step(
        self, place: Path_, given: dict[str, Any], features: FeatureSchema | None, nodes: list[str]
    ) -> Step:
        inner = (*place, "parameters") if place else ()
        kind = StepKind(given.get("kind", StepKind.ITERATIVE))
        parameters = self._parameters(inner, given["parameters"], features, kind)
        record = given | {"image": _image(given["image"]), "parameters": parameters}
        changed = record.pop("overrides", {})
        with located(self.document, inner):
            step = Step.from_dict(record, self.version)
        overrides = {
            node: self._override((*place, "overrides", node), step, node, changes, nodes)
            for node, changes in changed.items()
        }
        if not self.any_options:
            with located(self.document, (*inner, "options")):
                parameters["options"] = options.written_out(step.parameters, self.kind, kind)
        return Step.from_dict(record | {"overrides": overrides}, self.version)

    def _override(
        self, path: Path_, step: Step, node: str, given: dict[str, Any], nodes: list[str]
    ) -> dict[str, Any]:
        if node not in nodes:
            raise fault(
                self.document, path, f"{node} is not a node of the process", f"There are {', '.join(nodes)}"
            )
        changes = self._options(path, given)
        with located(self.document, path):
            merged = step.parameters.overridden(changes)
        if not self.any_options:
            with located(self.document, (*path, "options")):
                options.written_out(merged, self.kind, step.kind)
        return changes

    def _parameters(
        self, path: Path_, given: dict[str, Any], features: FeatureSchema | None, kind: StepKind
    ) -> dict[str, Any]:
        counts = {"n_new": Defaults.n_new, "n_max": Defaults.n_max, "n_share": Defaults.n_share}
        if not kind.learns:
            counts |= {"n_new": 0, "n_share": 0}
        counts |= {name: given[name] for name in counts if name in given}
        # What is shared cannot exceed what is held, so a small n_max makes the default smaller too.
        if "n_share" not in given:
            counts["n_share"] = min(counts["n_share"], counts["n_max"])
        digest, limits = schema_and_limits(self.document, path, given, features)
        found = {"options": {}, **given, **counts, "schema_digest": digest, "limits": limits}
        with located(self.document, (*path, "options")):
            names = () if features is None else features.features
            named = options.ranges_by_name(found["options"], names)
        if kind is StepKind.PREPARE and not named:
            named = {RANGES: [None] * limits["n_features"]}
        return self._options(path, found | {"options": named})

    def _options(self, path: Path_, record: dict[str, Any]) -> dict[str, Any]:
        if "options" not in record:
            return record
        with located(self.document, (*path, "options")):
            change = options.without_floats if self.any_options else options.readable
            return record | {"options": change(record["options"])}


def _replace(content: dict[str, Any], process: str | None, image: str | None) -> None:
    if process is not None:
        content["process"] = process
    if image is not None:
        steps = content.get("steps")
        for step in steps if isinstance(steps, list) else [content]:
            if isinstance(step, dict):
                step["image"] = image


def _image(given: Any) -> dict[str, Any]:
    if isinstance(given, dict):
        return given
    name, _, version = given.rpartition(":")
    return {"name": name, "version": version}
