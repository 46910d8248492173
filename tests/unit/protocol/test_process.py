"""The specification's parser: C10 and its neighbours are refused, what is accepted has one canonical form."""

import copy
import json
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from protocol import canonical
from protocol.agreement.consent import consent_to_access
from protocol.agreement.image import ImagePin
from protocol.agreement.parameters import TaskParameters
from protocol.agreement.process import ModelAccess, Specification
from protocol.agreement.schema import FeatureSchema
from protocol.digest import Digest
from protocol.errors import AttestreeError, ProcessError, RecordError

DIGEST = "sha256:" + "5" * 64
SPECIFICATION = {
    "version": 2,
    "process": "fraud-2026",
    "organisations": ["Org2MSP", "Org1MSP"],
    "nodes": {"node02": "Org2MSP", "node01": "Org1MSP"},
    "topology": {"kind": "ring"},
    "steps": [
        {
            "name": "train",
            "image": {"name": "attestree/learner", "version": "1.0.0"},
            "iterations": 10,
            "parameters": {
                "n_new": 10,
                "n_max": 50,
                "n_share": 10,
                "seed": 42,
                "limits": {"n_features": 30},
                "schema_digest": DIGEST,
            },
        }
    ],
}
STEP = SPECIFICATION["steps"][0]
IMAGE = STEP["image"]
MISSING = object()


def changed(*path_and_value):
    *path, last, value = path_and_value
    made = copy.deepcopy(SPECIFICATION)
    place = made
    for part in path:
        place = place[part]
    if value is MISSING:
        del place[last]
    else:
        place[last] = value
    return made


def step(**changes):
    return changed("steps", [STEP | changes])


def parameters(**changes):
    return step(parameters=STEP["parameters"] | changes)


def code_of(record):
    with pytest.raises(AttestreeError) as refusal:
        Specification.from_dict(record)
    return refusal.value.code


def test_defaults_are_written_out_and_lists_ordered():
    record = Specification.from_dict(SPECIFICATION).to_dict()
    assert record["organisations"] == ["Org1MSP", "Org2MSP"]
    assert (record["description"], record["topology_changes"], record["initial_model"]) == ("", [], None)
    assert record["task_seconds"] == 3600
    assert (record["version"], record["silence_seconds"], record["abort"]) == (2, 86_400, "majority")
    made = record["steps"][0]
    assert (made["kind"], made["synchronous"], made["overrides"]) == ("iterative", True, {})
    assert made["parameters"]["limits"] == {"n_features": 30, "max_internal": 255, "max_depth": 64}


def test_a_model_votes_as_the_last_step_by_then_that_learns():
    def learning(name, **more):
        options = {"held_out": "0.25", "threshold": name}
        return {**STEP, "name": f"at-{name}", "parameters": STEP["parameters"] | {"options": options}} | more

    look = STEP["parameters"] | {"n_new": 0, "n_share": 0, "options": {"ranges": [None] * 30}}
    prepare = {**STEP, "name": "look", "kind": "prepare", "iterations": 1, "parameters": look}
    own = {"overrides": {"node01": {"options": {"threshold": "3"}}}}
    steps = [
        prepare,
        learning("1", iterations=2),
        learning("2", iterations=1, **own),
        {**prepare, "name": "last"},
    ]
    specification = Specification.from_dict(changed("steps", steps))
    voted = [
        specification.voting("node02", at).options["threshold"] for at in range(specification.iterations)
    ]
    assert voted == ["1", "1", "1", "2", "2"]
    last = specification.iterations - 1
    assert specification.voting("node01", last).options["threshold"] == "3"
    assert (
        specification.voting("node01", last).limits == specification.parameters("node01", last).agreed.limits
    )


