"""From a federation file to the specification: defaults written out, and every fault with its line."""

import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from executor.process.document import parse
from executor.process.errors import FederationError
from executor.process.federation import Federation, from_document, load
from executor.process.validation import schema
from learning.errors import ParameterError
from learning.fit_options import FLOAT32_BITS, MAX_LEAVES, WAYS, FitOptions
from learning.options import from_step, home_check_record, to_options
from learning.parameters import Defaults, Parameters
from learning.ranking import RANKINGS
from learning.robust import HomeCheck
from protocol.agreement.parameters import MAX_NODES
from protocol.agreement.process import (
    MAX_ORGANISATIONS,
    MAX_STEPS,
    MAX_TASK_SECONDS,
    Specification,
)
from protocol.agreement.schema import FeatureSchema
from protocol.agreement.step import MAX_ITERATIONS, MAX_TREES
from protocol.agreement.topology import MAX_EDGES, Kind
from protocol.trees.encoding_boosted import MAX_TREES as MAX_ROUNDS
from protocol.trees.limits import FORMAT_MAX_FEATURES, FORMAT_MAX_INTERNAL, KIND_NAMES

EXAMPLE = Path(__file__).parents[4] / "examples/federation.yaml"
PAGE = EXAMPLE.parents[1] / "docs/federation.md"
TEXT = EXAMPLE.read_text(encoding="utf-8")
GOLDEN = "sha256:c710f9f0d2d56ee7478413dfa5e2d373566ed9edf4fa9cd83f8e6e0dbaad6120"


def federation(*edits: tuple[str, str], any_options: bool = False) -> Federation:
    text = TEXT
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new, 1)
    return from_document(parse(text.encode(), "f.yaml"), any_options=any_options)


def after_topology(text: str) -> tuple[str, str]:
    """An edit that adds lines from line 12 of the example on."""
    return "topology: ring", f"topology: ring\n{text}"


def options(made: Federation, node: str = "node01") -> dict[str, Any]:
    return dict(made.specification.steps[0].parameters_of(node).options)


def test_the_example_has_its_digest() -> None:
    assert str(load(EXAMPLE).specification.digest) == GOLDEN


def test_the_example_is_the_demonstration() -> None:
    made = load(EXAMPLE).specification
    assert dict(made.nodes) == {f"node{i:02}": f"Org{o}MSP" for i, o in ((1, 1), (6, 2), (11, 3), (16, 4))}
    assert made.topology.first.kind is Kind.RING
    assert made.iterations == 3
    names = [*(f"V{i}" for i in range(1, 29)), "Amount"]
    assert load(EXAMPLE).features == FeatureSchema(tuple(names), "Class")
    assert made.steps[0].parameters.limits.n_features == 29


def test_every_option_is_written_out() -> None:
    made = federation(("options:\n  fit: balanced", "options:\n  min_leaf: 3"))
    expected = to_options(Defaults) | {"min_leaf": 3}
    assert options(made) == expected


def test_without_options_the_defaults_of_today_are_fixed() -> None:
    made = federation((TEXT[TEXT.index("options:") :], ""))
    assert options(made) == to_options(Parameters())


def test_numbers_become_text_in_their_one_spelling() -> None:
    made = federation(
        ("threshold: 0.3", f"threshold: 2.50e-1\n  mu: {[0, 1.0, *[0] * 27]}\n  sigma: {[1, 2, *[1] * 27]}"),
        ("quota: 2", "quota: 2.0"),
    )
    found = options(made)
    assert (found["threshold"], found["quota"], found["vote_cap"]) == ("0.25", "2.0", "0.25")
    assert (found["mu"][:2], found["sigma"][:2]) == (["0.0", "1.0"], ["1.0", "2.0"])


SHIPPED_CHECK = {"max_alarms": "0.01", "min_found": "0.5", "enough_anomalies": 8, "together": "0.05"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("null", None),
        ("false", None),
        ("true", SHIPPED_CHECK),
        ("{of_own: 0.5}", SHIPPED_CHECK | {"of_own": "0.5"}),
        ("{of_own: null}", SHIPPED_CHECK),
        ("{}", SHIPPED_CHECK),
        ("{max_alarms: 0.02}", SHIPPED_CHECK | {"max_alarms": "0.02"}),
        ("{together: 0.2}", SHIPPED_CHECK | {"together": "0.2"}),
        ("{together: null}", {"max_alarms": "0.01", "min_found": "0.5", "enough_anomalies": 8}),
    ],
)
def test_home_check_in_short(text: str, expected: object) -> None:
    assert options(federation(("fit: balanced", f"home_check: {text}")))["home_check"] == expected


