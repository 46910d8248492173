"""What is shown before an organisation accepts, and what is never accepted unseen."""

from dataclasses import fields
from typing import Any

import pytest
from support.memory.scenario import IMAGE, SPECIFICATION, Channel, changed
from support.memory.story import MemberTransport

from chaincode.image import ImageContract
from chaincode.orchestration import OrchestrationContract
from executor.errors import UsageError
from executor.ledger.chaincodes.proxies import Ledger
from executor.process import acceptance
from executor.process.terms import summary
from protocol.agreement.lifecycle import ProcessState
from protocol.agreement.process import Specification
from protocol.digest import Digest
from protocol.errors import StateError
from protocol.ledger.common import Provenance
from protocol.ledger.processes import ProcessRecord

BY = Provenance("Org1MSP", "someone", "data-scientist", Digest.of(b""), "2026-01-01T00:00:00.000000Z", "tx")


def proposed(specification: Specification) -> ProcessRecord:
    return ProcessRecord("fraud-2026", ProcessState.PROPOSED, specification, specification.digest, BY)


RECORD = proposed(Specification.from_dict(SPECIFICATION))


def test_what_is_accepted_is_shown_with_pins_rules_and_digest(capsys: pytest.CaptureFixture[str]) -> None:
    digest = RECORD.specification_digest
    assert acceptance.check(RECORD, digest, as_json=False) == digest
    shown = capsys.readouterr()
    assert shown.out == ""
    image = SPECIFICATION["steps"][0]["image"]
    counts = "n_new 10, n_max 50, n_share 10, seed 42"
    named = (
        "Org1MSP, Org2MSP",
        "2 of Org1MSP: node01, node02",
        "ring",
        image["image_id"],
        image["manifest_digest"],
    )
    for part in (*named, counts, "86400 s of silence", "majority", str(digest)):
        assert part in shown.err


def test_another_digest_than_the_read_one_is_refused() -> None:
    with pytest.raises(StateError, match="PROCESS_DIGEST"):
        acceptance.check(RECORD, Digest.of(b"another"), as_json=True)


def test_a_peer_that_names_another_digest_than_its_specification_has_is_refused() -> None:
    lying = ProcessRecord("fraud-2026", ProcessState.PROPOSED, RECORD.specification, Digest.of(b"agreed"), BY)
    with pytest.raises(StateError, match="PROCESS_DIGEST"):
        acceptance.check(lying, Digest.of(b"agreed"), as_json=True)


@pytest.mark.parametrize("as_json", [True, False])
def test_nothing_is_accepted_unseen_without_a_terminal(as_json: bool) -> None:
    with pytest.raises(UsageError, match="ACCEPT_UNSEEN"):
        acceptance.check(RECORD, None, as_json=as_json)


