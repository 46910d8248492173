"""Process commands on the live network: four organisations agree, start, change and end a process."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from support.channel import register, unique
from support.commands import done, executor, printed, refused, started
from support.federation import node_of
from support.network import ROOT

FILE = ROOT / "examples/federation.yaml"
ORGANISATIONS = ("org1", "org2", "org3", "org4")


@pytest.fixture(scope="module")
def image(network: None) -> str:
    if node_of("org4") is None:
        pytest.skip("the network has no fourth organisation")
    version = unique("1")
    register(version)
    return f"attestree/learner:{version}"


def propose(image: str) -> tuple[str, str]:
    process = unique("fraud")
    made = done("process", "create", "--spec", str(FILE), "--process", process, "--image", image)
    assert made["status"] == "proposed"
    assert made["accepted"] == []
    return process, made["specification_digest"]


def accept(process: str, organisation: str = "org1") -> dict[str, Any]:
    """Accept what the ledger shows, as somebody would who has read it."""
    digest = done("process", "show", process)["specification_digest"]
    return done("process", "accept", process, "--digest", digest, organisation=organisation)


@pytest.fixture
def proposed(image: str) -> tuple[str, str]:
    return propose(image)


@pytest.fixture(scope="module")
def running(image: str) -> str:
    process, _ = propose(image)
    for organisation in ORGANISATIONS:
        accept(process, organisation)
    done("process", "start", process)
    return process


def test_create_accept_by_each_organisation_start(proposed: tuple[str, str], image: str) -> None:
    process, digest = proposed
    preview = done(
        "process", "create", "--dry-run", "--spec", str(FILE), "--process", process, "--image", image
    )
    assert (preview["pinned"], preview["specification_digest"] == digest) == (False, False)
    for i, organisation in enumerate(ORGANISATIONS):
        assert refused("process", "start", process) == (13, "PROCESS_UNACCEPTED")
        answer = done("process", "accept", process, "--digest", digest, organisation=organisation)
        assert len(answer["missing"]) == len(ORGANISATIONS) - i - 1
    assert done("process", "start", process)["status"] == "running"
    status = done("process", "status", process)
    assert status["status"] == "running"
    assert [entry["node"] for entry in status["nodes"]] == ["node01", "node06", "node11", "node16"]
    listed = done("process", "list", "--status", "running")["processes"]
    assert process in [item["process"] for item in listed]
    assert refused("process", "start", process) == (13, "LIFECYCLE_TRANSITION")


def test_what_the_ledger_shows_is_a_file_with_the_same_digest(
    proposed: tuple[str, str], tmp_path: Path
) -> None:
    process, digest = proposed
    shown = printed("process", "show", process)
    (tmp_path / "shown.yaml").write_text(shown.out, encoding="utf-8")
    accepted = done("process", "accept", process, "--spec", str(tmp_path / "shown.yaml"))
    assert accepted["specification_digest"] == digest


def test_another_specification_than_the_read_one_is_not_accepted(
    proposed: tuple[str, str], image: str, tmp_path: Path
) -> None:
    process, _ = proposed
    other = f"sha256:{'0' * 64}"
    assert refused("process", "accept", process, "--digest", other) == (13, "PROCESS_DIGEST")
    altered = tmp_path / "altered.yaml"
    altered.write_text(FILE.read_text("utf-8").replace("seed: 42", "seed: 43"), "utf-8")
    read = ("--spec", str(altered), "--image", image)
    assert refused("process", "accept", process, *read) == (13, "PROCESS_DIGEST")


def test_refusals_have_their_exit_codes(proposed: tuple[str, str], tmp_path: Path) -> None:
    process, digest = proposed
    assert printed("process", "create").code == 2
    both = ("--digest", digest, "--spec", str(FILE))
    assert refused("process", "accept", process, *both) == (2, "ACCEPT_TWICE")
    unread = ("process", "accept", process, "--digest", digest)
    assert refused(*unread, identity="auditor") == (12, "ACCESS_ROLE")
    assert refused("process", "accept", process, organisation="org9") == (2, "ORGANISATION_UNKNOWN")
    assert refused("process", "status", unique("none")) == (13, "PROCESS_UNKNOWN")
    assert refused("process", "complete", process)[0] == 13
    assert refused("process", "accept", process, "--digest", "sha256:short")[0] == 14
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(
        FILE.read_text(encoding="utf-8").replace("iterations: 3", "iterations: three"), encoding="utf-8"
    )
    assert refused("process", "create", "--spec", str(wrong)) == (14, "FEDERATION_SCHEMA")
    assert refused("process", "accept", process) == (2, "ACCEPT_UNSEEN")
    accept(process)
    assert refused("process", "accept", process, "--digest", digest) == (13, "PROCESS_ACCEPTED")


def test_an_error_names_cause_and_remedy_for_people(proposed: tuple[str, str], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(FILE.read_text(encoding="utf-8").replace("topology: ring", "topology: rng"), "utf-8")
    ran = printed("process", "create", "--spec", str(wrong))
    assert ran.code == 14
    assert ran.out == ""
    assert f"{wrong}, line 11: topology is" in ran.err
    assert "remedy:" in ran.err


def test_a_node_leaves_and_comes_back_by_its_own_organisation(running: str) -> None:
    assert refused("process", "leave", running, "node06") == (12, "ACCESS_ORGANISATION")
    left = done("process", "leave", running, "node06", "--reason", "for a test", organisation="org2")
    assert left["holds"]
    assert left["iteration"] == 0
    back = done("process", "join", running, "node06", organisation="org2")
    assert back["holds"]
    assert back["iteration"] == 1
    status = done("process", "status", running)
    assert {entry["node"]: entry["next"] for entry in status["nodes"]}["node06"] == 1
    again = refused("process", "join", running, "node06", organisation="org2")
    assert again == (13, "NODE_ACTIVE")


def test_another_topology_and_image_hold_when_all_have_agreed(image: str) -> None:
    process, _ = propose(image)
    for organisation in ORGANISATIONS:
        accept(process, organisation)
    done("process", "start", process)
    version = unique("2")
    register(version)
    # Who names no iteration agrees to none that is later than the one it would ask for itself.
    for change in (("topology", process, "full"), ("image", process, version)):
        arguments = (*change, "--from", "2")
        asked = done("process", *arguments)
        assert not asked["holds"]
        assert asked["missing"] == ["Org2MSP", "Org3MSP", "Org4MSP"]
        answers = [done("process", *arguments, organisation=name) for name in ORGANISATIONS[1:]]
        # A topology needs all four, an image three: the fourth agrees to what holds.
        held = [False, False, True] if arguments[0] == "topology" else [False, True, True]
        assert [answer["holds"] for answer in answers] == held
        assert answers[-1]["iteration"] == 2
    assert refused("process", "topology", process, "explicit")[0] == 2
    assert refused("process", "topology", process, "full", "--edge", "node01:node06")[0] == 2


def test_watch_shows_what_happens_and_ends_with_the_process(proposed: tuple[str, str]) -> None:
    process, _ = proposed
    with started("process", "watch", process, "--seconds", "240", "--json") as watching:
        assert watching.stdout is not None
        first = json.loads(watching.stdout.readline())
        assert first["event"] == "Snapshot"
        for organisation in ORGANISATIONS:
            accept(process, organisation)
        done("process", "start", process)
        done("process", "leave", process, "node16", organisation="org4")
        for organisation in ("org1", "org2"):
            done("process", "abort", process, "--reason", "the test is over", organisation=organisation)
        *events, last = [json.loads(line) for line in watching.stdout]
        assert watching.wait(150) == 1
    assert [event["event"] for event in events] == [
        *["ProcessAccepted"] * 4,
        "ProcessStarted",
        "ProcessChanged",
        "ProcessVoted",
        "ProcessAborted",
        "End",
    ]
    assert last["error"]["code"] == "PROCESS_ABORTED"


def test_watch_prints_lines_without_a_terminal_and_gives_up_in_time(running: str) -> None:
    ran = printed("process", "watch", running, "--seconds", "1")
    assert ran.code == 3
    assert "| node01 | Org1MSP" in ran.out
    assert "WAIT_TIMEOUT" in ran.err


def test_a_watch_that_is_interrupted_leaves_at_once(running: str) -> None:
    with started("process", "watch", running, "--json") as watching:
        assert watching.stdout is not None
        assert '"Snapshot"' in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        assert watching.wait(150) != 0


def test_an_aborted_process_takes_nothing_more(proposed: tuple[str, str]) -> None:
    process, _ = proposed
    aborted = done("process", "abort", process, "--reason", "changed our mind", organisation="org3")
    assert aborted["status"] == "aborted"
    assert aborted["voted"]["Org3MSP"]["reason"] == "changed our mind"
    digest = done("process", "show", process)["specification_digest"]
    assert refused("process", "accept", process, "--digest", digest) == (13, "LIFECYCLE_TRANSITION")
    assert refused("process", "abort", process, "--reason", "again") == (13, "LIFECYCLE_TRANSITION")
    ran = executor("process", "watch", process)
    assert ran.code == 1
    assert f"{process}: aborted" in ran.out