def test_equal_agreements_have_equal_bytes_and_others_do_not():
    specification = Specification.from_dict(SPECIFICATION)
    turned = changed("organisations", ["Org1MSP", "Org2MSP"])
    assert Specification.from_dict(turned).to_bytes() == specification.to_bytes()
    assert Specification.from_dict(specification.to_dict()) == specification
    assert Specification.from_bytes(specification.to_bytes()).digest == specification.digest
    assert Specification.from_dict(parameters(seed=43)).digest != specification.digest


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (changed("organisations", []), "PROCESS_CONSORTIUM"),
        (changed("organisations", ["Org1MSP", "Org2MSP", "Org1MSP"]), "PROCESS_CONSORTIUM"),
        (changed("organisations", ["Org1MSP"]), "PROCESS_NODES"),
        (changed("organisations", "Org1MSP"), "PROCESS_VALUE"),
        (changed("organisations", ["Org1MSP", "Org2MSP", "org one"]), "NAME_SYNTAX"),
        (changed("organisations", [f"Org{number}" for number in range(257)]), "PROCESS_VALUE"),
        (changed("nodes", {}), "PROCESS_NODES"),
        (changed("nodes", []), "PROCESS_NODES"),
        (changed("nodes", {f"n{number}": "Org1MSP" for number in range(1001)}), "PROCESS_NODES"),
        (changed("nodes", {"node01": "Org3MSP"}), "PROCESS_NODES"),
        (changed("nodes", {"Node01": "Org1MSP"}), "NAME_SYNTAX"),
        (changed("nodes", {"node01": None}), "NAME_TYPE"),
        (changed("steps", []), "PROCESS_STEPS"),
        (changed("steps", [STEP, STEP]), "PROCESS_STEPS"),
        (changed("steps", [STEP | {"name": f"s{number}"} for number in range(33)]), "PROCESS_VALUE"),
        (step(name="A step"), "PROCESS_STEPS"),
        (step(kind="looping"), "PROCESS_VALUE"),
        (step(kind=["single"]), "PROCESS_VALUE"),
        (step(kind="single"), "PROCESS_VALUE"),
        (step(iterations=0), "PROCESS_VALUE"),
        (step(iterations=-1), "PROCESS_VALUE"),
        (step(iterations=100_001), "PROCESS_VALUE"),
        (step(iterations=True), "PROCESS_VALUE"),
        (step(iterations="10"), "PROCESS_VALUE"),
        (step(synchronous=1), "PROCESS_VALUE"),
        (step(image={"name": "a"}), "PROCESS_FIELDS"),
        (step(image={"name": "a", "version": "latest"}), "NAME_SYNTAX"),
        (step(image="a:1"), "PROCESS_FIELDS"),
        (step(image=IMAGE | {"image_id": DIGEST}), "PROCESS_FIELDS"),
        (step(image=IMAGE | {"manifest_digest": DIGEST}), "PROCESS_FIELDS"),
        (step(image=IMAGE | {"image_id": "5" * 64, "manifest_digest": DIGEST}), "DIGEST_SYNTAX"),
        (step(image=IMAGE | {"image_id": DIGEST, "manifest_digest": 7}), "DIGEST_SYNTAX"),
        (changed("silence_seconds", 0), "PROCESS_VALUE"),
        (changed("silence_seconds", 31_622_401), "PROCESS_VALUE"),
        (changed("silence_seconds", "60"), "PROCESS_VALUE"),
        (changed("change_quota", 0), "PROCESS_VALUE"),
        (changed("image_attestations", 99), "PROCESS_VALUE"),
        (changed("image_attestations", -1), "PROCESS_VALUE"),
        (changed("change_quota", 1_001), "PROCESS_VALUE"),
        (changed("model_access", "anybody"), "PROCESS_VALUE"),
        (changed("model_access", None), "PROCESS_VALUE"),
        (changed("model_licence", "MIT"), "DIGEST_SYNTAX"),
        (changed("abort", "nobody"), "PROCESS_VALUE"),
        (changed("abort", ["any"]), "PROCESS_VALUE"),
        (changed("version", 3), "PROCESS_VALUE"),
        (changed("version", True), "PROCESS_VALUE"),
        (parameters(n_share=51), "PROCESS_VALUE"),
        (parameters(n_new=0), "PROCESS_VALUE"),
        (parameters(n_max=0), "PROCESS_VALUE"),
        (parameters(n_share=0), "PROCESS_VALUE"),
        (parameters(n_new=-5), "PROCESS_VALUE"),
        (parameters(n_new=10_001), "PROCESS_VALUE"),
        (parameters(n_max=2**63), "PROCESS_VALUE"),
        (parameters(n_new=1.5), "PROCESS_VALUE"),
        (parameters(seed=-1), "PROCESS_VALUE"),
        (parameters(seed=2**53), "PROCESS_VALUE"),
        (parameters(limits={"n_features": 0}), "PROCESS_VALUE"),
        (parameters(limits={"n_features": 65_536}), "PROCESS_VALUE"),
        (parameters(limits={"n_features": 30, "max_depth": -1}), "PROCESS_VALUE"),
        (parameters(limits={"n_features": 30, "max_internal": 32_768}), "PROCESS_VALUE"),
        (parameters(limits={}), "PROCESS_FIELDS"),
        (parameters(schema_digest="5" * 64), "DIGEST_SYNTAX"),
        (parameters(schema_digest=None), "DIGEST_SYNTAX"),
        (parameters(options={"threshold": 0.3}), "PROCESS_VALUE"),
        (parameters(options={"pad": "x" * 70_000}), "PROCESS_VALUE"),
        (parameters(options=[]), "PROCESS_FIELDS"),
        (parameters(n_trees=3), "PROCESS_FIELDS"),
        (step(overrides={"node09": {"n_new": 1}}), "PROCESS_NODES"),
        (step(overrides={"node01": {"n_share": 51}}), "PROCESS_VALUE"),
        (step(overrides={"node01": {"n_max": 5}}), "PROCESS_VALUE"),
        (step(overrides={"node01": {"seed": 1}}), "PROCESS_FIELDS"),
        (step(overrides={"node01": {"options": 1}}), "PROCESS_FIELDS"),
        (step(overrides={"node01": 1}), "PROCESS_FIELDS"),
        (step(overrides=[]), "PROCESS_FIELDS"),
        (changed("topology", {"kind": "explicit", "edges": [["node01", "node09"]]}), "TOPOLOGY_EDGE"),
        (changed("topology_changes", [{"iteration": 0, "topology": {"kind": "full"}}]), "PROCESS_VALUE"),
        (changed("topology_changes", [{"iteration": 10, "topology": {"kind": "full"}}]), "TOPOLOGY_CHANGE"),
        (
            changed("topology_changes", [{"iteration": 3, "topology": {"kind": "full"}}] * 2),
            "TOPOLOGY_CHANGE",
        ),
        (changed("initial_model", {"process": "p", "node": "n", "digest": "x"}), "DIGEST_SYNTAX"),
        (changed("initial_model", "p"), "PROCESS_FIELDS"),
        (changed("task_seconds", 0), "PROCESS_VALUE"),
        (changed("task_seconds", 2_592_001), "PROCESS_VALUE"),
        (changed("description", "x" * 1001), "PROCESS_VALUE"),
        (changed("description", "\0"), "PROCESS_VALUE"),
        (changed("version", 0), "PROCESS_VALUE"),
        (changed("process", "Fraud 2026"), "NAME_SYNTAX"),
        (changed("process", MISSING), "PROCESS_FIELDS"),
        (changed("owner", "me"), "PROCESS_FIELDS"),
        ([], "PROCESS_FIELDS"),
        (None, "PROCESS_FIELDS"),
    ],
)
def test_c10_specification_that_cannot_run_is_refused(record, code):
    assert code_of(record) == code