def test_counts_left_out_are_as_shipped_and_share_fits_in_the_ensemble() -> None:
    lines = TEXT[TEXT.index("n_new:") : TEXT.index("features:")]
    parameters = federation((lines, "")).specification.steps[0].parameters
    assert (parameters.n_new, parameters.n_max, parameters.n_share) == (10, 50, 10)
    parameters = federation((lines, "n_max: 4\n")).specification.steps[0].parameters
    assert (parameters.n_max, parameters.n_share) == (4, 4)


def test_org1_and_its_msp_id_are_the_same() -> None:
    assert federation(("node01: org1", "node01: Org1MSP")) == federation()
    listed = after_topology("organisations: [org1, Org2MSP, org3, org4]")
    assert federation(listed) == federation()


def test_the_order_of_fields_and_nodes_does_not_matter() -> None:
    content = parse(TEXT.encode(), "f.yaml").content
    turned = {name: content[name] for name in reversed(content)}
    turned["nodes"] = dict(reversed(content["nodes"].items()))
    made = from_document(parse(json.dumps(turned).encode(), "f.json"))
    assert str(made.specification.digest) == GOLDEN


def test_the_canonical_specification_is_a_federation_file_too() -> None:
    made = federation().specification
    again = from_document(parse(made.to_bytes(), "f.json")).specification
    assert again == made


def test_edges_are_a_topology() -> None:
    made = federation(("topology: ring", "topology: {edges: [[node06, node01], [node11, node16]]}"))
    assert made.specification.topology.first.edges == (("node01", "node06"), ("node11", "node16"))


def test_overrides_and_topology_changes() -> None:
    made = federation(
        after_topology(
            "overrides: {node06: {n_new: 5, options: {min_leaf: 2, threshold: 0.5}}}\n"
            "topology_changes: [{iteration: 1, topology: full}]"
        )
    )
    step = made.specification.steps[0]
    assert step.parameters_of("node06").n_new == 5
    assert step.parameters_of("node01") is step.parameters
    assert options(made, "node06") == options(made) | {"min_leaf": 2, "threshold": "0.5"}
    assert made.specification.topology.at(1).kind is Kind.FULL


def test_steps_in_full_take_the_features_of_the_file() -> None:
    text = """
process: two-steps
nodes: {node01: org1, node02: org2}
features: [a, b]
label: y
steps:
  - name: warm
    kind: single
    image: attestree/learner:1
    parameters: {seed: 1, limits: {max_depth: 8}}
  - name: train
    image: {name: attestree/learner, version: "1.10"}
    iterations: 4
    synchronous: false
    parameters: {seed: 2, n_max: 20, limits: {max_depth: 8}, options: {fit: plain}}
"""
    made = from_document(parse(text.encode(), "f.yaml"))
    assert made.specification.iterations == 5
    digest = FeatureSchema(("a", "b"), "y").digest
    assert [step.parameters.schema_digest for step in made.specification.steps] == [digest, digest]
    limits = made.specification.steps[1].parameters.limits
    assert (limits.n_features, limits.max_depth, limits.max_internal) == (2, 8, 255)
    assert made.specification.steps[1].image_version == "1.10"


def test_a_digest_stands_for_features_that_are_not_named() -> None:
    lines = TEXT[TEXT.index("features:") : TEXT.index("options:")]
    digest = str(load(EXAMPLE).features.digest)  # type: ignore[union-attr]
    made = federation((lines, f"schema_digest: {digest}\nlimits: {{n_features: 29}}\n"))
    assert str(made.specification.digest) == GOLDEN
    assert made.features is None