@pytest.mark.parametrize("said", ["y\n", "n\n"])
def test_at_a_terminal_a_person_is_asked(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(acceptance, "sys", type("Streams", (), {"stdin": Terminal(), "stderr": Terminal()}))
    monkeypatch.setattr("click.confirm", lambda *_, **__: said == "y\n")
    if said == "y\n":
        assert acceptance.check(RECORD, None, as_json=False) == RECORD.specification_digest
    else:
        with pytest.raises(UsageError, match="ACCEPT_DECLINED"):
            acceptance.check(RECORD, None, as_json=False)


def test_a_description_of_version_1_is_shown_without_its_tricks() -> None:
    fields = ("process", "organisations", "nodes", "topology", "steps")
    first: Any = {name: changed("version", 1)[name] for name in fields}
    first |= {"version": 1, "description": "safe\u202eelif"}
    step = first["steps"][0]
    first["steps"] = [step | {"image": {name: step["image"][name] for name in ("name", "version")}}]
    lines = list(summary(Specification.from_dict(first)))
    assert "description    safe\\u202eelif" in lines
    assert any("not pinned" in line for line in lines)


def test_h7_a_retired_image_is_shown_to_who_accepts_and_to_who_starts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """It stops nobody, so that its registrant has no say; who accepts decides, and has to know."""
    channel = Channel(ImageContract(), OrchestrationContract())
    channel.register()
    record = channel.create()
    ledger = Ledger(MemberTransport(channel.scientist2))
    found = ledger.orchestration.get(record["process"])
    assert acceptance.retirements(found.specification, ledger.images.get) == []
    channel.scientist1.submit("image", "Retire", *IMAGE, "a fault")
    (line,) = acceptance.retirements(found.specification, ledger.images.get)
    assert line.startswith(f"retired        {':'.join(IMAGE)} by Org1MSP at 20")
    assert line.endswith(": a fault")
    acceptance.check(found, found.specification_digest, [line], as_json=False)
    assert line in capsys.readouterr().err


# --- no term is hidden ---

STEP = SPECIFICATION["steps"][0]
EXPLICIT = {"kind": "explicit", "edges": [["node01", "node02"], ["node03", "node04"]]}
BOOSTED = changed("estimator_kind", "boosted") | {"estimator_format": 2}
ROUNDED = STEP["parameters"]["limits"] | {"max_depth": 7}


def other(*path_and_value: Any) -> Any:
    return changed("steps", 0, *path_and_value)


OTHERWISE: dict[str, tuple[Any, tuple[str, ...]]] = {
    "confidential": (changed("confidential", True), ("these organisations alone, for good",)),
    "confidential_blocks": (
        changed("confidential", True) | {"confidential_blocks": 100},
        ("these organisations alone, for 100 blocks",),
    ),
    "estimator_kind": (BOOSTED, ("of kind boosted, in format 2",)),
    "estimator_format": (changed("estimator_format", 2), ("of kind tree, in format 2",)),
    "edges": (changed("topology", EXPLICIT), ("explicit", "node01 - node02", "node03 - node04")),
    "topology_changes": (
        changed("topology_changes", [{"iteration": 1, "topology": EXPLICIT}]),
        ("explicit from iteration 1 on", "node03 - node04"),
    ),
    "limits": (other("parameters", "limits", ROUNDED), ("255 splits of an estimator, depth 7",)),
    "counts of a node": (
        other("overrides", {"node03": {"n_new": 7}}),
        ("node03 of Org2MSP: n_new 7",),
    ),
    "options of a node": (
        other("overrides", {"node03": {"options": {"vote_cap": None, "home_check": {"min_found": "0.5"}}}}),
        ("node03 of Org2MSP", 'options home_check {"min_found": "0.5"}, vote_cap null'),
    ),
    "an option that looks like another": (
        other("overrides", {"node03": {"options": {"fit": "plain, vote_cap 0.25"}}}),
        ('options fit "plain, vote_cap 0.25"',),
    ),
    "an option called options": (
        other("overrides", {"node03": {"options": {"options": "odd"}}}),
        ("options options odd",),
    ),
}


@pytest.mark.parametrize("term", OTHERWISE)
def test_each_term_is_shown_to_who_accepts(term: str) -> None:
    made, said = OTHERWISE[term]
    shown = "\n".join(summary(Specification.from_dict(made), "Org1MSP"))
    usual = "\n".join(summary(RECORD.specification, "Org1MSP"))
    for words in said:
        assert words in shown
        assert words not in usual


def test_every_field_of_a_specification_makes_a_difference_that_is_seen() -> None:
    """A field that comes later and is not shown fails here, and not at somebody who accepted it."""
    known = {name.name for name in fields(Specification)}
    altered: dict[str, Any] = {
        "process": changed("process", "other"),
        "description": changed("description", "other"),
        "organisations": changed("organisations", ["Org1MSP", "Org2MSP", "Org3MSP"]),
        "nodes": changed("nodes", {"node01": "Org2MSP", **dict(list(SPECIFICATION["nodes"].items())[1:])}),
        "topology": changed("topology", {"kind": "full"}),
        "steps": other("synchronous", False),
        "initial_model": changed(
            "initial_model", {"process": "before", "node": "node01", "digest": str(Digest.of(b"model"))}
        ),
        "task_seconds": changed("task_seconds", 5),
        "silence_seconds": changed("silence_seconds", 5),
        "abort": changed("abort", "any"),
        "confidential": changed("confidential", True),
        "confidential_blocks": OTHERWISE["confidential_blocks"][0],
        "estimator_format": changed("estimator_format", 2),
        "estimator_kind": BOOSTED,
        "change_quota": changed("change_quota", 5),
        "image_attestations": changed("image_attestations", 1),
        "model_access": changed("model_access", "all"),
        "model_licence": changed("model_licence", str(Digest.of(b"licence"))),
        "coordinator": changed("coordinator", "Org1MSP"),
    }
    assert set(altered) == known - {"version"}
    usual = without_digest(RECORD.specification)
    for name, record in altered.items():
        assert without_digest(Specification.from_dict(record)) != usual, name


def without_digest(specification: Specification) -> list[str]:
    return [line for line in summary(specification) if not line.startswith("digest")]


def test_nodes_of_who_accepts_are_shown_to_the_last() -> None:
    nodes = {f"node{number:02d}": f"Org{number % 2 + 1}MSP" for number in range(1, 41)}
    made = Specification.from_dict(changed("nodes", nodes))
    own, others = (line for line in summary(made, "Org2MSP") if "20 of Org" in line)
    assert own.startswith("nodes          20 of Org2MSP (yours): node01, node03,")
    assert own.endswith("node39")
    assert others.strip().startswith("20 of Org1MSP: node02,")
    assert others.endswith("and 10 more")


def test_edges_and_overrides_of_who_accepts_come_first_and_are_not_cut_off() -> None:
    nodes = {f"node{number:03d}": "Org1MSP" for number in range(1, 201)} | {"node900": "Org2MSP"}
    edges = [[f"node{number:03d}", f"node{number + 1:03d}"] for number in range(1, 200)]
    made = changed("topology", {"kind": "explicit", "edges": [*edges, ["node150", "node900"]]})
    made |= {"nodes": nodes}
    made = changed("steps", 0, "overrides", {name: {"n_new": 1} for name in nodes}, base=made)
    lines = list(summary(Specification.from_dict(made), "Org2MSP"))
    assert "  yours        node150 - node900" in lines
    assert any(line.endswith("and 99 more") for line in lines)
    first = next(line for line in lines if "otherwise" in line)
    assert first == "  otherwise    node900 of Org2MSP (yours): n_new 1"
    assert sum("otherwise" in line for line in lines) == 201