def test_c10_duplicate_node_has_no_canonical_form():
    raw = Specification.from_dict(SPECIFICATION).to_bytes()
    twice = raw.replace(b'"node01":"Org1MSP"', b'"node01":"Org1MSP","node01":"Org2MSP"')
    with pytest.raises(AttestreeError, match="RECORD_DUPLICATE_KEY"):
        Specification.from_bytes(twice)


def test_c10_too_many_iterations_in_all_steps_together_are_refused():
    steps = [STEP | {"name": f"s{number}", "iterations": 60_000} for number in range(2)]
    assert code_of(changed("steps", steps)) == "PROCESS_VALUE"


def test_iterations_count_through_all_steps():
    single = {name: value for name, value in STEP.items() if name != "iterations"}
    record = changed("steps", [single | {"name": "prepare", "kind": "single"}, STEP])
    specification = Specification.from_dict(record)
    assert specification.iterations == 11
    names = [specification.step_at(iteration)[0].name for iteration in range(11)]
    assert names == ["prepare"] + ["train"] * 10
    assert specification.step_at(10)[1] == 1
    with pytest.raises(AttestreeError, match="PROCESS_STEPS"):
        specification.step_at(11)


def test_a_nodes_overrides_change_its_parameters_and_hash_alone():
    record = step(overrides={"node01": {"n_new": 20, "options": {"quota": "3.0"}}})
    record["steps"][0]["parameters"] |= {"options": {"quota": "2.0", "rank": "kernel"}}
    specification = Specification.from_dict(record)
    one, two = specification.parameters("node01", 0), specification.parameters("node02", 0)
    assert (one.agreed.n_new, two.agreed.n_new) == (20, 10)
    assert one.agreed.options == {"quota": "3.0", "rank": "kernel"}
    assert two.agreed.options == {"quota": "2.0", "rank": "kernel"}
    assert one.digest != two.digest
    assert one.digest == specification.parameters("node01", 9).digest