def test_features_come_from_a_file_beside_it(tmp_path: Path) -> None:
    lines = TEXT[TEXT.index("features:") : TEXT.index("options:")]
    (tmp_path / "data.csv").write_text("id,a,b,fraud\n1,0.5,,0\n2,1.5,3,1\n", encoding="utf-8")
    (tmp_path / "f.yaml").write_text(
        TEXT.replace(lines, "schema_from: data.csv\nlabel: fraud\ndrop: [id]\n"), encoding="utf-8"
    )
    assert load(tmp_path / "f.yaml").features == FeatureSchema(("a", "b"), "fraud")
    (tmp_path / "data.csv").write_text("id,a,a,fraud\n1,0.5,,0\n", encoding="utf-8")
    with pytest.raises(FederationError, match=r"line 21: .*columns 2 and 3 have one name"):
        load(tmp_path / "f.yaml")


def test_another_process_and_image_than_the_files(tmp_path: Path) -> None:
    made = load(EXAMPLE, process="another", image="mine/learner:2").specification
    assert made.process == "another"
    assert (made.steps[0].image_name, made.steps[0].image_version) == ("mine/learner", "2")
    with pytest.raises(FederationError, match="line 13: image is"):
        load(EXAMPLE, image="mine/learner")


def test_options_of_another_image_are_passed_on() -> None:
    made = federation(("fit: balanced", "mine: {deep: [0.50, 3, x]}"), any_options=True)
    assert options(made)["mine"] == {"deep": ["0.5", 3, "x"]}
    assert options(made)["threshold"] == "0.3"
    assert "min_leaf" not in options(made)
    with pytest.raises(FederationError, match=r"line 28: options\.mine is not a field"):
        federation(("fit: balanced", "mine: 1"))


# --- refusals, each with its line ---

