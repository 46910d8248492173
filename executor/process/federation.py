"""From a federation file to the specification that goes to the ledger.

1. read the file into plain values with their lines (document)
2. check fields and kinds of values against the shipped schema (validation)
3. spell out what the short form leaves unsaid: one step, the consortium, the schema's digest
4. parse each part with protocol/ and every node's parameters with learning/, as ledger and learner will
5. write every option out in full
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from executor.data.columns import plain
from executor.process import options, validation
from executor.process.document import Document, Path_, read
from executor.process.errors import Fault, FederationError
from executor.process.names import msp_id
from learning.parameters import Defaults
from protocol.errors import AttestreeError
from protocol.limits import TreeLimits
from protocol.process import VERSION, Specification
from protocol.schema import FeatureSchema
from protocol.step import Step
from protocol.topology import Topology

STEP = "train"
_STEP_FIELDS = ("n_new", "n_max", "n_share", "seed", "limits", "schema_digest", "options")
_AS_THEY_ARE = ("description", "initial_model", "task_seconds")
# Where in the file a contradiction stands that only the whole specification shows.
_PLACES: dict[str, Path_] = {
    "PROCESS_CONSORTIUM": ("organisations",),
    "PROCESS_NODES": ("nodes",),
    "PROCESS_STEPS": ("steps",),
    "TOPOLOGY_KIND": ("topology",),
    "TOPOLOGY_EDGE": ("topology",),
    "TOPOLOGY_CHANGE": ("topology_changes",),
}


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

    def federation(self) -> Federation:
        features = self._features()
        nodes = {node: msp_id(organisation) for node, organisation in self.content["nodes"].items()}
        record: dict[str, Any] = {
            "version": VERSION,
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
                self._step(place, given, features, list(nodes)).to_dict() for place, given in self._steps()
            ],
            **{name: self.content[name] for name in _AS_THEY_ARE if name in self.content},
        }
        with self._at(()):
            return Federation(Specification.from_dict(record), features)

    def _organisations(self, nodes: dict[str, str]) -> list[str]:
        given = self.content.get("organisations")
        return sorted(set(nodes.values())) if given is None else [msp_id(name) for name in given]

    def _topology(self, path: Path_, given: Any) -> dict[str, Any]:
        record = {"kind": given} if isinstance(given, str) else dict(given)
        if "edges" in record:
            record.setdefault("kind", "explicit")
        with self._at(path):
            return Topology.from_dict(record).to_dict()

    def _steps(self) -> list[tuple[Path_, dict[str, Any]]]:
        if "steps" in self.content:
            return [(("steps", i), dict(step)) for i, step in enumerate(self.content["steps"])]
        parameters = {name: self.content[name] for name in _STEP_FIELDS if name in self.content}
        step = {
            "name": STEP,
            "image": self.content["image"],
            "iterations": self.content["rounds"],
            "parameters": parameters,
        }
        step |= {name: self.content[name] for name in ("synchronous", "overrides") if name in self.content}
        return [((), step)]

    def _step(
        self, place: Path_, given: dict[str, Any], features: FeatureSchema | None, nodes: list[str]
    ) -> Step:
        inner = (*place, "parameters") if place else ()
        parameters = self._parameters(inner, given["parameters"], features)
        record = given | {"image": _image(given["image"]), "parameters": parameters}
        changed = record.pop("overrides", {})
        with self._at(inner):
            step = Step.from_dict(record)
        overrides = {
            node: self._override((*place, "overrides", node), step, node, changes, nodes)
            for node, changes in changed.items()
        }
        if not self.any_options:
            with self._at((*inner, "options")):
                parameters["options"] = options.written_out(step.parameters)
        return Step.from_dict(record | {"overrides": overrides})

    def _override(
        self, path: Path_, step: Step, node: str, given: dict[str, Any], nodes: list[str]
    ) -> dict[str, Any]:
        if node not in nodes:
            raise self._fault(path, f"{node} is not a node of the process", f"There are {', '.join(nodes)}")
        changes = self._options(path, given)
        with self._at(path):
            merged = step.parameters.overridden(changes)
        if not self.any_options:
            with self._at((*path, "options")):
                options.written_out(merged)
        return changes

    def _parameters(
        self, path: Path_, given: dict[str, Any], features: FeatureSchema | None
    ) -> dict[str, Any]:
        counts = {"n_new": Defaults.n_new, "n_max": Defaults.n_max, "n_share": Defaults.n_share}
        counts |= {name: given[name] for name in counts if name in given}
        # What is shared cannot exceed what is held, so a small n_max makes the default smaller too.
        if "n_share" not in given:
            counts["n_share"] = min(counts["n_share"], counts["n_max"])
        digest, limits = self._schema(path, given, features)
        found = {"options": {}, **given, **counts, "schema_digest": digest, "limits": limits}
        return self._options(path, found)

    def _schema(
        self, path: Path_, given: dict[str, Any], features: FeatureSchema | None
    ) -> tuple[str, dict[str, int]]:
        limits = dict(given.get("limits", {}))
        if features is None:
            for name, found in (("schema_digest", given), ("n_features", limits)):
                if name not in found:
                    raise self._fault(
                        path,
                        f"without features, {name} is needed",
                        "List features and label, or give both schema_digest and limits.n_features",
                    )
            return given["schema_digest"], _full_limits(limits)
        for name, found, computed in (
            ("schema_digest", given, str(features.digest)),
            ("n_features", limits, len(features.features)),
        ):
            if found.get(name, computed) != computed:
                raise self._fault(
                    (*path, name) if found is given else (*path, "limits", name),
                    f"{name} is {found[name]}, and the listed features give {computed}",
                    f"Leave {name} out where features are listed",
                )
        return str(features.digest), _full_limits({**limits, "n_features": len(features.features)})

    def _options(self, path: Path_, record: dict[str, Any]) -> dict[str, Any]:
        if "options" not in record:
            return record
        with self._at((*path, "options")):
            change = options.without_floats if self.any_options else options.readable
            return record | {"options": change(record["options"])}

    def _features(self) -> FeatureSchema | None:
        listed, file = self.content.get("features"), self.content.get("schema_from")
        if listed is None and file is None:
            return None
        if listed is not None and file is not None:
            raise self._fault(("schema_from",), "features are listed as well", "Keep one of the two")
        if "label" not in self.content:
            where = ("features",) if file is None else ("schema_from",)
            raise self._fault(where, "the label is not named", "Add label: the name of the label column")
        label = self.content["label"]
        if listed is not None:
            with self._at(("features",)):
                return FeatureSchema(tuple(map(plain, listed)), plain(label))
        with self._at(("schema_from",)):
            return _columns_of(
                Path(self.document.file).parent / str(file), label, self.content.get("drop", [])
            )

    @contextmanager
    def _at(self, path: Path_) -> Iterator[None]:
        """Turn a refusal by protocol/ or learning/ into one with the line of the file."""
        try:
            yield
        except FederationError:
            raise
        except AttestreeError as error:
            place = path or _PLACES.get(error.code, path)
            named = _named_in(error, place, self.document)
            raise self._fault(named, f"{error.cause} ({error.code})", error.remedy) from error

    def _fault(self, path: Path_, cause: str, remedy: str) -> FederationError:
        fault = Fault(self.document.line(path), cause, remedy)
        return FederationError.of("FEDERATION_MEANING", self.document.file, [fault])


def _replace(content: dict[str, Any], process: str | None, image: str | None) -> None:
    if process is not None:
        content["process"] = process
    if image is not None:
        steps = content.get("steps")
        for step in steps if isinstance(steps, list) else [content]:
            if isinstance(step, dict):
                step["image"] = image


def _named_in(error: AttestreeError, place: Path_, document: Document) -> Path_:
    """Return the field that a cause names, such as n_share or option 'decay', if the file has it there."""
    for word in error.cause.replace("'", " ").replace(",", " ").split():
        if (*place, word) in document.lines:
            return (*place, word)
    return place


def _image(given: Any) -> dict[str, str]:
    if isinstance(given, dict):
        return given
    name, _, version = given.rpartition(":")
    return {"name": name, "version": version}


def _full_limits(given: dict[str, int]) -> dict[str, int]:
    limits = TreeLimits(**given)
    return {
        "n_features": limits.n_features,
        "max_internal": limits.max_internal,
        "max_depth": limits.max_depth,
    }


def _columns_of(path: Path, label: str, drop: list[str]) -> FeatureSchema:
    from executor.data import load as load_data  # noqa: PLC0415 - reads Parquet, so slow to import

    return load_data(path, label, drop).schema