def test_the_parameter_hash_depends_on_everything_a_task_depends_on():
    changes = [
        parameters(n_new=11),
        parameters(n_max=51),
        parameters(n_share=9),
        parameters(seed=1),
        parameters(limits={"n_features": 31}),
        parameters(schema_digest="sha256:" + "6" * 64),
        parameters(options={"a": 1}),
        step(synchronous=False),
        step(iterations=11),
        changed("initial_model", {"process": "p", "node": "n", "digest": DIGEST}),
    ]
    records = [SPECIFICATION, *changes]
    digests = {Specification.from_dict(r).parameters("node01", 0).digest for r in records}
    assert len(digests) == len(records)


@given(st.data())
def test_whatever_replaces_a_part_is_refused_by_code_or_accepted_in_one_form(data):
    junk = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("sha256:"),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    )
    record = copy.deepcopy(SPECIFICATION) | {
        "topology_changes": [
            {"iteration": 2, "topology": {"kind": "explicit", "edges": [["node01", "node02"]]}}
        ],
        "initial_model": {"process": "p", "node": "n", "digest": DIGEST},
    }
    record["steps"][0] |= {"overrides": {"node01": {"n_new": 3}}}
    place = record
    while isinstance(place, dict | list) and place:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = data.draw(st.sampled_from(keys))
        if not isinstance(place[key], dict | list) or not place[key] or data.draw(st.booleans()):
            place[key] = data.draw(junk)
            break
        place = place[key]
    try:
        specification = Specification.from_dict(record)
    except AttestreeError:
        return
    again = Specification.from_bytes(specification.to_bytes())
    assert again.to_bytes() == specification.to_bytes()


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=12),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
        max_leaves=12,
    )
)
def test_arbitrary_json_is_refused_by_code(record):
    with pytest.raises(AttestreeError):
        Specification.from_dict(record)


@given(st.binary(max_size=200))
def test_arbitrary_bytes_are_refused_by_code(raw):
    with pytest.raises(AttestreeError):
        Specification.from_bytes(raw)