LINES = [
    ("FEDERATION_SCHEMA", 14, "iterations", ("iterations: 3", "iterations: three")),
    ("FEDERATION_SCHEMA", 14, "iterations", ("iterations: 3", "iterations: 0")),
    ("FEDERATION_SCHEMA", 14, "iterations", ("iterations: 3", "iterations: 3.0")),
    ("FEDERATION_SCHEMA", 14, "iterations", ("iterations: 3", "iterations: 100001")),
    ("FEDERATION_SCHEMA", 14, "iterations", ("iterations: 3", "iterations: true")),
    ("FEDERATION_SCHEMA", 3, "lacks iterations", ("iterations: 3", "")),
    (
        "FEDERATION_SCHEMA",
        14,
        "Did you mean iterations?",
        ("iterations: 3", "iteration: 3"),
    ),
    ("FEDERATION_SCHEMA", 3, "process", ("process: fraud-demo", "process: Fraud Demo")),
    ("FEDERATION_SCHEMA", 3, "quotes", ("process: fraud-demo", "process: 2026")),
    ("FEDERATION_SCHEMA", 8, "nodes.Node06", ("node06: org2", "Node06: org2")),
    ("FEDERATION_SCHEMA", 8, "nodes.node06", ("node06: org2", "node06: 2")),
    ("FEDERATION_SCHEMA", 11, "not one of", ("topology: ring", "topology: star")),
    ("FEDERATION_SCHEMA", 11, "neither a kind", ("topology: ring", "topology: {}")),
    ("FEDERATION_SCHEMA", 11, "topology.edges[0]", ("topology: ring", "topology: {edges: [[node01]]}")),
    ("FEDERATION_SCHEMA", 13, "image", ("learner:0.1.0", "learner:latest")),
    ("FEDERATION_SCHEMA", 13, "image", ("learner:0.1.0", "learner")),
    (
        "FEDERATION_SCHEMA",
        13,
        "image.version",
        ("image: attestree/learner:0.1.0", "image: {name: a, version: 1.10}"),
    ),
    ("FEDERATION_SCHEMA", 15, "seed", ("seed: 42", "seed: -1")),
    ("FEDERATION_SCHEMA", 15, "seed", ("seed: 42", f"seed: {2**53}")),
    ("FEDERATION_SCHEMA", 21, "twice", ("  V1, V2,", "  V1, V1,")),
    ("FEDERATION_SCHEMA", 28, "options.fit", ("fit: balanced", "fit: best")),
    ("FEDERATION_SCHEMA", 28, "Did you mean fit?", ("fit: balanced", "fitt: balanced")),
    ("FEDERATION_SCHEMA", 28, "home_check", ("fit: balanced", "home_check: yes")),
    ("FEDERATION_SCHEMA", 12, "twice", after_topology("organisations: [org1, org1]")),
    ("FEDERATION_SCHEMA", 12, "is not a field", after_topology("nots: 1")),
    ("FEDERATION_SCHEMA", 12, "task_seconds", after_topology("task_seconds: 0")),
    ("FEDERATION_SCHEMA", 12, "version", after_topology("version: 3")),
    ("FEDERATION_SCHEMA", 12, "initial_model", after_topology("initial_model: {process: a, node: b}")),
    ("FEDERATION_MEANING", 19, "n_share 60", ("n_share: 10", "n_share: 60")),
    ("FEDERATION_MEANING", 11, "node99", ("topology: ring", "topology: {edges: [[node01, node99]]}")),
    ("FEDERATION_MEANING", 11, "itself", ("topology: ring", "topology: {edges: [[node01, node01]]}")),
    ("FEDERATION_MEANING", 11, "kind", ("topology: ring", "topology: {kind: explicit}")),
    ("FEDERATION_MEANING", 9, "not in the consortium", after_topology("organisations: [org1, org2, org4]")),
    (
        "FEDERATION_MEANING",
        12,
        "beyond the last",
        after_topology("topology_changes: [{iteration: 3, topology: full}]"),
    ),
    ("FEDERATION_MEANING", 12, "node02", after_topology("overrides: {node02: {n_new: 3}}")),
    ("FEDERATION_MEANING", 12, "n_share 70", after_topology("overrides: {node01: {n_share: 70}}")),
    ("FEDERATION_MEANING", 13, "decay", after_topology("overrides:\n  node01: {options: {decay: 3}}")),
    ("FEDERATION_MEANING", 29, "threshold", ("threshold: 0.3", "threshold: 1.5")),
    ("FEDERATION_MEANING", 29, "threshold", ("threshold: 0.3", "threshold: 1e999")),
    ("FEDERATION_MEANING", 29, "'0.30'", ("threshold: 0.3", "threshold: '0.30'")),
    ("FEDERATION_MEANING", 28, "2 values for 29", ("fit: balanced", "mu: [0, 1]\n  sigma: [1, 1]")),
    ("FEDERATION_MEANING", 28, "sigma", ("fit: balanced", "mu: [0, 1]\n  sigma: [1]")),
    ("FEDERATION_MEANING", 21, "V1", ("label: Class", "label: V1")),
    ("FEDERATION_MEANING", 21, "label", ("label: Class", "")),
    ("FEDERATION_MEANING", 12, "n_features is 31", after_topology("limits: {n_features: 31}")),
    ("FEDERATION_MEANING", 12, "schema_digest", after_topology(f"schema_digest: sha256:{'0' * 64}")),
    ("FEDERATION_MEANING", 12, "listed as well", after_topology("schema_from: data.csv")),
]


@pytest.mark.parametrize(("code", "line", "words", "edit"), LINES)
def test_a_fault_is_refused_with_its_line(code: str, line: int, words: str, edit: tuple[str, str]) -> None:
    with pytest.raises(FederationError) as caught:
        federation(edit)
    assert caught.value.code == code
    said = [f"{fault.cause} {fault.remedy}" for fault in caught.value.faults if fault.line == line]
    assert any(words in text for text in said), caught.value.faults
    assert f"f.yaml, line {line}: " in caught.value.cause


def test_all_faults_are_named_at_once() -> None:
    edits = (("iterations: 3", "iterations: x"), ("seed: 42", "seed: x"), ("fit: balanced", "fit: x"))
    with pytest.raises(FederationError) as caught:
        federation(*edits)
    assert [fault.line for fault in caught.value.faults] == [14, 15, 28]


@pytest.mark.parametrize("text", ["[]", "7", "text"])
def test_a_file_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(FederationError, match="line 1: the file is"):
        from_document(parse(text.encode(), "f.yaml"))


# --- the shipped schema ---


def test_the_schema_is_a_schema() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())


EVERY_CHECK = HomeCheck(of_own=0.5)
EVERY = replace(
    Defaults,
    fit=FitOptions("boosted", max_depth=3, threshold_bits=4),
    home_check=EVERY_CHECK,
    held_out=0.25,
)
"""Parameters with every field that may be left out: some options are written only where they are set."""