def test_the_documented_fields_are_those_of_the_code():
    text = (Path(__file__).parents[3] / "docs/formats/process-v2.md").read_text(encoding="utf-8")
    made = changed("change_quota", 3) | {"image_attestations": 1, "estimator_kind": "boosted"}
    made |= {"model_access": "all", "model_licence": f"sha256:{'7' * 64}", "coordinator": "Org1MSP"}
    record = Specification.from_dict(made).to_dict()
    for title, fields in (
        ("Specification", record),
        ("Step", record["steps"][0]),
        ("Parameters", record["steps"][0]["parameters"]),
    ):
        section = text.partition(f"## {title}\n")[2].partition("\n## ")[0]
        assert set(re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)) == fields.keys()


GOLDEN = [
    case
    for file in ("process-v1.json", "process-v2.json", "process-v2-steps.json")
    for case in json.loads((Path(__file__).parents[2] / "golden" / file).read_text("utf-8"))["specifications"]
]


@pytest.mark.parametrize("case", GOLDEN, ids=lambda case: f"{case['given']['version']} {case['name']}")
def test_golden_specifications_keep_their_bytes_and_hashes(case):
    specification = Specification.from_dict(case["given"])
    assert specification.to_bytes().decode() == case["canonical"]
    assert str(specification.digest) == case["digest"]
    for task in case["parameter_hashes"]:
        assert str(specification.parameters(task["node"], task["iteration"]).digest) == task["hash"]


def test_a_specification_is_a_record():
    assert canonical.encode(json.loads(json.dumps(Specification.from_dict(SPECIFICATION).to_dict())))


def test_a_change_quota_is_written_where_it_is_not_the_default():
    plain = Specification.from_dict(SPECIFICATION)
    assert plain.change_quota == 1_000
    assert Specification.from_dict(changed("change_quota", 1_000)).digest == plain.digest
    few = Specification.from_dict(changed("change_quota", 3))
    assert few.to_dict()["change_quota"] == 3
    assert Specification.from_bytes(few.to_bytes()) == few


# Version 2: pins, silence, abort; version 1 stays what it was


def test_version_1_is_read_with_the_defaults_of_version_2_and_keeps_its_digest():
    first = Specification.from_dict(changed("version", 1))
    assert (first.version, first.silence_seconds, first.abort, first.is_pinned) == (
        1,
        86_400,
        "majority",
        False,
    )
    written = first.to_dict()
    assert not {"silence_seconds", "abort"} & written.keys()
    assert written["steps"][0]["image"].keys() == {"name", "version"}
    assert Specification.from_dict(written) == first
    assert first.digest != Specification.from_dict(SPECIFICATION).digest


@pytest.mark.parametrize("field", [{"silence_seconds": 60}, {"abort": "any"}])
def test_version_1_has_no_fields_of_version_2(field):
    assert code_of(changed("version", 1) | field) == "PROCESS_FIELDS"


def test_version_1_has_no_pins():
    pinned = step(image=IMAGE | {"image_id": DIGEST, "manifest_digest": DIGEST})
    assert Specification.from_dict(pinned).is_pinned
    assert code_of(pinned | {"version": 1}) == "PROCESS_FIELDS"


def test_a_draft_is_pinned_once_and_a_pin_that_is_there_stays():
    draft = Specification.from_dict(SPECIFICATION)
    assert draft.to_dict()["steps"][0]["image"] == IMAGE | {"image_id": None, "manifest_digest": None}
    asked = []

    def pin_of(name, version):
        asked.append((name, version))
        return ImagePin(Digest.of(b"id"), Digest.of(b"manifest"))

    pinned = draft.pinned(pin_of)
    assert (draft.is_pinned, pinned.is_pinned, asked) == (False, True, [(IMAGE["name"], IMAGE["version"])])
    assert pinned.digest != draft.digest
    assert pinned.pinned(lambda *_: pytest.fail("asked again")) == pinned
    assert Specification.from_dict(pinned.to_dict()) == pinned


@pytest.mark.parametrize(
    "character", ["\x1b", "\n", "\x7f", "\x9b", "\u202e", "\u2066", "\u200f", "\u200b", "\U000e0041"]
)
def test_a_description_that_shows_otherwise_than_it_reads_is_refused_in_version_2(character):
    # Some have no canonical form either, which is found first.
    code = "PROCESS_VALUE" if character in "\x1b\x7f\x9b" else "PROCESS_TEXT"
    assert code_of(changed("description", f"harmless{character}")) == code