def test_the_schema_knows_the_options_of_the_learner() -> None:
    unset = [
        f"{type(part).__name__}.{field.name}"
        for part in (EVERY, EVERY.fit, EVERY.kernel, EVERY_CHECK)
        for field in fields(part)
        if getattr(part, field.name) is None
    ]
    assert unset == []
    found = schema()["$defs"]["options"]["properties"]
    assert set(found) == {*to_options(EVERY), "ranges"}
    assert set(found["home_check"]["properties"]) == set(home_check_record(EVERY_CHECK))
    assert found["fit"]["enum"] == list(WAYS)
    assert found["ranking"]["enum"] == list(RANKINGS)


def test_the_schema_knows_every_kind_of_estimators() -> None:
    defs = schema()["$defs"]
    names = [defs[part]["properties"]["estimator_kind"]["enum"] for part in ("short", "full")]
    assert names == [list(KIND_NAMES)] * 2


def test_the_schema_has_the_bounds_of_the_learner() -> None:
    found = schema()["$defs"]["options"]["properties"]
    bounds = {name: (found[name]["minimum"], found[name]["maximum"]) for name in ("rounds", "leaves")}
    assert bounds == {"rounds": (1, MAX_ROUNDS), "leaves": (2, MAX_LEAVES)}
    bits = found["threshold_bits"]
    assert (bits["minimum"], bits["maximum"]) == (1, FLOAT32_BITS)


def test_the_table_of_options_is_that_of_the_schema() -> None:
    text = PAGE.read_text(encoding="utf-8")
    lines = text[text.index("| option | meaning |") :].partition("\n\n")[0].splitlines()[2:]
    cells = [line.split("|") for line in lines]
    found = schema()["$defs"]["options"]["properties"]
    assert sorted(name for row in cells for name in re.findall("`(.+?)`", row[1])) == sorted(found)
    (meaning,) = [row[2] for row in cells if "`home_check`" in row[1]]
    (limits,) = re.findall("`{(.+?)}`", meaning)
    assert limits.split(", ") == list(found["home_check"]["properties"])


@pytest.mark.parametrize("bits", [1, 4, 24])
def test_thresholds_may_be_rounded(bits: int) -> None:
    assert options(federation(("fit: balanced", f"threshold_bits: {bits}")))["threshold_bits"] == bits


def test_thresholds_that_are_not_rounded_leave_the_specification_as_it_was() -> None:
    made = federation(("fit: balanced", "fit: balanced\n  threshold_bits: null"))
    assert str(made.specification.digest) == GOLDEN


@pytest.mark.parametrize("bits", ["0", "25", "4.5", "'4'"])
def test_no_thresholds_are_rounded_to_other_than_1_to_24_bits(bits: str) -> None:
    with pytest.raises(FederationError, match="threshold_bits"):
        federation(("fit: balanced", f"threshold_bits: {bits}"))


def test_the_schema_has_the_bounds_of_the_protocol() -> None:
    defs = schema()["$defs"]
    short = defs["short"]["properties"]
    assert short["iterations"]["maximum"] == MAX_ITERATIONS
    assert {short[name]["maximum"] for name in ("n_new", "n_max", "n_share")} == {MAX_TREES}
    assert short["organisations"]["maxItems"] == MAX_ORGANISATIONS
    assert short["nodes"]["maxProperties"] == MAX_NODES
    assert short["task_seconds"]["maximum"] == MAX_TASK_SECONDS
    assert short["features"]["maxItems"] == FORMAT_MAX_FEATURES
    assert defs["full"]["properties"]["steps"]["maxItems"] == MAX_STEPS
    assert defs["limits"]["properties"]["max_depth"]["maximum"] == FORMAT_MAX_INTERNAL
    assert defs["topology"]["else"]["properties"]["edges"]["maxItems"] == MAX_EDGES


def test_the_schema_explains_every_field() -> None:
    for part in ("short", "full", "step"):
        for name, rules in schema()["$defs"][part]["properties"].items():
            target = rules.get("$ref", "").rpartition("/")[2]
            assert "description" in rules or "description" in schema()["$defs"][target], name


def test_every_field_is_in_the_documentation() -> None:
    page = PAGE.read_text(encoding="utf-8")
    defs = schema()["$defs"]
    names = {name for part in ("short", "full", "step", "options") for name in defs[part]["properties"]}
    assert [name for name in sorted(names) if f"`{name}`" not in page] == []


def test_specification_of_the_file_is_what_the_ledger_parses() -> None:
    made = federation().specification
    assert Specification.from_bytes(made.to_bytes()).digest == made.digest


# --- steps that do not learn ---

COMPOSITE = (EXAMPLE.parent / "composite.yaml").read_text("utf-8")


def composite(tmp_path: Path, *changes: tuple[str, str]) -> Specification:
    text = COMPOSITE
    for before, after in changes:
        assert before in text
        text = text.replace(before, after)
    file = tmp_path / "composite.yaml"
    file.write_text(text, "utf-8")
    return load(file).specification


def test_options_may_be_null_where_the_learner_takes_that() -> None:
    """`held_out: null` too, which says that nothing is held out."""
    parts = {"type": ["object"]} | schema()["$defs"]["options"]
    step = federation().specification.steps[0].parameters
    for name in to_options(EVERY):
        allowed = jsonschema.Draft202012Validator(parts).is_valid({name: None})
        try:
            from_step(replace(step, options={name: None}))
        except ParameterError:
            assert not allowed, name
        else:
            assert allowed, name
    nothing = federation(("fit: balanced", "fit: balanced\n  held_out: null"))
    assert str(nothing.specification.digest) == GOLDEN


def test_the_composite_example_prepares_learns_and_evaluates(tmp_path: Path) -> None:
    prepare, learn, evaluate = composite(tmp_path).steps
    assert [step.kind.value for step in (prepare, learn, evaluate)] == ["prepare", "iterative", "evaluate"]
    assert [step.iterations for step in (prepare, learn, evaluate)] == [1, 3, 1]
    assert (evaluate.parameters.n_new, evaluate.parameters.n_share) == (0, 0)
    ranges = prepare.parameters.options["ranges"]
    assert isinstance(ranges, list)
    assert (ranges[0], ranges[1], ranges[13], ranges[28]) == (
        ["-100.0", "100.0"],
        None,
        ["-50.0", "50.0"],
        ["0.0", "30000.0"],
    )
    assert set(prepare.parameters.options) == {"ranges"}
    assert learn.parameters.options["held_out"] == evaluate.parameters.options["held_out"] == "0.25"


def test_a_prepare_step_without_ranges_holds_rows_against_the_schema_alone(tmp_path: Path) -> None:
    start, end = COMPOSITE.index("      options:\n        ranges"), COMPOSITE.index("  - name: learn")
    made = composite(tmp_path, (COMPOSITE[start:end], ""))
    assert made.steps[0].parameters.options == {"ranges": [None] * 29}


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("V14: [-50, 50]", "V99: [-50, 50]", "names 'V99', which is not a feature"),
        ("V14: [-50, 50]", "V14: [50, -50]", "range 13 begins at 50.0 and ends at -50.0"),
        ("V14: [-50, 50]", "V14: [-50]", "needs 2 at least"),
        ("ranges:", "fit: plain\n        ranges:", "no option 'fit'"),
        ("held_out: 0.25 #", "held_out: 0.5 #", "hold out other parts"),
        ("held_out: 0.25 #", "held_out: 2 #", "held_out"),
        ("n_new: 10 #", "n_new: 0 #", "has no estimators by step learn"),
        (
            "threshold: 0.3\n        held_out: 0.25 #",
            "threshold: 0.4\n        held_out: 0.25 #",
            "models of learn vote with 0.4",
        ),
        (
            "fit: balanced\n        threshold: 0.3\n        held_out: 0.25\n",
            "held_out: 0.25\n        threshold: 0.3\n        vote_cap: 0.5\n",
            "with vote_cap 0.5, and models of learn vote with 0.25",
        ),
    ],
)
def test_c10_steps_of_a_file_that_contradict_their_kind(
    tmp_path: Path, before: str, after: str, words: str
) -> None:
    with pytest.raises(FederationError, match=words):
        composite(tmp_path, (before, after))