def test_a_description_of_version_1_stays_as_it_was_accepted():
    first = changed("description", "harmless\u202e") | {"version": 1}
    assert Specification.from_dict(first).description == "harmless\u202e"


def test_a_description_in_any_script_is_accepted():
    for text in ("Zahlungen, größer", "بطاقة", "न्यास", "カード詐欺", "fraud 🙂"):
        assert Specification.from_dict(changed("description", text)).description == text


def test_a_kind_goes_into_the_limits_of_tasks_and_single_trees_go_without_saying():
    plain = Specification.from_dict(SPECIFICATION)
    named = Specification.from_dict(SPECIFICATION | {"estimator_kind": "tree"})
    boosted = Specification.from_dict(SPECIFICATION | {"estimator_kind": "boosted"})
    assert named.digest == plain.digest != boosted.digest
    assert "estimator_kind" not in plain.to_dict()
    assert Specification.from_bytes(boosted.to_bytes()) == boosted
    node = next(iter(boosted.nodes))
    agreed = boosted.parameters(node, 0)
    assert agreed.agreed.limits.kind == "boosted"
    assert TaskParameters.from_dict(agreed.to_dict()) == agreed
    assert "kind" not in plain.parameters(node, 0).agreed.limits.to_dict()


@pytest.mark.parametrize(
    "change",
    [
        {"estimator_kind": "forest"},
        {"estimator_kind": 1},
        {"estimator_kind": "boosted", "estimator_format": 1},
    ],
    ids=str,
)
def test_a_kind_that_is_none_or_has_a_format_of_trees_is_refused(change):
    with pytest.raises(ProcessError) as caught:
        Specification.from_dict(SPECIFICATION | change)
    assert caught.value.code == "PROCESS_VALUE"


def test_who_decides_on_models_is_written_where_it_is_not_the_owner_alone():
    """What was agreed on before anybody could say so keeps its digest."""
    plain = Specification.from_dict(SPECIFICATION)
    said = changed("model_access", "owner") | {"model_licence": None}
    assert Specification.from_dict(said).digest == plain.digest
    terms = {"model_access": "majority", "model_licence": str(plain.digest)}
    governed = Specification.from_dict(SPECIFICATION | terms)
    assert governed.to_dict()["model_access"] == "majority"
    assert Specification.from_bytes(governed.to_bytes()) == governed
    with pytest.raises(ProcessError, match="PROCESS_FIELDS"):
        Specification.from_dict(governed.to_dict() | {"version": 1})


@pytest.mark.parametrize(
    ("rule", "present", "organisation", "entitled", "quorum"),
    [
        ("owner", "ABC", "D", "A", 1),
        ("majority", "ABC", "D", "ABC", 2),
        ("majority", "ABC", "B", "AC", 2),
        ("majority", "BC", "D", "BC", 2),
        ("all", "ABC", "D", "ABC", 3),
        ("all", "ABC", "C", "AB", 2),
        ("majority", "B", "B", "A", 1),
        ("all", "", "D", "A", 1),
    ],
)
def test_who_asks_for_a_model_has_no_say_and_who_left_neither(rule, present, organisation, entitled, quorum):
    consent = consent_to_access(ModelAccess(rule), "A", tuple(present), organisation)
    assert (consent.members, consent.quorum) == (tuple(entitled), quorum)
    assert not consent.is_out_of_reach(())
    assert consent.is_out_of_reach(entitled[: len(entitled) - quorum + 1])
    assert not consent.is_out_of_reach(entitled[: len(entitled) - quorum])


@pytest.mark.parametrize("columns", [("a", "b", "a"), ("a", "Class")])
def test_d6_a_column_that_stands_twice_is_no_schema(columns):
    with pytest.raises(RecordError) as caught:
        FeatureSchema(columns, "Class")
    assert caught.value.code == "RECORD_VALUE"
